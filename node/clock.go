package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

// clockLife is how long status shows that rows had times in the future.
const clockLife = 10 * time.Minute

// clockAhead records which peers sent rows with times in the future (store.MaxAhead), which were
// left out. Then that peer's clock is ahead, or this peer's clock is behind.
type clockAhead struct {
	n  *Node
	mu sync.Mutex
	by map[string]seenAhead // by the owner of the slice; a few entries
}

// seenAhead says by how much rows were ahead, and when they arrived.
type seenAhead struct {
	by time.Duration
	at time.Time
}

func newClockAhead(n *Node) *clockAhead { return &clockAhead{n: n, by: map[string]seenAhead{}} }

// saw is store.Options.Ahead.
func (c *clockAhead) saw(sl partition.Slice, rows int, by time.Duration) {
	c.n.count.rowsAhead.Add(int64(rows))
	owner, now := "", time.Now()
	if o := c.n.quorum.Owner(sl); o != c.n.id {
		owner = o
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.by[owner]; !ok || now.Sub(old.at) > clockLife {
		c.n.log.Warn("rows of the future are left out: check the clocks", "owner", owner, "slice", sl,
			"ahead", by.Round(time.Second))
	}
	c.by[owner] = seenAhead{by, now}
}

// status lists what was seen within clockLife, the largest difference first. Peer "" means that a
// peer sent such rows of a slice that this peer owns.
func (c *clockAhead) status(now time.Time) (out []api.ClockAhead) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.by {
		if now.Sub(s.at) > clockLife {
			delete(c.by, id)
			continue
		}
		out = append(out, api.ClockAhead{Peer: id, Seconds: s.by.Seconds()})
	}
	slices.SortFunc(out, func(a, b api.ClockAhead) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Peer, b.Peer))
	})
	return out
}
