package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
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
func (s *Store) Admit(items []Admission, now time.Time) ([]Answer, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	ids := make([]siteID, len(items))
	sls := make([]partition.Slice, len(items))
	for i, a := range items {
		ids[i] = s.idIn(a.In, a.Key)
		sls[i] = ids[i].slice
	}
	answers := make([]Answer, len(items))
	err := s.write(sls, func(t *txn) error {
		fresh := make(map[partition.Key]bool, len(items))
		for i, a := range items {
			if err := s.fenced(ids[i].slice); err != nil {
				return fmt.Errorf("store: admit %s: %w", a.Key, err)
			}
			if a.Key.Kind() == partition.KindFile {
				answers[i] = Refused
				continue
			}
			var err error
			if answers[i], err = t.admit(ids[i], a, now, fresh); err != nil {
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

// admit is one Key of a batch; fresh are those the batch has admitted.
func (t *txn) admit(id siteID, a Admission, now time.Time, fresh map[partition.Key]bool) (Answer, error) {
	if a.check(id.site) != nil || !t.s.charter.MayHold(id.slice, a.Key) {
		return Refused, nil
	}
	if fresh[a.Key] {
		return Known, nil
	}
	old, err := t.keyState(id, a.Key)
	if err == nil {
		return t.known(id, a, &old, now, fresh)
	}
	if !errors.Is(err, ErrNotExist) {
		return 0, err
	}
	if err := t.arrived(id, a, now); err != nil {
		return 0, err
	}
	seq, err := t.seq()
	if err != nil {
		return 0, err
	}
	fresh[a.Key] = true
	now = now.UTC()
	return Admitted, t.put(id, a.Key, nil, keyState{state: StatePending, seed: a.Seed, at: now,
		priority: uint8(a.Priority),
		depth:    a.Depth, seq: seq, admitted: now, referrer: a.Referrer})
}

// check is nil when a can be stored.
func (a Admission) check(site partition.Site) error {
	if err := checkKey(a.Key, site); err != nil {
		return err
	}
	if len(a.Referrer) > MaxKeyBytes {
		return fmt.Errorf("referrer of %d bytes, at most %d", len(a.Referrer), MaxKeyBytes)
	}
	if a.Depth < 0 || a.Depth > maxDepth {
		return fmt.Errorf("depth %d, 0 to %d", a.Depth, maxDepth)
	}
	if a.Priority < 0 || a.Priority > 255 {
		return fmt.Errorf("priority %d, 0 to 255", a.Priority)
	}
	return nil
}
