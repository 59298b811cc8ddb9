package status

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/index"
)

// verdictsEvery is the greatest age of the counts of verdicts and languages in status. Each count
// of a verdict reads the list of all its accounts from the index.
const verdictsEvery = 5 * time.Second

// verdictCounts counts the accounts of the owned slices by verdict, and the entries of the index by
// language.
type verdictCounts struct {
	mu        sync.Mutex
	at        time.Time
	now       map[string]int64
	languages map[string]int64
}

// counts returns the counts, which are at most verdictsEvery old unless the index fails.
func (c *verdictCounts) counts(x *index.Index, log *slog.Logger, owned []partition.Slice,
	now time.Time) (verdicts, languages map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && now.Sub(c.at) < verdictsEvery {
		return c.now, c.languages
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	out, err := x.Verdicts(ctx, owned)
	langs, failed := x.Languages()
	if err = errors.Join(err, failed); err != nil { // closing or slow: the old counts stay
		log.Debug("verdicts and languages are not counted", "err", err)
		return c.now, c.languages
	}
	if c.at = now; len(out) == 0 {
		out = nil
	}
	c.now, c.languages = out, langs
	return c.now, c.languages
}
