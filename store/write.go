package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// txn is one batch being made. It lives while the locks of its slices are held.
type txn struct {
	s      *Store
	b      *pebble.Batch
	counts map[siteID]*countChange
	parts  map[partition.Slice]*part
	total  totalChange // of the store, beside those of the parts
	ticket *ticket     // nil until a sequence number is taken
	logged uint64      // its last entry in the change log, 0 = none
	// replica: what is written is what an owner's log names (ApplyLog).
	replica  bool
	homed    map[partition.Unit]uint64 // units that came to a geo slice
	paced    map[siteID]bool           // sites that came to a geo slice
	captured map[string]bool           // rows of captures: put, or dropped
	bodies   map[bodyID]*bodyUse
	items    map[string][]byte // states of items written, by row
	due      map[siteID][]byte // the first row that comes into each queue
	// Of files: those that a post or a profile named before this batch, and those that one names in it; and what those
	// written count as.
	left, named map[partition.Key]bool
	sizes       map[partition.Key]fileSize
}

// part is what a batch does to one slice, beside its rows.
type part struct {
	total totalChange
	log   sliceLog // as the batch will leave it
	names []logRow // rows written that no entry names yet
	grown bool     // the log has new entries
}

type countChange struct{ old, now counts }

// write makes one batch under the locks of its slices and answers when it is
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
func (s *Store) write(sls []partition.Slice, build func(t *txn) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	t := s.newTxn()
	defer t.close()
	applied, err := s.apply(t, sls, build)
	if err != nil || !applied {
		return err
	}
	if err := s.synced(t.b); err != nil {
		return err
	}
	s.unsynced.Add(-1)
	t.durable()
	return nil
}

func (s *Store) newTxn() *txn {
	return &txn{s: s, b: s.db.NewBatch(), counts: make(map[siteID]*countChange), parts: make(map[partition.Slice]*part),
		captured: make(map[string]bool), bodies: make(map[bodyID]*bodyUse), due: make(map[siteID][]byte)}
}

// ready refuses a write that cannot be.
func (s *Store) ready() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	return s.space.check()
}

// apply is the part of write under the locks.
func (s *Store) apply(t *txn, sls []partition.Slice, build func(t *txn) error) (applied bool, err error) {
	defer s.lock(sls)()
	if err := build(t); err != nil {
		return false, err
	}
	if err := t.finish(); err != nil {
		return false, err
	}
	if t.b.Empty() {
		if s.unsynced.Load() == 0 {
			return false, nil
		}
		_ = t.b.LogData([]byte{0}, nil) // rides on the next sync, changes nothing
	}
	s.unsynced.Add(1)
	if err := s.db.ApplyNoSyncWait(t.b, pebble.Sync); err != nil {
		return false, err
	}
	t.visible()
	return true, nil
}

// commit makes b durable.
func (s *Store) commit(b *pebble.Batch) error {
	if err := s.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
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
func (s *Store) synced(b *pebble.Batch) error {
	if err := b.SyncWait(); err != nil {
		s.refused(err)
	}
	f := s.failed.Load()
	if f == nil {
		return nil
	}
	if !errors.Is(f.err, ErrFull) {
		s.opts.fatal(f.err)
	}
	return f.err
}

// refused is told of the log that could not be written or synced.
func (s *Store) refused(err error) {
	s.fail(fmt.Errorf("store: %s: write-ahead log: %w", s.dir, err))
}

// lock takes the stripes of sls in order and answers how to let go.
func (s *Store) lock(sls []partition.Slice) (unlock func()) {
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

// deleteRange deletes the rows on disk from lower up to upper.
func (t *txn) deleteRange(lower, upper []byte) error {
	rows := 0
	return t.s.scan(lower, upper, func(key, _ []byte) (bool, error) {
		if rows++; rows > fewRows {
			return false, t.b.DeleteRange(lower, upper, nil)
		}
		return true, t.b.Delete(key, nil)
	})
}

// close frees the batch and lets readers of the logs pass its numbers: they
// are durable, or never will be.
func (t *txn) close() {
	if t.ticket != nil {
		t.s.seqs.done(t.ticket)
	}
	if t.logged > 0 {
		t.s.news.tell()
	}
	if t.s.failed.Load() == nil {
		_ = t.b.Close() // only puts memory back
	}
}

// seq takes the next sequence number for this batch.
func (t *txn) seq() (uint64, error) {
	if t.ticket == nil {
		t.ticket = t.s.seqs.open()
	}
	return t.s.take()
}

// count is the site's totals, to be changed in place.
func (t *txn) count(id siteID) (*counts, error) {
	if c, ok := t.counts[id]; ok {
		return &c.now, nil
	}
	c := &countChange{}
	v, err := t.s.get(sitePrefix(tabCount, id))
	if err == nil {
		c.old, err = decodeCounts(v)
	}
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, fmt.Errorf("store: counts of %s: %w", id.site, err)
	}
	c.now = c.old
	t.counts[id] = c
	return &c.now, nil
}

// keyState is the row of k as this batch would leave it only when the batch
// has not written it: callers keep track of what they write.
func (t *txn) keyState(id siteID, k partition.Key) (keyState, error) {
	v, err := t.s.get(keyRow(tabKey, id, k))
	if err != nil {
		return keyState{}, err
	}
	return decodeKeyState(v)
}

// put writes the row of k, its place in the due index, and counts it. old is
// nil for a new Key.
func (t *txn) put(id siteID, k partition.Key, old *keyState, now keyState) error {
	c, err := t.count(id)
	if err != nil {
		return err
	}
	if old != nil {
		c.state[old.state]--
		if !old.at.IsZero() {
			c.due--
			_ = t.b.Delete(dueKey(id, *old), nil)
		}
	}
	c.state[now.state]++
	if !now.at.IsZero() {
		c.due++
		row := dueKey(id, now)
		_ = t.b.Set(row, []byte(k), nil)
		if first := t.due[id]; first == nil || bytes.Compare(row, first) < 0 {
			t.due[id] = row
		}
	}
	row := keyRow(tabKey, id, k)
	value := now.encode()
	t.name(id.slice, nameKey, row[9:], len(value), now.fetched)
	return t.b.Set(row, value, nil)
}

// log appends k to the change log.
func (t *txn) log(k partition.Key) error { return t.logPost(k, "") }

// logPost appends a post of k to the change log, or k itself.
func (t *txn) logPost(k partition.Key, post string) error {
	seq, err := t.seq()
	if err != nil {
		return err
	}
	t.logged = seq
	value := []byte(k)
	if post != "" {
		value = append(append(value, sepByte), post...)
	}
	return t.b.Set(seqKey(tabLog, seq), value, nil)
}

// part is t's part in sl. The lock of sl is held.
func (t *txn) part(sl partition.Slice) *part {
	p := t.parts[sl]
	if p == nil {
		p = &part{log: t.s.logs.get(sl)}
		t.parts[sl] = p
	}
	return p
}

// visible brings what is kept in memory up to the batch just applied. The locks
// of its slices are held.
func (t *txn) visible() {
	for sl, p := range t.parts {
		t.total.add(p.total)
		t.s.totals.of(sl).add(p.total)
		t.s.logs.put(sl, p.log)
	}
	t.s.totals.add(t.total)
	for id, row := range t.due {
		t.s.fronts.came(id, row)
	}
	for old := t.s.changed.Load(); t.logged > old &&
		!t.s.changed.CompareAndSwap(old, t.logged); old = t.s.changed.Load() {
	}
}

// durable says that the batch's log entries may be replicated.
func (t *txn) durable() {
	for sl, p := range t.parts {
		t.s.logs.synced(sl, p.log.last.pos, p.log.cuts)
		t.tell(sl, p)
	}
}

func (t *txn) tell(sl partition.Slice, p *part) {
	if p.grown && p.log.on && t.s.opts.Logged != nil {
		t.s.opts.Logged(sl)
	}
}

// finish writes the bodies, the counter rows and the entries of the slices' logs.
func (t *txn) finish() error {
	if err := t.endBodies(); err != nil {
		return err
	}
	for id, c := range t.counts {
		if c.now == c.old {
			continue
		}
		if err := t.b.Set(sitePrefix(tabCount, id), c.now.encode(), nil); err != nil {
			return err
		}
		total := &t.part(id.slice).total
		total.counts(c.old, -1)
		total.counts(c.now, 1)
	}
	return t.entries()
}

// sequencer hands out the numbers that order admissions, outbox rows and
// changes. A reader that follows them must not pass a number that may still
// appear: horizon is below every number of a batch that is not durable yet.
type sequencer struct {
	mu    sync.Mutex
	next  uint64    // to hand out
	limit uint64    // reserved on disk: numbers below are never handed out again
	live  []*ticket // in order of first
}

type ticket struct {
	first uint64
	done  bool
}

func (q *sequencer) open() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{first: q.next}
	q.live = append(q.live, t)
	return t
}

func (q *sequencer) done(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.done = true
	for len(q.live) > 0 && q.live[0].done {
		q.live = q.live[1:]
	}
}

// horizon is the last number that a reader may pass.
func (q *sequencer) horizon() uint64 {
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

func (s *Store) take() (uint64, error) {
	q := &s.seqs
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
func (s *Store) reserve(next uint64) error {
	b := s.db.NewBatch()
	_ = b.Set(metaKey(metaSeq), binary.BigEndian.AppendUint64(nil, next+seqBlock), nil)
	if err := s.commit(b); err != nil {
		return err
	}
	s.seqs.limit = next + seqBlock
	return nil
}

// news wakes those who follow the change log.
type news struct {
	mu     sync.Mutex
	ch     chan struct{}
	closed bool
}

func (n *news) init() { n.ch = make(chan struct{}) }

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		close(n.ch)
		n.ch = make(chan struct{})
	}
}

func (n *news) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.ch)
	}
}

func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}
