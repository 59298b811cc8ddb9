package node

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// verdictsEvery is how old the counts of verdicts that status shows may be: each takes the list of
// all accounts with that verdict from the index.
const verdictsEvery = 5 * time.Second

// verdictCounts are the accounts of the owned slices by verdict, as the index has them.
type verdictCounts struct {
	mu  sync.Mutex
	at  time.Time
	now map[string]int64
}

func (c *verdictCounts) counts(n *Node, owned []partition.Slice, now time.Time) map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && now.Sub(c.at) < verdictsEvery {
		return c.now
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	out, err := n.index.Verdicts(ctx, owned)
	if err != nil { // closing, or slow: what was known stays
		n.log.Debug("verdicts are not counted", "err", err)
		return c.now
	}
	if c.at = now; len(out) == 0 {
		out = nil
	}
	c.now = out
	return c.now
}
