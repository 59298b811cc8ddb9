package forward

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Forwarder sends the outbox to the owners of its links (I2, I3). A row stays in the store until
// its owner's final answer. Everything here is a cache of rows on their way, so a crash loses none.
//
// One goroutine reads the outbox in order and gives the rows to lanes, one per owner. A lane has at
// most one message under way. A row that its lane cannot take is read again later, because the lane
// is full or the owner unreachable. The next reading starts at the lowest such sequence number.
type Forwarder struct {
	o      Options
	admits *Registrar
	wake   chan struct{}
	lookup chan partition.Slice // slices whose owner in another zone is wanted

	seeding atomic.Int64 // calls of Seed and SeedUntilDone under way

	mu    sync.Mutex
	lanes map[string]*lane
	next  uint64 // the outbox was read up to here
	again int    // how often Reread was called
}

// lane holds the rows for one owner.
type lane struct {
	owner    string
	rows     []store.OutboxRow
	has      map[uint64]bool // the Seq of each row
	busy     bool            // a goroutine is sending
	failures int             // failures in a row
	until    time.Time       // do not send before this
	skipped  uint64          // a row at or after this one was left in the store; 0 = none
}

// Limits of forwarding.
const (
	MaxLinks   = 1000             // links in one message
	MaxLane    = 8192             // links on their way to one peer, in memory
	MaxBackoff = 15 * time.Second // between attempts to reach a peer
)

// outboxPage is the number of rows in one reading.
const outboxPage = 2048

// New returns a Forwarder that admits the links of this peer's own slices with r.
func New(o Options, r *Registrar) *Forwarder {
	return &Forwarder{o: o, admits: r, lookup: make(chan partition.Slice, lookupQueue),
		wake: make(chan struct{}, 1), lanes: map[string]*lane{}}
}

// Notify reports that the outbox may have new rows. It never blocks.
func (f *Forwarder) Notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Reread starts again at the head of the outbox, because owners have changed.
func (f *Forwarder) Reread() {
	f.mu.Lock()
	f.next, f.again = 0, f.again+1
	for _, l := range f.lanes {
		if !l.busy {
			l.clear()
		}
		l.until, l.skipped, l.failures = time.Time{}, 0, 0
	}
	f.mu.Unlock()
	f.Notify()
}

// Run forwards until ctx ends or the store fails.
func (f *Forwarder) Run(ctx context.Context) error {
	var senders sync.WaitGroup
	defer senders.Wait()
	fail := make(chan error, 1)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := f.deal(ctx, &senders, fail); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-fail:
			return err
		case <-f.wake:
		case <-tick.C:
		}
	}
}

// deal reads the outbox from where it stopped, and starts the lanes that have rows to send.
func (f *Forwarder) deal(ctx context.Context, senders *sync.WaitGroup, fail chan<- error) error {
	f.retry(time.Now())
	for ctx.Err() == nil {
		f.mu.Lock()
		from, again := f.next, f.again
		f.mu.Unlock()
		rows, reached, err := f.o.Store.Queue.Outbox(from, outboxPage, f.o.Agreement.Ours)
		if err != nil {
			return err
		}
		if reached > from {
			f.dealt(rows, reached, again)
		}
		f.start(ctx, senders, fail)
		if reached == from {
			return nil
		}
	}
	return nil
}

// dealt gives rows to the lanes. They were read up to reached when Reread had been called again
// times. If it was called since then, the reading may have left out rows of a slice that is owned
// only now. Then those rows are read again.
func (f *Forwarder) dealt(rows []store.OutboxRow, reached uint64, again int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assign(rows)
	if f.again == again {
		f.next = reached
	}
}

// assign gives rows to their owners' lanes. f.mu is held.
func (f *Forwarder) assign(rows []store.OutboxRow) {
	now := time.Now()
	for _, r := range rows {
		owner := f.OwnerOf(r.To)
		l := f.lanes[owner]
		if l == nil {
			l = &lane{owner: owner, has: map[uint64]bool{}}
			f.lanes[owner] = l
		}
		if l.has[r.Seq] {
			continue
		}
		if owner == "" || l.skipped != 0 || len(l.rows) >= MaxLane || now.Before(l.until) {
			if l.skipped == 0 || r.Seq < l.skipped {
				l.skipped = r.Seq
			}
			continue
		}
		l.rows, l.has[r.Seq] = append(l.rows, r), true
	}
}

// clear forgets the rows, which are still in the store.
func (l *lane) clear() {
	l.rows = nil
	clear(l.has)
}

// first returns the lowest Seq of the rows. They may be out of order: owners change, and a page may
// have been read before one of its rows was sent.
func (l *lane) first() uint64 {
	low := l.rows[0].Seq
	for _, r := range l.rows {
		low = min(low, r.Seq)
	}
	return low
}

// retry moves the reading position back to the first row that a lane had to leave and could take
// now.
func (f *Forwarder) retry(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lanes {
		if l.skipped != 0 && !now.Before(l.until) && len(l.rows) < MaxLane/2 {
			if f.next >= l.skipped {
				f.next = l.skipped - 1
			}
			l.skipped = 0
		}
	}
}

// start starts a goroutine for each idle lane that has rows.
func (f *Forwarder) start(ctx context.Context, senders *sync.WaitGroup, fail chan<- error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, l := range f.lanes {
		if l.busy || len(l.rows) == 0 || now.Before(l.until) {
			continue
		}
		l.busy = true
		senders.Go(func() {
			if err := f.drain(ctx, l); err != nil && ctx.Err() == nil {
				select {
				case fail <- err:
				default:
				}
			}
		})
	}
}

// drain sends a lane's rows, one message at a time, until the lane is empty or its owner cannot
// take more. It returns only store errors.
func (f *Forwarder) drain(ctx context.Context, l *lane) error {
	for {
		f.mu.Lock()
		if len(l.rows) == 0 || ctx.Err() != nil {
			l.busy = false
			f.mu.Unlock()
			f.Notify()
			return nil
		}
		batch := l.rows[:min(len(l.rows), MaxLinks)]
		f.mu.Unlock()

		final, wait, err := f.send(ctx, l.owner, batch)
		if err != nil {
			return err
		}
		f.settle(l, batch, final, wait)
	}
}

// settle records the result of batch, the first rows of l. final of them had a final answer.
func (f *Forwarder) settle(l *lane, batch []store.OutboxRow, final int, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if final < len(batch) { // the rest is in the store and is read again
		if first := l.first(); l.skipped == 0 || first < l.skipped {
			l.skipped = first
		}
		l.clear()
		l.until = time.Now().Add(wait)
		l.failures++
		return
	}
	for _, r := range batch {
		delete(l.has, r.Seq)
	}
	l.rows, l.failures = append([]store.OutboxRow(nil), l.rows[len(batch):]...), 0
}

// send forwards batch to owner and deletes the rows with a final answer. It returns their number,
// and how long to wait before the rest is tried again.
func (f *Forwarder) send(ctx context.Context, owner string, batch []store.OutboxRow) (int, time.Duration, error) {
	items := make([]store.Admission, len(batch))
	for i, r := range batch {
		items[i] = r.Admission
		items[i].From = r.Slice
	}
	vs, wait, err := f.ask(ctx, owner, items)
	if unanswered(err) {
		f.o.Logger.Debug("forward", "peer", owner, "links", len(batch), "err", err)
		f.doubt(owner, batch, nil)
		return 0, f.backoff(owner, err), nil
	}
	if err != nil {
		return 0, 0, err
	}
	f.doubt(owner, batch, vs)
	done := make([]store.OutboxRow, 0, len(batch))
	for i, v := range vs {
		if v.Moved != nil {
			f.learn(batch[i], v.Moved.To, v.Moved.Gen)
		}
		if v.Final() {
			done = append(done, batch[i])
		}
	}
	if len(done) > 0 {
		if err := f.o.Store.Queue.Sent(done); err != nil {
			return 0, 0, err
		}
	}
	return len(done), wait, nil
}

// learn records that r's unit has moved on from r.To, as the owner of r.To reports. A false report
// harms only that owner's own units.
func (f *Forwarder) learn(r store.OutboxRow, to partition.Slice, gen uint64) {
	if f.o.Placer == nil || r.To.IsHash() || !f.o.Placer.Has(to) {
		return
	}
	had, err := f.o.Store.Queue.PlacementOf(r.Slice, r.Key)
	if err != nil || had.To != r.To || gen <= had.Gen {
		return
	}
	had.To, had.Gen = to, gen
	if err := f.o.Store.Queue.Learn(r.Slice, r.Key, had); err != nil {
		f.o.Logger.Warn("placement not learnt", "key", r.Key, "err", err)
	}
}

// backoff doubles from 200 ms to MaxBackoff with each failure in a row. A longer delay that a
// busy peer asks for counts.
func (f *Forwarder) backoff(owner string, err error) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := 200 * time.Millisecond << min(f.lanes[owner].failures, 7)
	var refusal *call.Refusal
	if errors.As(err, &refusal) && refusal.After > d {
		d = refusal.After
	}
	return min(d, MaxBackoff)
}
