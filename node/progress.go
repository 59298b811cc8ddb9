package node

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/node/api"
)

// Status says how fast pages are fetched by the mean of this span.
const (
	progressSpan  = time.Minute
	progressEvery = 5 * time.Second
)

// progress remembers how many fetches there were in the last minute. Its methods
// are safe for concurrent use.
type progress struct {
	mu      sync.Mutex
	samples []progressSample // the oldest first, none older than progressSpan but the first
}

type progressSample struct {
	at      time.Time
	fetches int64
}

// note adds a sample, and forgets those that are too old.
func (p *progress) note(at time.Time, fetches int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(p.samples, progressSample{at, fetches})
	for len(p.samples) > 1 && at.Sub(p.samples[1].at) >= progressSpan {
		p.samples = p.samples[1:]
	}
}

// rate is how many fetches a second there were since the oldest sample; 0 when
// nothing can be said yet.
func (p *progress) rate(at time.Time, fetches int64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.samples) == 0 {
		return 0
	}
	first := p.samples[0]
	if passed := at.Sub(first.at); passed >= time.Second && fetches > first.fetches {
		return float64(fetches-first.fetches) / passed.Seconds()
	}
	return 0
}

// of is the progress of a peer whose Keys, pending Keys and fetches are these.
func (p *progress) of(at time.Time, keys, pending, fetches int64) (a api.Progress) {
	if keys > 0 {
		a.Done = float64(keys-pending) / float64(keys)
	}
	a.Rate = p.rate(at, fetches)
	if a.Rate > 0 {
		a.Left = float64(pending) / a.Rate
	}
	return a
}

// runProgress takes a sample every few seconds, until ctx ends.
func (n *Node) runProgress(ctx context.Context) error {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		n.progress.note(time.Now(), n.store.Stats().Fetches)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
