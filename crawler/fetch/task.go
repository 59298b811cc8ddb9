package fetch

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Task is one due Key and what this peer knows about it.
type Task struct {
	Due  store.Due
	Site store.Site // a copy; Result.Site replaces it
	Now  time.Time
	// Checkpoint is what the last Result of this Key stored, on any peer; nil = nothing. Only Keys
	// of social services have one.
	Checkpoint []byte
	// Gate must be called before every request. The first call returns immediately unless the
	// volunteer's own limits apply. Later calls wait until the site allows the next request. Gate
	// fails when this peer may no longer fetch the Key.
	Gate func(ctx context.Context) error
	// Judge must be called when a response has arrived, before it is read. It returns when two
	// things are true: the swarm knows that this process is about to read the response, and there
	// is room for need bytes. need is the most memory that reading takes. It is 0 if the source
	// takes room in several steps. The caller calls done after reading and returns an error of
	// Judge unchanged. nil = no wait.
	Judge func(ctx context.Context, need int64) (done func(), err error)
	// Room is for Request.Room; nil = no limit.
	Room Room
	// Others lists other due Keys of the site, in slices that this peer may fetch, until take
	// returns false. Keys of the Key's own slice come first. In each slice, the longest due comes
	// first. Others reads a limited number of rows of each slice. A Source that requests several
	// things in one call uses it. Each of those Keys is still fetched in its turn. nil = other Keys
	// are unknown.
	Others func(take func(store.Due, partition.Slice) (more bool, err error)) error
}

// Judging calls t.Judge if it is set.
func (t Task) Judging(ctx context.Context, need int) (done func(), err error) {
	if t.Judge == nil {
		return func() {}, nil
	}
	return t.Judge(ctx, int64(need))
}

// Room waits until need bytes of memory are free, or until ctx is done. The caller reports to keep
// how many of them it uses in the end.
type Room func(ctx context.Context, need int64) (keep func(used int64), err error)

// Result is the result of one fetch.
type Result struct {
	Record *store.Record // nil if there is nothing to store
	Next   store.Next
	// Capture is the exchange, or the fact that there was one; see store.Commit. The crawler adds
	// which peer made it.
	Capture *store.Capture
	// Posts, Lists, Gaps and Checkpoint become durable in one batch with the record. store.Commit
	// defines what they must be. Their caps are store.MaxPosts, MaxListAccounts and others. A
	// source that has more says so (Next.State pending, due now) and is called again immediately.
	// The crawler adds which peer fetched them.
	Posts      []store.Record
	Lists      []store.ListPage
	Gaps       []store.Gap
	Checkpoint []byte
	Links      []store.Link // links to admit; the crawler drops those with NoFollow
	Site       store.Site   // politeness state after the fetch: delay, back-off, robots
	Bytes      int64        // received, for --max-bandwidth
	Reqs       int          // requests sent, robots.txt included

	// Again says that the fetch learned something only about the site, not about the Key: it
	// fetched robots.txt, or the address is busy. Record, Next, Links and their companion fields
	// are ignored. The Key is fetched again as soon as Site.NextAllowed and the delay allow it.
	Again bool
	// Hold is the time until which this peer sends no request to the site, because its rate budget
	// is used up. It is not stored, because another peer has its own budget. Zero = no wait.
	Hold time.Time
	// Planned says that the source itself chose Next.At; Options.Revisit of the crawler does not
	// change it. A pending Next without a Reason then means that part of the work is done. It is
	// not a failure.
	Planned bool
	// Kept, if not nil, is called when all of this is durable. It is not called if that fails, or
	// if Again is set.
	Kept func()
	// Asked is the time of the last certain contact with the site: the first byte of its response
	// came, or the attempt failed. Zero = the time when Fetch returned.
	Asked time.Time
	// Slow is the response time of the site. The next gap of the site is at least that long, so a
	// slow site gets fewer requests.
	Slow time.Duration
	// Stop names the limit or rule that stopped this Key or part of it ("robots", "body-size", …).
	// Stats counts these names. "" = none.
	Stop string
}

// Sleep waits for d or until ctx is done. Its only error is ctx.Err(). If d <= 0, it returns
// immediately.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
