package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// verdictsEvery is how old the counts of verdicts and languages that status shows may be: each verdict
// takes the list of all accounts with it from the index.
const verdictsEvery = 5 * time.Second

// verdictCounts are the accounts of the owned slices by verdict, and what is in the index by
// language, as the index has them.
type verdictCounts struct {
	mu        sync.Mutex
	at        time.Time
	now       map[string]int64
	languages map[string]int64
}

func (c *verdictCounts) counts(n *Node, owned []partition.Slice, now time.Time) (verdicts, languages map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && now.Sub(c.at) < verdictsEvery {
		return c.now, c.languages
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	out, err := n.index.Verdicts(ctx, owned)
	langs, failed := n.index.Languages()
	if err = errors.Join(err, failed); err != nil { // closing, or slow: what was known stays
		n.log.Debug("verdicts and languages are not counted", "err", err)
		return c.now, c.languages
	}
	if c.at = now; len(out) == 0 {
		out = nil
	}
	c.now, c.languages = out, langs
	return c.now, c.languages
}
