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

// Part is what a batch does to one slice, beside its rows.
type Part struct {
	Total TotalChange
	Log   SliceLog        // as the batch will leave it
	names []format.LogRow // rows written that no entry names yet
	grown bool            // the log has new entries
}

type countChange struct{ old, now format.Counts }

// Write makes one batch under the locks of its slices and answers when it is
// durable. The locks are held while build reads and while the batch becomes
// visible, not while the disk syncs: callers of one slice share syncs too.
//
// A batch becomes visible before it is durable, so what build read may not be
// durable yet; but the log is written in order, so it is once a later sync of
// ours is done. When build writes nothing, write still syncs if any write is
// under way: no answer, "known" included, gets ahead of the disk (I2).
//
// After an error of build nothing is changed. After an error of the disk the
// batch may be there or not after the next Open, whole in either case, and this
// Store writes no more.
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

// Ready refuses a write that cannot be.
func (s *Engine) Ready() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	return s.space.check()
}

// apply is the part of write under the locks.
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
		_ = t.Rows.LogData([]byte{0}, nil) // rides on the next sync, changes nothing
	}
	s.unsynced.Add(1)
	if err := s.DB.ApplyNoSyncWait(t.Rows, pebble.Sync); err != nil {
		return false, err
	}
	t.visible()
	return true, nil
}

// Commit makes b durable.
func (s *Engine) Commit(b *pebble.Batch) error {
	if err := s.DB.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return err
	}
	if err := s.synced(b); err != nil {
		return err
	}
	return b.Close()
}

// synced waits until b is durable. When the log was refused, before or after b,
// Pebble does not know (logFS): a full disk is the caller's to report; any
// other fault is fatal, as nothing can be promised any more.
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

// refused is told of the log that could not be written or synced.
func (s *Engine) refused(err error) {
	s.fail(fmt.Errorf("store: %s: write-ahead log: %w", s.Dir, err))
}

// Lock takes the stripes of sls in order and answers how to let go.
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

// fewRows are deleted one by one: a range deleted, of which every reader of the
// memtable must know, is worth its cost only for many. Slices are dropped by the
// thousand when a swarm changes, and most are empty.
const fewRows = 512

// DeleteRange deletes the rows on disk from lower up to upper.
func (t *Batch) DeleteRange(lower, upper []byte) error {
	rows := 0
	return t.s.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		if rows++; rows > fewRows {
			return false, t.Rows.DeleteRange(lower, upper, nil)
		}
		return true, t.Rows.Delete(key, nil)
	})
}

// Close frees the batch and lets readers of the logs pass its numbers: they
// are durable, or never will be.
func (t *Batch) Close() {
	if t.ticket != nil {
		t.s.Seqs.done(t.ticket)
	}
	if t.logged > 0 {
		t.s.News.tell()
	}
	if t.s.failed.Load() == nil {
		_ = t.Rows.Close() // only puts memory back
	}
}

// Seq takes the next sequence number for this batch.
func (t *Batch) Seq() (uint64, error) {
	if t.ticket == nil {
		t.ticket = t.s.Seqs.open()
	}
	return t.s.take()
}

// Count is the site's totals, to be changed in place.
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

// ChangePost appends a post of k to the change log, or k itself.
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

// Part is t's part in sl. The lock of sl is held.
func (t *Batch) Part(sl partition.Slice) *Part {
	p := t.Parts[sl]
	if p == nil {
		p = &Part{Log: t.s.Logs.Get(sl)}
		t.Parts[sl] = p
	}
	return p
}

// visible brings what is kept in memory up to the batch just applied. The locks
// of its slices are held.
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

// durable says that the batch's log entries may be replicated.
func (t *Batch) durable() {
	for sl, p := range t.Parts {
		t.s.Logs.Synced(sl, p.Log.Last.Pos, p.Log.Cuts)
		t.Tell(sl, p)
	}
}

func (t *Batch) Tell(sl partition.Slice, p *Part) {
	if p.grown && p.Log.On && t.s.Options.Logged != nil {
		t.s.Options.Logged(sl)
	}
}

// finish writes what is left to the end, the counter rows and the entries of the slices' logs.
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

// Sequencer hands out the numbers that order admissions, outbox rows and
// changes. A reader that follows them must not pass a number that may still
// appear: horizon is below every number of a batch that is not durable yet.
type Sequencer struct {
	mu    sync.Mutex
	next  uint64    // to hand out
	limit uint64    // reserved on disk: numbers below are never handed out again
	live  []*ticket // in order of first
}

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

// Horizon is the last number that a reader may pass.
func (q *Sequencer) Horizon() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.live) > 0 {
		return q.live[0].first - 1
	}
	return q.next - 1
}

// seqBlock is how many numbers are reserved at a time: one extra sync for each,
// and as many are skipped at an Open.
const seqBlock = 1 << 20

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

// reserve makes durable that numbers from next on may be in use. Callers hold
// seqs.mu, or are alone.
func (s *Engine) reserve(next uint64) error {
	b := s.DB.NewBatch()
	_ = b.Set(format.MetaKey(format.MetaSeq), binary.BigEndian.AppendUint64(nil, next+seqBlock), nil)
	if err := s.Commit(b); err != nil {
		return err
	}
	s.Seqs.limit = next + seqBlock
	return nil
}

// News wakes those who follow the change log.
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

func (n *News) Wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}
