package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// answeredKeys is the number of foreign Keys that Answered remembers, at most twice as many: about
// 20 MiB.
const answeredKeys = 1 << 17

// Queue puts r into the outbox unless the outbox of its slice has the Key already: the existing row
// belongs to the same slice, so the link is equally safe. There is one exception. A row of a
// placement replaces a row of an earlier placement or of none. The old row would go to an older
// target, mostly the Key's registrar.
func (t *Batch) Queue(r store.OutboxRow) error {
	seq, err := t.queued(r.Slice, r.Key)
	if err == nil {
		older, err := t.placedBefore(seq, r.Gen)
		if err != nil || !older {
			return err
		}
		if err := t.dequeue(r.Slice, r.Key, seq); err != nil {
			return err
		}
	} else if !errors.Is(err, store.ErrNotExist) {
		return err
	}
	x := format.QueuedKey(r.Slice, r.Key)
	if r.Seq, err = t.Seq(); err != nil {
		return err
	}
	t.Part(r.Slice).Total.Outbox++
	value := format.EncodeOutboxRow(r)
	t.Name(r.Slice, format.NameLink, x[9:], len(value), time.Time{})
	_ = t.Rows.Set(x, binary.BigEndian.AppendUint64(nil, r.Seq), nil)
	return t.Rows.Set(format.SeqKey(format.TabOutbox, r.Seq), value, nil)
}

// placedBefore reports whether the outbox row seq is of a placement before gen, or of none.
func (t *Batch) placedBefore(seq, gen uint64) (bool, error) {
	if gen == 0 {
		return false, nil
	}
	v, err := t.s.engine.Get(format.SeqKey(format.TabOutbox, seq))
	if err != nil {
		return false, err
	}
	old, err := format.DecodeOutboxRow(v)
	return old.Gen < gen, err
}

// MaxOutboxScan is the number of rows that one call of Outbox reads at most.
const MaxOutboxScan = 1 << 14

// Outbox returns up to limit durable rows above the number from whose Slice is in, in order of Seq.
// A nil in takes all slices. It reads at most MaxOutboxScan rows. reached is the number to continue
// from, even when no rows are returned: numbers up to it that have no row never get one. It equals
// from when nothing was added. A row stays until Sent.
func (s *Queue) Outbox(from uint64, limit int, in func(partition.Slice) bool) (rows []store.OutboxRow, reached uint64,
	err error) {
	if err := s.engine.Enter(); err != nil {
		return nil, from, err
	}
	defer s.engine.Leave()
	horizon := s.engine.Seqs.Horizon()
	if reached = from; from >= horizon {
		return nil, from, nil
	}
	empty := s.outboxEmpty.Load()
	n, ended := 0, true
	err = s.engine.Scan(format.SeqKey(format.TabOutbox, max(from, empty)+1), format.SeqKey(format.TabOutbox, horizon+1),
		func(key, value []byte) (bool, error) {
			if n++; len(rows) >= limit || n > MaxOutboxScan {
				ended = false
				return false, nil
			}
			reached = binary.BigEndian.Uint64(key[1:])
			if n == 1 && from <= empty {
				s.outboxEmpty.CompareAndSwap(empty, reached-1)
			}
			if in != nil {
				d := format.NewDecoder(value)
				if sl := partition.Slice(d.Uint(math.MaxUint64)); !d.Bad && !in(sl) {
					return true, nil
				}
			}
			r, err := format.DecodeOutboxRow(value)
			r.Seq = reached
			rows = append(rows, r)
			return true, err
		})
	if err != nil {
		return nil, from, fmt.Errorf("store: outbox: %w", err)
	}
	if ended { // deleted rows up to the horizon are not scanned again
		reached = horizon
	}
	if n == 0 && from <= empty {
		s.outboxEmpty.CompareAndSwap(empty, horizon)
	}
	return rows, reached, nil
}

// Sent deletes rows whose links have their registrar's final answer (I2). It remembers the Keys for
// a while, so that a link that is on every page of a site is sent once. This memory is lost when
// the process ends. Then such a link is sent again, and the answer is Known. Rows that do not exist
// any more are no error.
func (s *Queue) Sent(rows []store.OutboxRow) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	sls := make([]partition.Slice, len(rows))
	for i, r := range rows {
		sls[i] = r.Slice
	}
	err := s.write(sls, func(t *Batch) error {
		done := make(map[uint64]bool, len(rows))
		for _, r := range rows {
			if done[r.Seq] || s.engine.Fenced(r.Slice) != nil { // its new owner sends it again
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
		s.Answered.add(r.Key.Hash128())
	}
	return nil
}

// unqueue deletes the row r, unless its Key has another row by now.
func (t *Batch) unqueue(r store.OutboxRow) error {
	seq, err := t.queued(r.Slice, r.Key)
	if err != nil || seq != r.Seq {
		return engine.IgnoreAbsent(err) // sent long ago, and perhaps queued again since
	}
	return t.dequeue(r.Slice, r.Key, seq)
}

// UnqueueKey deletes the outbox row of k, whatever number it has here.
func (t *Batch) UnqueueKey(sl partition.Slice, k partition.Key) error {
	seq, err := t.queued(sl, k)
	if err != nil {
		return engine.IgnoreAbsent(err)
	}
	return t.dequeue(sl, k, seq)
}

// queued returns the number of the outbox row of k in sl, or ErrNotExist.
func (t *Batch) queued(sl partition.Slice, k partition.Key) (uint64, error) {
	v, err := t.s.engine.Get(format.QueuedKey(sl, k))
	if err == nil && len(v) != 8 {
		err = format.ErrBadRow
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// dequeue deletes the outbox row seq of k and its index row.
func (t *Batch) dequeue(sl partition.Slice, k partition.Key, seq uint64) error {
	x := format.QueuedKey(sl, k)
	t.Part(sl).Total.Outbox--
	t.Name(sl, format.NameLink, x[9:], 0, time.Time{})
	_ = t.Rows.Delete(x, nil)
	return t.Rows.Delete(format.SeqKey(format.TabOutbox, seq), nil)
}

// Answered remembers the last Keys that were added, between n and 2n of them, by their full 128-bit
// hash. It forgets Keys, but it never takes one Key for another.
type Answered struct {
	mu       sync.Mutex
	n        int
	now, old map[[16]byte]struct{}
}

func newAnswered(n int) *Answered { return &Answered{n: n, now: make(map[[16]byte]struct{})} }

func (f *Answered) add(h [16]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.now) >= f.n {
		f.old, f.now = f.now, make(map[[16]byte]struct{})
	}
	f.now[h] = struct{}{}
}

// Has reports whether the Key with the hash h is remembered.
func (f *Answered) Has(h [16]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.now[h]; ok {
		return true
	}
	_, ok := f.old[h]
	return ok
}
