package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Admit puts the new Keys of items into the frontier, due at now, and returns an answer for each
// item. On return every answer is durable: it is final in the sense of I2.
//
// I1: a Key is Admitted once. This holds however often and by however many peers it is sent, at the
// same time or later, and also after a crash. If items contains a Key twice, the answer for the
// second is Known. Known changes nothing, not even the priority. Refused means that the Key is
// never a row of this store: it is empty, over MaxKeyBytes, or its Admission is out of range. A
// file of an account is Refused too, because only the account's own commits admit it.
//
// The caller must be the Keys' registrar; Admit does not check this.
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

// Admit admits one Key in this batch. fresh contains the Keys that the batch has admitted so far.
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
