package fetch

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Task is one due Key with what is known of it.
type Task struct {
	Due  store.Due
	Site store.Site // a copy; Result.Site replaces it
	Now  time.Time
	// Checkpoint is what the last Result of this Key left, on whichever peer; nil =
	// nothing. Of Keys of social services only.
	Checkpoint []byte
	// Gate is called before every request. The first call returns at once unless
	// the volunteer's own limits hold; later ones wait until the site may be asked
	// again. It fails when this peer may not fetch the Key any more.
	Gate func(ctx context.Context) error
	// Judge is called when an answer has come, before anything in it is read: it returns once the swarm knows that
	// this process is about to read it, and there is room for need bytes, the most that reading takes; 0 by who asks
	// several times. done says that it has been read; an error is returned as it is. nil = at once.
	Judge func(ctx context.Context, need int64) (done func(), err error)
	// Room is for Request.Room; nil = there is always room.
	Room Room
	// Others tells of other Keys of the site that are due, in slices that this peer may
	// fetch in, until take says no: those of the Key's own slice first, in each the longest due. Of a
	// Source that asks for several things in one call; each of them is fetched in its turn all the same. It
	// looks at so many rows of each slice only. nil = nothing is known of others.
	Others func(take func(store.Due, partition.Slice) (more bool, err error)) error
}

// Judging is t.Judge, if there is one.
func (t Task) Judging(ctx context.Context, need int) (done func(), err error) {
	if t.Judge == nil {
		return func() {}, nil
	}
	return t.Judge(ctx, int64(need))
}

// Room waits for need bytes of memory, until ctx is done; keep is told how many of them are used in the end.
type Room func(ctx context.Context, need int64) (keep func(used int64), err error)

// Result is what one fetch produced.
type Result struct {
	Record *store.Record // nil when there is nothing to keep
	Next   store.Next
	// Capture is the exchange, or that there was one; see store.Commit. The crawler
	// says which peer had it.
	Capture *store.Capture
	// Posts, Lists, Gaps and Checkpoint are made durable in one batch with the
	// record; see store.Commit for what they must be. Their caps are store.MaxPosts,
	// MaxListAccounts, …: a source that has more says so and is asked again at once
	// (Next.State pending, due now). The crawler says which peer had them.
	Posts      []store.Record
	Lists      []store.ListPage
	Gaps       []store.Gap
	Checkpoint []byte
	Links      []store.Link // what to admit; NoFollow ones are left out by the crawler
	Site       store.Site   // politeness state after the fetch: delay, back-off, robots
	Bytes      int64        // received, for --max-bandwidth
	Reqs       int          // requests made, robots.txt included

	// Again says that nothing was learnt of the Key, only of its site (robots.txt
	// was fetched, or its address is busy): Record, Next, Links and what comes beside them are not looked
	// at, and the Key is asked for again once Site.NextAllowed and the delay allow.
	Again bool
	// Hold is until when this peer asks nothing of the site, as its budget there is used
	// up. It is not kept: another peer has a budget of its own. Zero = no such wait.
	Hold time.Time
	// Planned says that Next.At is when the source wants to look again, whatever
	// Options.Revisit of the crawler says. A Next that is pending without a Reason is then a
	// part of the work done, and not a failure.
	Planned bool
	// Kept, when not nil, is called once all of this is durable, and not at all when that is not so, or Again.
	Kept func()
	// Asked is when the site was surely asked last: when the first byte of its
	// answer came, or the attempt failed. Zero = when Fetch returned.
	Asked time.Time
	// Slow is how long the site took to answer; the site's next gap is at least
	// that, so that a slow site is asked less.
	Slow time.Duration
	// Stop names the limit or rule that stopped this Key or part of it
	// ("robots", "body-size", …), for the counts of Stats. "" = none.
	Stop string
}

// Sleep waits for d, or until ctx is done, which is its only error. Without a wait
// (d <= 0) it returns at once.
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
