package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// forwarder sends the outbox to the owners of its links (I2, I3). A row stays in the store until
// its owner's final answer. Everything here is a cache of rows on their way, so a crash loses none.
//
// One goroutine reads the outbox in order and gives the rows to lanes, one per owner. A lane has at
// most one message under way. A row that its lane cannot take is read again later, because the lane
// is full or the owner unreachable. The next reading starts at the lowest such sequence number.
type forwarder struct {
	n    *Node
	wake chan struct{}

	mu    sync.Mutex
	lanes map[string]*lane
	next  uint64 // the outbox was read up to here
	again int    // how often reread was called
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

// outboxPage is the number of rows in one reading.
const outboxPage = 2048

func newForwarder(n *Node) *forwarder {
	return &forwarder{n: n, wake: make(chan struct{}, 1), lanes: map[string]*lane{}}
}

// notify reports that the outbox may have new rows. It never blocks.
func (f *forwarder) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// reread starts again at the head of the outbox, because owners have changed.
func (f *forwarder) reread() {
	f.mu.Lock()
	f.next, f.again = 0, f.again+1
	for _, l := range f.lanes {
		if !l.busy {
			l.clear()
		}
		l.until, l.skipped, l.failures = time.Time{}, 0, 0
	}
	f.mu.Unlock()
	f.notify()
}

// run forwards until ctx ends or the store fails.
func (f *forwarder) run(ctx context.Context) error {
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
func (f *forwarder) deal(ctx context.Context, senders *sync.WaitGroup, fail chan<- error) error {
	f.retry(time.Now())
	for ctx.Err() == nil {
		f.mu.Lock()
		from, again := f.next, f.again
		f.mu.Unlock()
		rows, reached, err := f.n.store.Queue.Outbox(from, outboxPage, f.n.agreement.Ours)
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

// dealt gives rows to the lanes. They were read up to reached when reread had been called again
// times. If it was called since then, the reading may have left out rows of a slice that is owned
// only now. Then those rows are read again.
func (f *forwarder) dealt(rows []store.OutboxRow, reached uint64, again int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assign(rows)
	if f.again == again {
		f.next = reached
	}
}

// assign gives rows to their owners' lanes. f.mu is held.
func (f *forwarder) assign(rows []store.OutboxRow) {
	now := time.Now()
	for _, r := range rows {
		owner := f.n.laneOf(r.To)
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
func (f *forwarder) retry(now time.Time) {
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
func (f *forwarder) start(ctx context.Context, senders *sync.WaitGroup, fail chan<- error) {
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
func (f *forwarder) drain(ctx context.Context, l *lane) error {
	for {
		f.mu.Lock()
		if len(l.rows) == 0 || ctx.Err() != nil {
			l.busy = false
			f.mu.Unlock()
			f.notify()
			return nil
		}
		batch := l.rows[:min(len(l.rows), MaxForwardLinks)]
		f.mu.Unlock()

		final, wait, err := f.send(ctx, l.owner, batch)
		if err != nil {
			return err
		}
		f.settle(l, batch, final, wait)
	}
}

// settle records the result of batch, the first rows of l. final of them had a final answer.
func (f *forwarder) settle(l *lane, batch []store.OutboxRow, final int, wait time.Duration) {
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
func (f *forwarder) send(ctx context.Context, owner string, batch []store.OutboxRow) (int, time.Duration, error) {
	answers, wait, err := f.ask(ctx, owner, batch)
	if err != nil {
		return 0, 0, err
	}
	f.n.doubt(owner, batch, answers)
	done := make([]store.OutboxRow, 0, len(batch))
	for i, a := range answers {
		if final(a) {
			done = append(done, batch[i])
		}
	}
	if len(done) > 0 {
		if err := f.n.store.Queue.Sent(done); err != nil {
			return 0, 0, err
		}
		if owner != f.n.id {
			f.n.count.linksOut.Add(int64(len(done)))
		}
	}
	return len(done), wait, nil
}

// final reports whether an answer is the last one for a link (I2).
func final(a wire.ForwardAck_Answer) bool {
	return a == wire.ForwardAck_ANSWER_ADMITTED || a == wire.ForwardAck_ANSWER_KNOWN ||
		a == wire.ForwardAck_ANSWER_REFUSED
}

// ask gets the answers to batch from this peer's own registrar or from another peer. No answers
// means that none arrived. The error comes from the store alone.
func (f *forwarder) ask(ctx context.Context, owner string, batch []store.OutboxRow) ([]wire.ForwardAck_Answer,
	time.Duration, error) {
	if owner == f.n.id {
		items := make([]store.Admission, len(batch))
		for i, r := range batch {
			items[i] = r.Admission
			items[i].From = r.Slice
		}
		vs, err := f.n.admit(ctx, items)
		if err != nil {
			return nil, 0, err
		}
		answers := make([]wire.ForwardAck_Answer, len(vs))
		for i, v := range vs {
			answers[i] = v.answer
			if v.moved != nil {
				f.n.learn(batch[i], v.moved.To, v.moved.Gen)
			}
		}
		return answers, 200 * time.Millisecond, nil
	}
	req := &wire.Forward{Links: make([]*wire.Link, len(batch))}
	for i, r := range batch {
		r.From = r.Slice
		req.Links[i] = linkOf(r.Admission)
	}
	resp, err := f.n.swarm.Call(ctx, owner, &wire.Request{Body: &wire.Request_Forward{Forward: req}})
	if err != nil {
		f.n.log.Debug("forward", "peer", owner, "links", len(batch), "err", err)
		return nil, f.backoff(owner, err), nil
	}
	ack := resp.GetForward()
	if len(ack.GetAnswers()) != len(batch) {
		f.n.log.Warn("forward: answers do not match links", "peer", owner, "links", len(batch), "answers",
			len(ack.GetAnswers()))
		return nil, MaxCallBackoff, nil
	}
	for _, m := range ack.Moved {
		f.n.learn(batch[m.Link], partition.Slice(m.To), m.Gen)
	}
	return ack.Answers, max(200*time.Millisecond, time.Duration(ack.RetryAfterMs)*time.Millisecond), nil
}

// backoff doubles from 200 ms to MaxCallBackoff with each failure in a row. A longer delay that a
// busy peer asks for counts.
func (f *forwarder) backoff(owner string, err error) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := 200 * time.Millisecond << min(f.lanes[owner].failures, 7)
	var refusal *call.Refusal
	if errors.As(err, &refusal) && refusal.After > d {
		d = refusal.After
	}
	return min(d, MaxCallBackoff)
}
