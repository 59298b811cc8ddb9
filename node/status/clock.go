package status

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// clockLife is how long status shows that rows had times in the future.
const clockLife = 10 * time.Minute

// Clock records which peers sent rows with times in the future (store.MaxAhead), which were left
// out. Then that peer's clock is ahead, or this peer's clock is behind.
type Clock struct {
	rows atomic.Int64 // rows left out

	mu     sync.Mutex
	self   string
	quorum *quorum.Machine
	log    *slog.Logger
	by     map[string]seenAhead // by the owner of the slice; a few entries
}

// Open says who this peer is and who owns the slices. No rows may come before.
func (c *Clock) Open(self string, q *quorum.Machine, log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self, c.quorum, c.log, c.by = self, q, log, map[string]seenAhead{}
}

// seenAhead says by how much rows were ahead, and when they arrived.
type seenAhead struct {
	by time.Duration
	at time.Time
}

// Saw is store.Options.Ahead.
func (c *Clock) Saw(sl partition.Slice, rows int, by time.Duration) {
	c.rows.Add(int64(rows))
	c.mu.Lock()
	defer c.mu.Unlock()
	owner, now := "", time.Now()
	if o := c.quorum.Owner(sl); o != c.self {
		owner = o
	}
	if old, ok := c.by[owner]; !ok || now.Sub(old.at) > clockLife {
		c.log.Warn("rows of the future are left out: check the clocks", "owner", owner, "slice", sl,
			"ahead", by.Round(time.Second))
	}
	c.by[owner] = seenAhead{by, now}
}

// status lists what was seen within clockLife, the largest difference first. Peer "" means that a
// peer sent such rows of a slice that this peer owns.
func (c *Clock) status(now time.Time) (out []api.ClockAhead) {
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
