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

// Totals are the sums over all counter rows, of the store and of each slice,
// kept in memory: Stats and SliceStats are O(1).
type Totals struct {
	mu sync.Mutex
	TotalChange
	disk     int64
	diskNext time.Time
	by       map[partition.Slice]*sliceTotal
	list     []*sliceTotal // those of by; only ever appended to
}

type TotalChange struct {
	state                    [7]int64
	Records, fetches, Outbox int64
	posts, files, bytes      int64
}

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

// NoFiles says that no file of an account is stored.
func (t *Totals) NoFiles() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files == 0
}

// sliceTotal is read without a lock, so that summing over all slices holds up
// no writer. It outlives its slice's rows, at zero.
type sliceTotal struct {
	slice                    partition.Slice
	state                    [7]atomic.Int64
	records, fetches, outbox atomic.Int64
	posts, files, bytes      atomic.Int64
}

// Of is the total of sl, made when there is none.
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

// Slice is the counts of one slice.
func (t *Totals) Slice(sl partition.Slice) store.Stats {
	t.mu.Lock()
	one := t.by[sl]
	t.mu.Unlock()
	if one == nil {
		return store.Stats{}
	}
	return one.now().stats()
}

// Sum is the counts of the slices that are in.
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

// diskEvery is how old Stats.DiskBytes may be.
const diskEvery = time.Second

// Stats are the store's counts. Each is exact for what was visible at some
// moment during the call; DiskBytes is up to a second old. Zero after Close.
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

// Load reads the totals at Open: one row a site and one an outbox row, both
// small and contiguous, never the Keys themselves; and the ends of the logs.
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

func (t *Batch) AddFetches(n int64) error {
	old, err := t.s.Number(format.MetaFetches)
	if err != nil {
		return err
	}
	t.total.fetches += n
	return t.Rows.Set(format.MetaKey(format.MetaFetches), binary.BigEndian.AppendUint64(nil, old+uint64(n)), nil)
}
