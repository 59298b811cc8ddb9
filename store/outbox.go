package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/echo-node/echo-node/partition"
)

// answeredKeys is how many foreign Keys are remembered as finally answered, at
// most twice over: about 20 MiB.
const answeredKeys = 1 << 17

// queue puts r into the outbox unless its slice's outbox has the Key already:
// that row shares the slice's fate, so the link is as safe.
func (t *txn) queue(r OutboxRow) error {
	x := queuedKey(r.Slice, r.Key)
	_, c, err := t.s.db.Get(x)
	if err == nil {
		return c.Close()
	}
	if !isAbsent(err) {
		return err
	}
	if r.Seq, err = t.seq(); err != nil {
		return err
	}
	t.total.outbox++
	_ = t.b.Set(x, binary.BigEndian.AppendUint64(nil, r.Seq), nil)
	return t.b.Set(seqKey(tabOutbox, r.Seq), r.encode(), nil)
}

// Outbox are up to limit durable rows above the number from, in order of Seq.
// A row stays until Sent.
func (s *Store) Outbox(from uint64, limit int) (rows []OutboxRow, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if from >= s.seqs.horizon() {
		return nil, nil
	}
	lower, upper := seqKey(tabOutbox, from+1), seqKey(tabOutbox, s.seqs.horizon()+1)
	err = s.scan(lower, upper, func(key, value []byte) (bool, error) {
		if len(rows) >= limit {
			return false, nil
		}
		r, err := decodeOutboxRow(value)
		r.Seq = binary.BigEndian.Uint64(key[1:])
		rows = append(rows, r)
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("store: outbox: %w", err)
	}
	return rows, nil
}

// Sent deletes rows whose links had their registrar's final answer (I2), and
// remembers the Keys for a while, so that a link that is on every page of a
// site is sent once. What is remembered is lost with the process; then such a
// link is sent again and answered Known. Rows that are gone already are no error.
func (s *Store) Sent(rows []OutboxRow) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	sls := make([]partition.Slice, len(rows))
	for i, r := range rows {
		sls[i] = r.Slice
	}
	err := s.write(sls, func(t *txn) error {
		done := make(map[uint64]bool, len(rows))
		for _, r := range rows {
			if done[r.Seq] {
				continue
			}
			done[r.Seq] = true
			if err := t.unqueue(r); err != nil {
				return fmt.Errorf("store: sent %s: %w", r.Key, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		s.answered.add(r.Key.Hash128())
	}
	return nil
}

func (t *txn) unqueue(r OutboxRow) error {
	x := queuedKey(r.Slice, r.Key)
	v, err := t.s.get(x)
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(v) != 8 {
		return errBadRow
	}
	if binary.BigEndian.Uint64(v) != r.Seq {
		return nil // sent long ago, queued anew since
	}
	t.total.outbox--
	_ = t.b.Delete(x, nil)
	return t.b.Delete(seqKey(tabOutbox, r.Seq), nil)
}

// answered remembers between n and 2n of the last Keys added, by their full
// 128-bit hash: it forgets, but never takes one Key for another.
type answered struct {
	mu       sync.Mutex
	n        int
	now, old map[[16]byte]struct{}
}

func newAnswered(n int) *answered { return &answered{n: n, now: make(map[[16]byte]struct{})} }

func (f *answered) add(h [16]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.now) >= f.n {
		f.old, f.now = f.now, make(map[[16]byte]struct{})
	}
	f.now[h] = struct{}{}
}

func (f *answered) has(h [16]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.now[h]; ok {
		return true
	}
	_, ok := f.old[h]
	return ok
}
