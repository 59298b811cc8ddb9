package store

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Caps of Meta.
const (
	maxMetaName  = 64
	maxMetaValue = 1 << 20
)

// Meta is a small named value of the node; ErrNotExist when it was never set.
func (s *Store) Meta(name string) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	v, err := s.get(valueKey(name))
	if err != nil {
		return nil, fmt.Errorf("store: value %q: %w", name, err)
	}
	return v, nil
}

// SetMeta makes a small named value durable: a name of 1 to 64 bytes, a value
// of at most 1 MiB. The last of two concurrent calls wins.
func (s *Store) SetMeta(name string, value []byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if name == "" || len(name) > maxMetaName || len(value) > maxMetaValue {
		return fmt.Errorf("store: value %.64q: name of %d bytes (1 to %d), value of %d (at most %d)", name, len(name), maxMetaName, len(value), maxMetaValue)
	}
	return s.write(nil, func(t *txn) error { return t.b.Set(valueKey(name), value, nil) })
}

// Backup makes a consistent copy of the store in dir, which must not exist, by
// hard links where the file system has them. Open opens it. The store goes on
// meanwhile; what is committed after the call may be missing.
func (s *Store) Backup(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.ready(); err != nil {
		return err
	}
	if err := s.db.Checkpoint(dbDir(s.opts.FS, dir), pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("store: backup to %s: %w", dir, s.blame(err))
	}
	return nil
}

// totals are the sums over all counter rows, kept in memory: Stats is O(1).
type totals struct {
	mu sync.Mutex
	totalChange
	disk     int64
	diskNext time.Time
}

type totalChange struct {
	state                    [5]int64
	records, fetches, outbox int64
}

func (c *totalChange) counts(n counts, sign int64) {
	for i, v := range n.state {
		c.state[i] += sign * v
	}
	c.records += sign * n.records
	c.fetches += sign * n.fetches
}

func (t *totals) add(c totalChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, v := range c.state {
		t.state[i] += v
	}
	t.records += c.records
	t.fetches += c.fetches
	t.outbox += c.outbox
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
	n := t.state
	return Stats{Pending: n[StatePending], Done: n[StateDone], Gone: n[StateGone], Refused: n[StateRefused],
		Keys:    n[StatePending] + n[StateDone] + n[StateGone] + n[StateRefused],
		Records: t.records, Outbox: t.outbox, Fetches: t.fetches, DiskBytes: t.disk}
}

// load reads the totals at Open: one row a site and one an outbox row, both
// small and contiguous, never the Keys themselves.
func (s *Store) load() error {
	err := s.scan([]byte{byte(tabCount)}, after([]byte{byte(tabCount)}), func(_, value []byte) (bool, error) {
		c, err := decodeCounts(value)
		s.totals.counts(c, 1)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	if err := s.scan([]byte{byte(tabOutbox)}, after([]byte{byte(tabOutbox)}), func(_, _ []byte) (bool, error) {
		s.totals.outbox++
		return true, nil
	}); err != nil {
		return fmt.Errorf("outbox: %w", err)
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
