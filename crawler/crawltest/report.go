package crawltest

import (
	"sync"
	"sync/atomic"
	"time"
)

// Report is what the server of a world saw of its visitors.
type Report struct {
	Requests   int64 `json:"requests"`    // all, robots.txt included
	Robots     int64 `json:"robots"`      // of them for robots.txt
	Pages      int64 `json:"pages"`       // different pages fetched, redirects and gone ones included
	Duplicates int64 `json:"duplicates"`  // fetches of a page after its first
	Stray      int64 `json:"stray"`       // requests for URLs that no page of the world links to
	Maze       int64 `json:"maze"`        // pages of the maze fetched
	Bytes      int64 `json:"bytes"`       // of bodies sent
	Sites      int   `json:"sites"`       // sites asked at least once
	MaxRobots  int64 `json:"max_robots"`  // most fetches of one site's robots.txt
	MaxAtOnce  int   `json:"max_at_once"` // most requests to one site at the same time
	// RobotsViolations are fetches of pages that robots.txt disallows.
	RobotsViolations int64 `json:"robots_violations"`
	// BeforeRobots are pages fetched of a site before its robots.txt was asked.
	BeforeRobots int64 `json:"before_robots"`
	// Forbidden are requests that reached a host which is no site: loopback,
	// private networks; the first few are named.
	Forbidden      int64    `json:"forbidden"`
	ForbiddenFirst []string `json:"forbidden_first,omitempty"`
	// MinGap is the shortest time between the starts of two requests to one
	// site, robots.txt included; 0 when no site was asked twice.
	MinGap     time.Duration `json:"min_gap_ns"`
	MinGapSite string        `json:"min_gap_site,omitempty"`
	// Hurried are gaps shorter than Options.Gap.
	Hurried    int64    `json:"hurried"`
	Pauses     []Pause  `json:"pauses,omitempty"`  // times in which no site was asked; at most maxPauses of them
	Repeats    []Repeat `json:"repeats,omitempty"` // fetches of a page after its first; at most maxRepeats of them
	StrayFirst []string `json:"stray_first,omitempty"`
}

// Pause is a time of minPause or longer without a request to any site.
type Pause struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// minPause is the shortest Pause; maxPauses is how many a Report holds.
const (
	minPause  = 500 * time.Millisecond
	maxPauses = 1000
)

// Repeat is a page fetched again: when it was fetched before that, and when
// again.
type Repeat struct {
	URL    string    `json:"url"`
	Before time.Time `json:"before"`
	Again  time.Time `json:"again"`
}

// maxRepeats is how many Repeats a Report holds; Duplicates counts all.
const maxRepeats = 1000

// firstNamed is how many offenders of a sort a Report names.
const firstNamed = 10

// fetches are those of one page: how many, and when the newest began.
type fetches struct {
	count  int32
	newest time.Time
}

// siteCount is what one site saw. Times are monotonic.
type siteCount struct {
	mu       sync.Mutex
	requests int64
	robots   int64
	last     time.Time
	minGap   time.Duration
	hurried  int64
	active   int
	atOnce   int
	fetched  map[string]fetches // by path, of known pages
	repeats  []Repeat           // the first maxRepeats; URL is the path
	stray    map[string]int32
	maze     int64
	broken   int64 // robots.txt disallowed it
	early    int64 // before robots.txt was asked
}

// enter notes the start of a request; the returned function notes its end.
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

// page notes a request for a page. Called with c.mu held.
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

// pauseCount finds the times without a request.
type pauseCount struct {
	mu   sync.Mutex
	last time.Time // of the newest request to any site
	all  []Pause
}

// enter notes a request to any site.
func (c *pauseCount) enter(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) >= minPause && len(c.all) < maxPauses {
		c.all = append(c.all, Pause{From: c.last, To: now})
	}
	if now.After(c.last) { // requests that come at once are not noted in their order
		c.last = now
	}
}

// strayCount is what belongs to no site.
type strayCount struct {
	bytes     atomic.Int64
	mu        sync.Mutex
	forbidden int64
	first     []string
}

func (c *strayCount) forbid(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden++
	if len(c.first) < firstNamed {
		c.first = append(c.first, what)
	}
}

// Report adds up what the server saw since NewWorld or Reset.
func (w *World) Report() Report {
	r := Report{Bytes: w.stray.bytes.Load()}
	w.stray.mu.Lock()
	r.Forbidden, r.ForbiddenFirst = w.stray.forbidden, append([]string(nil), w.stray.first...)
	w.stray.mu.Unlock()
	w.pauses.mu.Lock()
	r.Pauses = append([]Pause(nil), w.pauses.all...)
	if now := time.Now(); !w.pauses.last.IsZero() && now.Sub(w.pauses.last) >= minPause {
		r.Pauses = append(r.Pauses, Pause{From: w.pauses.last, To: now}) // it goes on
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

// add adds one site to the sum. Called with c.mu held.
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

// Fetched says how often each page of the world was fetched, by URL.
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

// Reset forgets what the server saw.
func (w *World) Reset() {
	for s := range w.counts {
		c := &w.counts[s]
		c.mu.Lock()
		active := c.active // requests that run now will leave
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
