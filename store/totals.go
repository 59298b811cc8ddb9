package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// totals are the sums over all counter rows, of the store and of each slice,
// kept in memory: Stats and SliceStats are O(1).
type totals struct {
	mu sync.Mutex
	totalChange
	disk     int64
	diskNext time.Time
	by       map[partition.Slice]*sliceTotal
	list     []*sliceTotal // those of by; only ever appended to
}

type totalChange struct {
	state                    [7]int64
	records, fetches, outbox int64
	posts, files, bytes      int64
}

func (c *totalChange) counts(n counts, sign int64) {
	for i, v := range n.state {
		c.state[i] += sign * v
	}
	c.records += sign * n.records
	c.fetches += sign * n.fetches
	c.posts += sign * n.posts
	c.files += sign * n.files
	c.bytes += sign * n.bytes
}

func (c *totalChange) add(o totalChange) {
	for i, v := range o.state {
		c.state[i] += v
	}
	c.records += o.records
	c.fetches += o.fetches
	c.outbox += o.outbox
	c.posts += o.posts
	c.files += o.files
	c.bytes += o.bytes
}

func (c totalChange) stats() Stats {
	n := c.state
	return Stats{Pending: n[StatePending], Done: n[StateDone], Gone: n[StateGone], Refused: n[StateRefused],
		Placed:      n[StatePlaced],
		Keys:        n[StatePending] + n[StateDone] + n[StateGone] + n[StateRefused] + n[StateQuarantined],
		Quarantined: n[StateQuarantined],
		Records:     c.records, Posts: c.posts, Files: c.files, FileBytes: c.bytes, Outbox: c.outbox,
		Fetches: c.fetches}
}

func (t *totals) add(c totalChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.totalChange.add(c)
}

// noFiles says that no file of an account is stored.
func (t *totals) noFiles() bool {
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

// of is the total of sl, made when there is none.
func (t *totals) of(sl partition.Slice) *sliceTotal {
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

func (t *sliceTotal) add(c totalChange) {
	for i, v := range c.state {
		if v != 0 {
			t.state[i].Add(v)
		}
	}
	t.records.Add(c.records)
	t.fetches.Add(c.fetches)
	t.outbox.Add(c.outbox)
	t.posts.Add(c.posts)
	t.files.Add(c.files)
	t.bytes.Add(c.bytes)
}

func (t *sliceTotal) now() totalChange {
	c := totalChange{records: t.records.Load(), fetches: t.fetches.Load(), outbox: t.outbox.Load(),
		posts: t.posts.Load(),
		files: t.files.Load(), bytes: t.bytes.Load()}
	for i := range t.state {
		c.state[i] = t.state[i].Load()
	}
	return c
}

// diskEvery is how old Stats.DiskBytes may be.
const diskEvery = time.Second

// Stats are the store's counts. Each is exact for what was visible at some
// moment during the call; DiskBytes is up to a second old. Zero after Close.
func (s *Store) Stats() Stats {
	if s.enter() != nil {
		return Stats{}
	}
	defer s.leave()
	t := &s.totals
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); !now.Before(t.diskNext) && s.failed.Load() == nil {
		t.diskNext = now.Add(diskEvery)
		t.disk = int64(s.db.Metrics().DiskSpaceUsage())
	}
	st := t.stats()
	st.DiskBytes = t.disk
	return st
}

// SliceStats are the counts of one slice, DiskBytes excepted. Fetches are this
// peer's own, since it has the slice.
func (s *Store) SliceStats(sl partition.Slice) Stats {
	s.totals.mu.Lock()
	t := s.totals.by[sl]
	s.totals.mu.Unlock()
	if t == nil {
		return Stats{}
	}
	return t.now().stats()
}

// StatsOf is the sum of SliceStats over the slices that are in. Cost: one call
// of in for each slice there ever was, about a millisecond for 2^17.
func (s *Store) StatsOf(in func(partition.Slice) bool) Stats {
	s.totals.mu.Lock()
	list := s.totals.list
	s.totals.mu.Unlock()
	var sum totalChange
	for _, t := range list {
		if in(t.slice) {
			sum.add(t.now())
		}
	}
	return sum.stats()
}

// load reads the totals at Open: one row a site and one an outbox row, both
// small and contiguous, never the Keys themselves; and the ends of the logs.
func (s *Store) load() error {
	p := []byte{byte(tabCount)}
	err := s.scan(p, after(p), func(key, value []byte) (bool, error) {
		id, _, err := splitRow(key)
		if err != nil {
			return false, err
		}
		c, err := decodeCounts(value)
		var n totalChange
		n.counts(c, 1)
		s.totals.add(n)
		s.totals.of(id.slice).add(n)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	p = []byte{byte(tabOutbox)}
	err = s.scan(p, after(p), func(_, value []byte) (bool, error) {
		d := newDecoder(value)
		sl := partition.Slice(d.uint(math.MaxUint64))
		if d.bad {
			return false, errBadRow
		}
		s.totals.add(totalChange{outbox: 1})
		s.totals.of(sl).add(totalChange{outbox: 1})
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
	dropped, err := s.number(metaFetches)
	if err != nil {
		return err
	}
	s.totals.fetches += int64(dropped)
	next, err := s.number(metaSeq)
	s.seqs.next = max(next, 1)
	return err
}

func (s *Store) addFetches(t *txn, n int64) error {
	old, err := s.number(metaFetches)
	if err != nil {
		return err
	}
	t.total.fetches += n
	return t.b.Set(metaKey(metaFetches), binary.BigEndian.AppendUint64(nil, old+uint64(n)), nil)
}
