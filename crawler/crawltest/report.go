package crawltest

import (
	"sync"
	"sync/atomic"
	"time"
)

// Report is what the server of a world measured about its visitors.
type Report struct {
	Requests   int64 `json:"requests"`    // all, with robots.txt
	Robots     int64 `json:"robots"`      // requests for robots.txt
	Pages      int64 `json:"pages"`       // different pages fetched, with redirects and gone pages
	Duplicates int64 `json:"duplicates"`  // fetches of a page after the first
	Stray      int64 `json:"stray"`       // requests for URLs that no page links to
	Maze       int64 `json:"maze"`        // pages of the maze that were fetched
	Bytes      int64 `json:"bytes"`       // of the bodies sent
	Sites      int   `json:"sites"`       // sites with at least one request
	MaxRobots  int64 `json:"max_robots"`  // most robots.txt fetches from one site
	MaxAtOnce  int   `json:"max_at_once"` // most concurrent requests to one site
	// RobotsViolations counts fetches of pages that robots.txt disallows.
	RobotsViolations int64 `json:"robots_violations"`
	// BeforeRobots counts pages that were fetched from a site before its robots.txt.
	BeforeRobots int64 `json:"before_robots"`
	// Forbidden counts requests to a host that is not a site: loopback, private networks.
	// ForbiddenFirst names the first few.
	Forbidden      int64    `json:"forbidden"`
	ForbiddenFirst []string `json:"forbidden_first,omitempty"`
	// MinGap is the shortest time between the starts of two requests to one site, with robots.txt.
	// It is 0 if no site had two requests.
	MinGap     time.Duration `json:"min_gap_ns"`
	MinGapSite string        `json:"min_gap_site,omitempty"`
	// Hurried counts gaps shorter than Options.Gap.
	Hurried int64 `json:"hurried"`
	// Pauses are times without a request to any site, at most maxPauses.
	Pauses []Pause `json:"pauses,omitempty"`
	// Repeats are fetches of a page after the first, at most maxRepeats.
	Repeats    []Repeat `json:"repeats,omitempty"`
	StrayFirst []string `json:"stray_first,omitempty"`
}

// Pause is a time of at least minPause without a request to any site.
type Pause struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// minPause is the shortest Pause. A Report holds at most maxPauses of them.
const (
	minPause  = 500 * time.Millisecond
	maxPauses = 1000
)

// Repeat is a page that was fetched again, with the times of the fetch before and of the new fetch.
type Repeat struct {
	URL    string    `json:"url"`
	Before time.Time `json:"before"`
	Again  time.Time `json:"again"`
}

// maxRepeats is the maximum number of Repeats in a Report. Duplicates counts all.
const maxRepeats = 1000

// firstNamed is the maximum number of offending URLs that a Report names per kind.
const firstNamed = 10

// fetches counts the fetches of one page and holds the start of the newest.
type fetches struct {
	count  int32
	newest time.Time
}

// siteCount is what one site measured. Times are monotonic.
type siteCount struct {
	mu       sync.Mutex
	requests int64
	robots   int64
	last     time.Time
	minGap   time.Duration
	hurried  int64
	active   int
	atOnce   int
	fetched  map[string]fetches // by path, only pages that exist
	repeats  []Repeat           // the first maxRepeats; URL is the path
	stray    map[string]int32
	maze     int64
	broken   int64 // fetches that robots.txt disallows
	early    int64 // pages fetched before robots.txt
}

// enter records the start of a request. The caller calls leave at its end.
func (c *siteCount) enter(now time.Time, limit time.Duration, note func(*siteCount)) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if !c.last.IsZero() {
		gap := now.Sub(c.last)
		if c.minGap == 0 || gap < c.minGap {
			c.minGap = max(gap, 1)
		}
		if gap < limit {
			c.hurried++
		}
	}
	c.last = now
	c.active++
	c.atOnce = max(c.atOnce, c.active)
	note(c)
	return func() {
		c.mu.Lock()
		c.active--
		c.mu.Unlock()
	}
}

// page records a request for a page. The caller holds c.mu.
func (c *siteCount) page(path string, known bool, p Page) {
	if c.fetched == nil {
		c.fetched, c.stray = make(map[string]fetches), make(map[string]int32)
	}
	if c.robots == 0 {
		c.early++
	}
	switch {
	case !known:
		c.stray[path]++
		return
	case p.Disallowed:
		c.broken++
	case p.Maze:
		c.maze++
	}
	before := c.fetched[path]
	if before.count > 0 && len(c.repeats) < maxRepeats {
		c.repeats = append(c.repeats, Repeat{URL: path, Before: before.newest, Again: c.last})
	}
	c.fetched[path] = fetches{before.count + 1, c.last}
}

// pauseCount finds times without a request.
type pauseCount struct {
	mu   sync.Mutex
	last time.Time // the newest request to any site
	all  []Pause
}

// enter records a request to any site.
func (c *pauseCount) enter(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) >= minPause && len(c.all) < maxPauses {
		c.all = append(c.all, Pause{From: c.last, To: now})
	}
	if now.After(c.last) { // concurrent requests may arrive out of order
		c.last = now
	}
}

// strayCount counts what belongs to no site.
type strayCount struct {
	bytes     atomic.Int64
	mu        sync.Mutex
	forbidden int64
	first     []string
}

// forbid records a request to a host that is not a site.
func (c *strayCount) forbid(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden++
	if len(c.first) < firstNamed {
		c.first = append(c.first, what)
	}
}

// Report adds up what the server measured since NewWorld or Reset.
func (w *World) Report() Report {
	r := Report{Bytes: w.stray.bytes.Load()}
	w.stray.mu.Lock()
	r.Forbidden, r.ForbiddenFirst = w.stray.forbidden, append([]string(nil), w.stray.first...)
	w.stray.mu.Unlock()
	w.pauses.mu.Lock()
	r.Pauses = append([]Pause(nil), w.pauses.all...)
	if now := time.Now(); !w.pauses.last.IsZero() && now.Sub(w.pauses.last) >= minPause {
		r.Pauses = append(r.Pauses, Pause{From: w.pauses.last, To: now}) // this pause has not ended
	}
	w.pauses.mu.Unlock()
	for s := range w.counts {
		c := &w.counts[s]
		c.mu.Lock()
		r.add(c, "http://"+w.hostport(s))
		c.mu.Unlock()
	}
	return r
}

// add adds the counts of one site. The caller holds c.mu.
func (r *Report) add(c *siteCount, origin string) {
	r.Requests += c.requests
	r.Robots += c.robots
	r.MaxRobots = max(r.MaxRobots, c.robots)
	r.MaxAtOnce = max(r.MaxAtOnce, c.atOnce)
	r.Hurried += c.hurried
	r.Maze += c.maze
	r.RobotsViolations += c.broken
	r.BeforeRobots += c.early
	if c.requests > 0 {
		r.Sites++
	}
	if c.minGap > 0 && (r.MinGap == 0 || c.minGap < r.MinGap) {
		r.MinGap, r.MinGapSite = c.minGap, origin
	}
	r.Pages += int64(len(c.fetched))
	for _, f := range c.fetched {
		r.Duplicates += int64(f.count - 1)
	}
	for _, again := range c.repeats[:min(len(c.repeats), maxRepeats-len(r.Repeats))] {
		again.URL = origin + again.URL
		r.Repeats = append(r.Repeats, again)
	}
	for path, n := range c.stray {
		r.Stray += int64(n)
		if len(r.StrayFirst) < firstNamed {
			r.StrayFirst = append(r.StrayFirst, origin+path)
		}
	}
}

// Fetched returns how often each page of the world was fetched, by URL.
func (w *World) Fetched() map[string]int {
	all := make(map[string]int)
	for s := range w.counts {
		c := &w.counts[s]
		c.mu.Lock()
		for path, f := range c.fetched {
			all["http://"+w.hostport(s)+path] = int(f.count)
		}
		c.mu.Unlock()
	}
	return all
}

// Reset clears everything that the server measured.
func (w *World) Reset() {
	for s := range w.counts {
		c := &w.counts[s]
		c.mu.Lock()
		active := c.active // requests in progress still call leave
		c.requests, c.robots, c.hurried, c.maze, c.broken, c.early = 0, 0, 0, 0, 0, 0
		c.last, c.minGap, c.atOnce = time.Time{}, 0, active
		c.fetched, c.stray, c.repeats = nil, nil, nil
		c.mu.Unlock()
	}
	w.pauses.mu.Lock()
	w.pauses.last, w.pauses.all = time.Time{}, nil
	w.pauses.mu.Unlock()
	w.stray.bytes.Store(0)
	w.stray.mu.Lock()
	w.stray.forbidden, w.stray.first = 0, nil
	w.stray.mu.Unlock()
}
