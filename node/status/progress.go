package status

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/node/api"
)

// Status shows the mean fetch rate over this span.
const (
	progressSpan  = time.Minute
	progressEvery = 5 * time.Second
)

// progress remembers the number of fetches in the last minute. Its methods are safe for concurrent
// use.
type progress struct {
	mu      sync.Mutex
	samples []progressSample // oldest first; only the first may be older than progressSpan
}

// progressSample is the number of fetches since the data directory was made, at a time.
type progressSample struct {
	at      time.Time
	fetches int64
}

// note adds a sample and forgets samples that are too old.
func (p *progress) note(at time.Time, fetches int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(p.samples, progressSample{at, fetches})
	for len(p.samples) > 1 && at.Sub(p.samples[1].at) >= progressSpan {
		p.samples = p.samples[1:]
	}
}

// rate returns the fetches per second since the oldest sample, or 0 if that is not known yet.
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

// of returns the progress of a peer with these numbers of Keys, pending Keys and fetches.
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

// Run takes a sample every progressEvery until ctx ends.
func (b *Board) Run(ctx context.Context) error {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		b.progress.note(time.Now(), b.Store.Stats().Fetches)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
