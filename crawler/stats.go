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

// Stats says what a Crawler does and did. Counts are since New.
type Stats struct {
	Fetching  int   // Keys that are picked and not yet committed
	Requests  int64 // requests made, including robots.txt
	Fetched   int64 // commits with a record
	Failed    int64 // commits that say: try again
	Refused   int64 // commits that say: never again
	Bytes     int64 // bytes received
	Deferred  int64 // requests delayed by the pace of a domain
	Sites     int   // sites with rows in the frontier
	ReadyKeys int   // due rows in memory
	Ready     int   // sites that could be asked now
	Stuck     int64 // fetches that made no progress and were cancelled
	Abandoned int   // of these, the ones that did not end and still run
	// Suspects are fetches of Keys that were under way when a process died. Quarantined are Keys
	// that are left alone because two processes died at them. Both are since New.
	Suspects, Quarantined int64
	Memory                Memory
	Loading               bool // backlogs of gained slices are still being read

	Limits []string         // the volunteer's limits that apply now, in words
	Stops  map[string]int64 // counts of stopped Keys, or stopped parts of them, by rule or limit
	// Revisits counts the visits of Keys that were fetched before, by what they found: unchanged,
	// changed, error, gone, redirect. nil without Options.Revisit.
	Revisits map[string]int64
	// Hints counts the hints of sitemaps and feeds about Keys that were fetched before: received, followed
	// (the visit came sooner), right or wrong. What the next visit found decides between right and
	// wrong. nil without Options.Revisit.
	Hints map[string]int64
}

// Memory is the memory of pages that are read and judged. Counts are since New.
type Memory struct {
	Limit, Held, Most int64 // bytes; Most is the most that were held at once
	Waits             int64 // requests for memory that had to wait
	Over              int64 // requests for more than one half; they got the whole half
}

// Idle reports whether nothing is under way here. store.Stats says what is due.
func (s Stats) Idle() bool { return s.Fetching == 0 && !s.Loading }

// counts has the counters of Stats. Safe for concurrent use.
type counts struct {
	fetching, ungated                         atomic.Int64 // ungated: Keys picked, first request not yet allowed
	requests, fetched, failed, refused, bytes atomic.Int64
	stuck, abandoned                          atomic.Int64
	suspects, quarantined                     atomic.Int64

	mu       sync.Mutex
	stops    map[string]int64
	failures []Failure // the last maxFailures, a ring
	oldest   int       // the index of the oldest in failures, once it is full
}

// Failure is a fetch that ended without its result.
type Failure struct {
	Key    partition.Key
	State  store.State // pending: it will be tried again
	Reason string
	At     time.Time
}

// maxFailures is how many failures a Crawler remembers.
const maxFailures = 200

// failure remembers f, and forgets the oldest failure if there are maxFailures.
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

// Failures returns the last maxFailures failures since New, the newest first.
func (c *Crawler) Failures() []Failure {
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	all := slices.Concat(c.counts.failures[c.counts.oldest:], c.counts.failures[:c.counts.oldest])
	slices.Reverse(all)
	return all
}

// add counts the requests and bytes of a fetch, before its commit.
func (c *counts) add(r Result) {
	c.requests.Add(int64(r.Reqs))
	c.bytes.Add(r.Bytes)
}

// committed counts a committed result.
func (c *counts) committed(r Result) {
	if r.Record != nil {
		c.fetched.Add(1)
	}
	switch r.Next.State {
	case store.StatePending:
		if r.Next.Reason != "" { // without a reason it simply goes on: see Result.Planned
			c.failed.Add(1)
		}
	case store.StateRefused:
		c.refused.Add(1)
	}
}

// maxStops limits the number of words in Stats.Stops; sources use a few fixed words.
const maxStops = 256

// stopped adds stops to the counts. Above maxStops words, new ones count as "other".
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

// Stats returns a copy of the current state. Fetching and Loading are read first. So if the copy is
// idle, no Key is missed between two counters.
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
		s.Revisits, s.Hints = c.revisits.seen(), c.revisits.hintCounts()
	}
	return s
}
