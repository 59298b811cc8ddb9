package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Totals are the sums over all counter rows, for the store and for each slice. They are kept in
// memory, so Stats and SliceStats are O(1).
type Totals struct {
	mu sync.Mutex
	TotalChange
	disk     int64
	diskNext time.Time
	by       map[partition.Slice]*sliceTotal
	list     []*sliceTotal // the values of by; only appended to
}

// TotalChange is a change of the totals, or the totals themselves.
type TotalChange struct {
	state                    [7]int64
	Records, fetches, Outbox int64
	posts, files, bytes      int64
}

// Counts adds n times sign to c.
func (c *TotalChange) Counts(n format.Counts, sign int64) {
	for i, v := range n.State {
		c.state[i] += sign * v
	}
	c.Records += sign * n.Records
	c.fetches += sign * n.Fetches
	c.posts += sign * n.Posts
	c.files += sign * n.Files
	c.bytes += sign * n.Bytes
}

func (c *TotalChange) add(o TotalChange) {
	for i, v := range o.state {
		c.state[i] += v
	}
	c.Records += o.Records
	c.fetches += o.fetches
	c.Outbox += o.Outbox
	c.posts += o.posts
	c.files += o.files
	c.bytes += o.bytes
}

func (c TotalChange) stats() store.Stats {
	n := c.state
	return store.Stats{Pending: n[store.StatePending], Done: n[store.StateDone], Gone: n[store.StateGone],
		Refused: n[store.StateRefused],
		Placed:  n[store.StatePlaced],
		Keys: n[store.StatePending] + n[store.StateDone] + n[store.StateGone] + n[store.StateRefused] +
			n[store.StateQuarantined],
		Quarantined: n[store.StateQuarantined],
		Records:     c.Records, Posts: c.posts, Files: c.files, FileBytes: c.bytes, Outbox: c.Outbox,
		Fetches: c.fetches}
}

func (t *Totals) add(c TotalChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.TotalChange.add(c)
}

// NoFiles reports whether no file of an account is stored.
func (t *Totals) NoFiles() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files == 0
}

// sliceTotal is read without a lock, so a sum over all slices does not block writers. It stays when
// the rows of its slice are deleted, with all counts zero.
type sliceTotal struct {
	slice                    partition.Slice
	state                    [7]atomic.Int64
	records, fetches, outbox atomic.Int64
	posts, files, bytes      atomic.Int64
}

// Of returns the totals of sl. It makes them when there are none.
func (t *Totals) Of(sl partition.Slice) *sliceTotal {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.by[sl]
	if st == nil {
		st = &sliceTotal{slice: sl}
		t.by[sl] = st
		t.list = append(t.list, st)
	}
	return st
}

// Add adds c to the totals of the slice.
func (t *sliceTotal) Add(c TotalChange) {
	for i, v := range c.state {
		if v != 0 {
			t.state[i].Add(v)
		}
	}
	t.records.Add(c.Records)
	t.fetches.Add(c.fetches)
	t.outbox.Add(c.Outbox)
	t.posts.Add(c.posts)
	t.files.Add(c.files)
	t.bytes.Add(c.bytes)
}

func (t *sliceTotal) now() TotalChange {
	c := TotalChange{Records: t.records.Load(), fetches: t.fetches.Load(), Outbox: t.outbox.Load(),
		posts: t.posts.Load(),
		files: t.files.Load(), bytes: t.bytes.Load()}
	for i := range t.state {
		c.state[i] = t.state[i].Load()
	}
	return c
}

// Slice returns the counts of one slice.
func (t *Totals) Slice(sl partition.Slice) store.Stats {
	t.mu.Lock()
	one := t.by[sl]
	t.mu.Unlock()
	if one == nil {
		return store.Stats{}
	}
	return one.now().stats()
}

// Sum returns the counts of all slices for which in returns true.
func (t *Totals) Sum(in func(partition.Slice) bool) store.Stats {
	t.mu.Lock()
	list := t.list
	t.mu.Unlock()
	var sum TotalChange
	for _, one := range list {
		if in(one.slice) {
			sum.add(one.now())
		}
	}
	return sum.stats()
}

// diskEvery is the greatest age of Stats.DiskBytes.
const diskEvery = time.Second

// Stats returns the counts of the store. They are exact for what was visible at some moment during
// the call. DiskBytes is up to a second old. After Close, all are zero.
func (s *Engine) Stats() store.Stats {
	if s.Enter() != nil {
		return store.Stats{}
	}
	defer s.Leave()
	t := &s.Totals
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); !now.Before(t.diskNext) && s.failed.Load() == nil {
		t.diskNext = now.Add(diskEvery)
		t.disk = int64(s.DB.Metrics().DiskSpaceUsage())
	}
	st := t.stats()
	st.DiskBytes = t.disk
	return st
}

// Load reads the totals at Open. It reads one row for each site and one for each outbox row. Both
// are small and contiguous; the rows of Keys are not read. It also finds the ends of the logs.
func (s *Engine) Load() error {
	p := []byte{byte(format.TabCount)}
	err := s.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
		id, _, err := format.SplitRow(key)
		if err != nil {
			return false, err
		}
		c, err := format.DecodeCounts(value)
		var n TotalChange
		n.Counts(c, 1)
		s.Totals.add(n)
		s.Totals.Of(id.Slice).Add(n)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	p = []byte{byte(format.TabOutbox)}
	err = s.Scan(p, format.After(p), func(_, value []byte) (bool, error) {
		d := format.NewDecoder(value)
		sl := partition.Slice(d.Uint(math.MaxUint64))
		if d.Bad {
			return false, format.ErrBadRow
		}
		s.Totals.add(TotalChange{Outbox: 1})
		s.Totals.Of(sl).Add(TotalChange{Outbox: 1})
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	if err := s.loadLogs(); err != nil {
		return fmt.Errorf("logs of slices: %w", err)
	}
	if err := s.loadChanged(); err != nil {
		return fmt.Errorf("change log: %w", err)
	}
	dropped, err := s.Number(format.MetaFetches)
	if err != nil {
		return err
	}
	s.Totals.fetches += int64(dropped)
	next, err := s.Number(format.MetaSeq)
	s.Seqs.next = max(next, 1)
	return err
}

// AddFetches adds n to the number of fetches whose counter rows no longer exist.
func (t *Batch) AddFetches(n int64) error {
	old, err := t.s.Number(format.MetaFetches)
	if err != nil {
		return err
	}
	t.total.fetches += n
	return t.Rows.Set(format.MetaKey(format.MetaFetches), binary.BigEndian.AppendUint64(nil, old+uint64(n)), nil)
}
