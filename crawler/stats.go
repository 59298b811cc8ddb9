package crawler

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Stats are what a Crawler did and does. Counts are since New.
type Stats struct {
	Fetching  int   // Keys picked and not yet committed
	Requests  int64 // made, robots.txt included
	Fetched   int64 // commits with a record
	Failed    int64 // commits that say try again
	Refused   int64 // commits that say never
	Bytes     int64 // received
	Deferred  int64 // turns that came later for the pace of a domain
	Sites     int   // with rows in the frontier
	ReadyKeys int   // due rows held in memory
	Ready     int   // sites that could be asked at once
	Stuck     int64 // fetches that made no progress and were cancelled
	Abandoned int   // of them, those that did not end and still run, with nobody waiting for them
	// Suspects are fetches of Keys that were under way when a process died, Quarantined the Keys left alone for that,
	// since New.
	Suspects, Quarantined int64
	Memory                Memory
	Loading               bool // backlogs of gained slices are still being read

	Limits []string         // the volunteer's limits that hold right now, in words
	Stops  map[string]int64 // by the rule or limit that stopped a Key or a part of it
	// Revisits are the visits of what had been fetched before, by what they found:
	// unchanged, changed, error, gone, redirect. nil without Options.Revisit.
	Revisits map[string]int64
	// Hints are what sitemaps and feeds said had changed of what was fetched before
	// that: heard, followed (the visit came sooner), and, by the visit after it, right
	// or wrong. nil without Options.Revisit.
	Hints map[string]int64
}

// Memory is that of pages that are read and judged. Counts are since New.
type Memory struct {
	Limit, Held, Most int64 // bytes; Most is the most that were held at once
	Waits             int64 // pages that waited for room
	Over              int64 // pages that may take more than there is, and had all of it
}

// Idle says that nothing is under way here. What is due is in store.Stats.
func (s Stats) Idle() bool { return s.Fetching == 0 && !s.Loading }

// counts are the counters behind Stats.
type counts struct {
	fetching, ungated                         atomic.Int64 // ungated: picked, its first request not yet allowed
	requests, fetched, failed, refused, bytes atomic.Int64
	stuck, abandoned                          atomic.Int64
	suspects, quarantined                     atomic.Int64

	mu       sync.Mutex
	stops    map[string]int64
	failures []Failure // the last maxFailures, a ring
	oldest   int       // in failures, once it is full
}

// Failure is a fetch that ended without what it was made for.
type Failure struct {
	Key    partition.Key
	State  store.State // pending: it is tried again
	Reason string
	At     time.Time
}

// maxFailures is how many failures a Crawler remembers.
const maxFailures = 200

func (c *counts) failure(f Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) < maxFailures {
		c.failures = append(c.failures, f)
		return
	}
	c.failures[c.oldest] = f
	c.oldest = (c.oldest + 1) % maxFailures
}

// Failures are the last few failures since New, newest first.
func (c *Crawler) Failures() []Failure {
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	all := slices.Concat(c.counts.failures[c.counts.oldest:], c.counts.failures[:c.counts.oldest])
	slices.Reverse(all)
	return all
}

func (c *counts) add(r Result) {
	c.requests.Add(int64(r.Reqs))
	c.bytes.Add(r.Bytes)
}

func (c *counts) committed(r Result) {
	if r.Record != nil {
		c.fetched.Add(1)
	}
	switch r.Next.State {
	case store.StatePending:
		if r.Next.Reason != "" { // else it goes on: see Result.Planned
			c.failed.Add(1)
		}
	case store.StateRefused:
		c.refused.Add(1)
	}
}

// maxStops bounds the words in Stats.Stops; sources use a few fixed ones.
const maxStops = 256

func (c *counts) stopped(stops map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for why, n := range stops {
		if _, ok := c.stops[why]; !ok && len(c.stops) >= maxStops {
			why = "other"
		}
		c.stops[why] += n
	}
}

// Stats is a snapshot. Fetching and Loading are read first, so that an idle
// snapshot never misses a Key between two counters.
func (c *Crawler) Stats() Stats {
	c.mu.Lock()
	s := Stats{
		Fetching: int(c.counts.fetching.Load()), Loading: c.loading || len(c.toLoad) > 0,
		Sites: c.front.Sites(), ReadyKeys: c.front.Rows(), Ready: c.front.Ready(),
	}
	c.mu.Unlock()
	s.Requests, s.Fetched, s.Failed = c.counts.requests.Load(), c.counts.fetched.Load(), c.counts.failed.Load()
	s.Refused, s.Bytes = c.counts.refused.Load(), c.counts.bytes.Load()
	s.Stuck, s.Abandoned = c.counts.stuck.Load(), int(max(0, c.counts.abandoned.Load()))
	s.Suspects, s.Quarantined = c.counts.suspects.Load(), c.counts.quarantined.Load()
	m := c.memory
	s.Memory = Memory{Limit: 2 * m.half, Held: m.held.Load(), Most: m.most.Load(), Waits: m.waits.Load(),
		Over: m.over.Load()}
	c.domains.mu.Lock()
	s.Deferred = c.domains.deferred
	c.domains.mu.Unlock()
	s.Limits = c.limits.words(time.Now())
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	s.Stops = maps.Clone(c.counts.stops)
	if c.revisits != nil {
		s.Revisits, s.Hints = c.revisits.seen(), c.revisits.heard()
	}
	return s
}
