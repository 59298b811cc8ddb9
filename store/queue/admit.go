package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Admit puts the Keys of items that are new into the frontier, due at now, and
// answers for each. On return every answer is durable: final in the sense of I2.
//
// I1: a Key is Admitted once, however often and by however many it is asked
// for, at once or later, crash between or not; of two in items the second is
// Known. Known changes nothing, priority included. Refused: not a row of this
// store ever (empty, over MaxKeyBytes, or out of the ranges of Admission), or a
// file of an account, which only the account's own commits admit.
//
// The caller knows that it is the Keys' registrar; Admit does not ask.
func (s *Queue) Admit(items []store.Admission, now time.Time) ([]store.Answer, error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	defer s.engine.Leave()
	ids := make([]format.SiteID, len(items))
	sls := make([]partition.Slice, len(items))
	for i, a := range items {
		ids[i] = s.engine.IDIn(a.In, a.Key)
		sls[i] = ids[i].Slice
	}
	answers := make([]store.Answer, len(items))
	err := s.write(sls, func(t *Batch) error {
		fresh := make(map[partition.Key]bool, len(items))
		for i, a := range items {
			if err := s.engine.Fenced(ids[i].Slice); err != nil {
				return fmt.Errorf("store: admit %s: %w", a.Key, err)
			}
			if a.Key.Kind() == partition.KindFile {
				answers[i] = store.Refused
				continue
			}
			var err error
			if answers[i], err = t.Admit(ids[i], a, now, fresh); err != nil {
				return fmt.Errorf("store: admit %s: %w", a.Key, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// Admit is one Key of a batch; fresh are those the batch has admitted.
func (t *Batch) Admit(id format.SiteID, a store.Admission, now time.Time, fresh map[partition.Key]bool) (store.Answer,
	error) {
	if a.Check(id.Site) != nil || !t.s.engine.Charter().MayHold(id.Slice, a.Key) {
		return store.Refused, nil
	}
	if fresh[a.Key] {
		return store.Known, nil
	}
	old, err := t.KeyState(id, a.Key)
	if err == nil {
		return t.known(id, a, &old, now, fresh)
	}
	if !errors.Is(err, store.ErrNotExist) {
		return 0, err
	}
	if err := t.arrived(id, a, now); err != nil {
		return 0, err
	}
	seq, err := t.Seq()
	if err != nil {
		return 0, err
	}
	fresh[a.Key] = true
	now = now.UTC()
	return store.Admitted, t.Put(id, a.Key, nil, format.KeyState{State: store.StatePending, Seed: a.Seed, At: now,
		Priority: uint8(a.Priority),
		Depth:    a.Depth, Seq: seq, Admitted: now, Referrer: a.Referrer})
}
