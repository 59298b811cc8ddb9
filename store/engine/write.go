package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Part is what a batch does to one slice, in addition to its rows.
type Part struct {
	Total TotalChange
	Log   SliceLog        // its state after the batch
	names []format.LogRow // rows written that no entry names yet
	grown bool            // the log has new entries
}

// countChange is a counter row of a site before and after the batch.
type countChange struct{ old, now format.Counts }

// Write makes one batch under the locks of its slices and returns when the batch is durable. The
// locks are held while build reads and while the batch becomes visible, not during the sync. So
// callers of one slice share syncs too.
//
// A batch becomes visible before it is durable, so what build read may not be durable yet. But the
// log is written in order: when a later sync of this batch is done, what build read is durable too.
// When build writes nothing, Write still syncs if any other write is in progress. So no answer, not
// even "known", is given before the state behind it is durable (I2).
//
// After an error of build, nothing has changed. After an error of the disk, the next Open may or
// may not find the batch, but never a part of it. This Engine then writes no more.
func (s *Engine) Write(sls []partition.Slice, build func(t *Batch) error) error {
	if err := s.Ready(); err != nil {
		return err
	}
	t := s.NewBatch()
	defer t.Close()
	applied, err := s.apply(t, sls, build)
	if err != nil || !applied {
		return err
	}
	if err := s.synced(t.Rows); err != nil {
		return err
	}
	s.unsynced.Add(-1)
	t.durable()
	return nil
}

// Ready returns an error when a write is not possible: the disk has refused a write, or is full.
func (s *Engine) Ready() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	return s.space.check()
}

// apply is the part of Write under the locks.
func (s *Engine) apply(t *Batch, sls []partition.Slice, build func(t *Batch) error) (applied bool, err error) {
	defer s.Lock(sls)()
	if err := build(t); err != nil {
		return false, err
	}
	if err := t.finish(); err != nil {
		return false, err
	}
	if t.Rows.Empty() {
		if s.unsynced.Load() == 0 {
			return false, nil
		}
		_ = t.Rows.LogData([]byte{0}, nil) // is synced with the next sync and changes nothing
	}
	s.unsynced.Add(1)
	if err := s.DB.ApplyNoSyncWait(t.Rows, pebble.Sync); err != nil {
		return false, err
	}
	t.visible()
	return true, nil
}

// Commit applies b and returns when b is durable.
func (s *Engine) Commit(b *pebble.Batch) error {
	if err := s.DB.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return err
	}
	if err := s.synced(b); err != nil {
		return err
	}
	return b.Close()
}

// synced waits until b is durable. Pebble does not know when the log was refused, before or after b
// (see logFS), so synced looks at s.failed. The caller reports a full disk. Any other error is
// fatal, because the store can no longer promise anything.
func (s *Engine) synced(b *pebble.Batch) error {
	if err := b.SyncWait(); err != nil {
		s.refused(err)
	}
	f := s.failed.Load()
	if f == nil {
		return nil
	}
	if !errors.Is(f.err, store.ErrFull) {
		fatal(s.Options, f.err)
	}
	return f.err
}

// refused records that the log could not be written or synced.
func (s *Engine) refused(err error) {
	s.fail(fmt.Errorf("store: %s: write-ahead log: %w", s.Dir, err))
}

// Lock takes the stripes of sls in order and returns the function that unlocks them.
func (s *Engine) Lock(sls []partition.Slice) (unlock func()) {
	var one [4]int
	ids := one[:0]
	for _, sl := range sls {
		ids = append(ids, int((uint64(sl)*0x9e3779b97f4a7c15)>>52)%stripes)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, i := range ids {
		s.locks[i].Lock()
	}
	return func() {
		for _, i := range ids {
			s.locks[i].Unlock()
		}
	}
}

// fewRows is the number of rows that are deleted one by one. A range deletion costs every reader of
// the memtable something, so it is only worth it for many rows. When a swarm changes, slices are
// dropped by the thousand, and most are empty.
const fewRows = 512

// DeleteRange deletes the rows on disk from lower up to, but not including, upper.
func (t *Batch) DeleteRange(lower, upper []byte) error {
	rows := 0
	return t.s.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		if rows++; rows > fewRows {
			return false, t.Rows.DeleteRange(lower, upper, nil)
		}
		return true, t.Rows.Delete(key, nil)
	})
}

// Close frees the batch. Readers of the change log and of the outbox may then pass its numbers:
// they are durable, or they never will be.
func (t *Batch) Close() {
	if t.ticket != nil {
		t.s.Seqs.done(t.ticket)
	}
	if t.logged > 0 {
		t.s.News.tell()
	}
	if t.s.failed.Load() == nil {
		_ = t.Rows.Close() // only returns memory
	}
}

// Seq returns the next sequence number, for this batch.
func (t *Batch) Seq() (uint64, error) {
	if t.ticket == nil {
		t.ticket = t.s.Seqs.open()
	}
	return t.s.take()
}

// Count returns the counts of a site. The caller changes them in place.
func (t *Batch) Count(id format.SiteID) (*format.Counts, error) {
	if c, ok := t.counts[id]; ok {
		return &c.now, nil
	}
	c := &countChange{}
	v, err := t.s.Get(format.SitePrefix(format.TabCount, id))
	if err == nil {
		c.old, err = format.DecodeCounts(v)
	}
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return nil, fmt.Errorf("store: counts of %s: %w", id.Site, err)
	}
	c.now = c.old
	t.counts[id] = c
	return &c.now, nil
}

// Change appends k to the change log.
func (t *Batch) Change(k partition.Key) error { return t.ChangePost(k, "") }

// ChangePost appends a post of k to the change log, or k itself when post is "".
func (t *Batch) ChangePost(k partition.Key, post string) error {
	seq, err := t.Seq()
	if err != nil {
		return err
	}
	t.logged = seq
	value := []byte(k)
	if post != "" {
		value = append(append(value, format.SepByte), post...)
	}
	return t.Rows.Set(format.SeqKey(format.TabLog, seq), value, nil)
}

// Part returns what t does in sl. The caller holds the lock of sl.
func (t *Batch) Part(sl partition.Slice) *Part {
	p := t.Parts[sl]
	if p == nil {
		p = &Part{Log: t.s.Logs.Get(sl)}
		t.Parts[sl] = p
	}
	return p
}

// visible updates what is kept in memory after the batch was applied. The locks of its slices are
// held.
func (t *Batch) visible() {
	for sl, p := range t.Parts {
		t.total.add(p.Total)
		t.s.Totals.Of(sl).Add(p.Total)
		t.s.Logs.put(sl, p.Log)
	}
	t.s.Totals.add(t.total)
	for _, seen := range t.seen {
		seen()
	}
	for old := t.s.Newest.Load(); t.logged > old &&
		!t.s.Newest.CompareAndSwap(old, t.logged); old = t.s.Newest.Load() {
	}
}

// durable records that the batch's log entries may be replicated.
func (t *Batch) durable() {
	for sl, p := range t.Parts {
		t.s.Logs.Synced(sl, p.Log.Last.Pos, p.Log.Cuts)
		t.Tell(sl, p)
	}
}

// Tell calls Options.Logged if the batch added entries to the log of sl.
func (t *Batch) Tell(sl partition.Slice, p *Part) {
	if p.grown && p.Log.On && t.s.Options.Logged != nil {
		t.s.Options.Logged(sl)
	}
}

// finish writes what comes last: the counter rows and the entries of the slices' logs.
func (t *Batch) finish() error {
	for _, last := range t.last {
		if err := last(); err != nil {
			return err
		}
	}
	for id, c := range t.counts {
		if c.now == c.old {
			continue
		}
		if err := t.Rows.Set(format.SitePrefix(format.TabCount, id), c.now.Encode(), nil); err != nil {
			return err
		}
		total := &t.Part(id.Slice).Total
		total.Counts(c.old, -1)
		total.Counts(c.now, 1)
	}
	return t.entries()
}

// Sequencer gives out the numbers that order admissions, outbox rows and changes. A reader that
// follows them must not pass a number that may still appear. Horizon is below every number of a
// batch that is not durable yet.
type Sequencer struct {
	mu    sync.Mutex
	next  uint64    // the next number to give out
	limit uint64    // reserved on disk: after a crash, no lower number is given out again
	live  []*ticket // in order of first
}

// ticket is one batch that took numbers, from first on.
type ticket struct {
	first uint64
	done  bool
}

func (q *Sequencer) open() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{first: q.next}
	q.live = append(q.live, t)
	return t
}

func (q *Sequencer) done(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.done = true
	for len(q.live) > 0 && q.live[0].done {
		q.live = q.live[1:]
	}
}

// Horizon returns the last number that a reader may pass.
func (q *Sequencer) Horizon() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.live) > 0 {
		return q.live[0].first - 1
	}
	return q.next - 1
}

// seqBlock is how many numbers are reserved at a time. Each reservation costs one extra sync, and
// each Open skips up to that many numbers.
const seqBlock = 1 << 20

// take returns the next number, and reserves a new block when the last one is used up.
func (s *Engine) take() (uint64, error) {
	q := &s.Seqs
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next >= q.limit {
		if err := s.reserve(q.next); err != nil {
			return 0, err
		}
	}
	q.next++
	return q.next - 1, nil
}

// reserve makes durable that the next seqBlock numbers from next on may be in use. The caller holds
// Seqs.mu, or no other goroutine uses s yet.
func (s *Engine) reserve(next uint64) error {
	b := s.DB.NewBatch()
	_ = b.Set(format.MetaKey(format.MetaSeq), binary.BigEndian.AppendUint64(nil, next+seqBlock), nil)
	if err := s.Commit(b); err != nil {
		return err
	}
	s.Seqs.limit = next + seqBlock
	return nil
}

// News wakes the goroutines that follow the change log.
type News struct {
	mu     sync.Mutex
	ch     chan struct{}
	closed bool
}

func (n *News) init() { n.ch = make(chan struct{}) }

func (n *News) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		close(n.ch)
		n.ch = make(chan struct{})
	}
}

func (n *News) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.ch)
	}
}

// Wait returns a channel that is closed when the change log has new entries, or at Close.
func (n *News) Wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}
