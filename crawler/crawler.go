package crawler

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/echo-node/echo-node/crawler/frontier"
	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
)

// Options are the settings of New. A zero value means the default, if there is one.
type Options struct {
	Store   *db.Store // required
	Sources []Source  // at least one; the first that handles a Key fetches it
	Peer    string    // the name of this peer in Record.Peer
	// Swarm is the rest of the peer. nil = Alone.
	Swarm Swarm
	Delay time.Duration // least gap between two requests to a site, default 1 s; <0 = none
	// Budgeted reports whether the Source itself limits the calls to the site by a rate budget.
	// Then Delay is not kept between its requests. nil = no site.
	Budgeted func(partition.Site) bool
	Workers  int // concurrent fetches, default 64
	// JudgeMemory is how many bytes all pages may take together while they are read and judged.
	// Default 512 MiB; at least MinJudgeMemory. See memory.go.
	JudgeMemory int64
	// Stuck is how long a fetch may make no progress (see watch.go) before it is cancelled. Default
	// 5 min.
	Stuck    time.Duration
	Limits   Limits // the limits that the volunteer sets
	MaxDepth int    // links followed from a seed, default 128; <0 = no limit
	MaxPages int    // pages of one site that are ever fetched; others are refused; default 100,000; <0 = no limit
	// Revisit is the mean time between two visits of a Key that was fetched. The default policy of
	// package schedule visits what changes more often more often. A site's politeness has
	// precedence. 0 = never.
	Revisit time.Duration
	// Speed is how many times faster than the clock the time of revisits passes. Revisit, histories
	// and plans are in that time, so that a bench replays months in minutes. No other run can use a
	// store that was crawled with another Speed. 0 = 1.
	Speed float64
	// DomainSites is how many sites' paces together are the pace of a registrable domain to which
	// no other domain links. Each domain that links to it adds one. Requests above the pace are
	// delayed, not dropped. Default 16; <0 = no limit.
	DomainSites int
	// Scope is a wanted time: links that promise pages about this time are fetched first. nil =
	// links nearer to a seed are first.
	Scope   period.Scope
	MaxRows int          // rows of the frontier held in memory, default frontier.DefaultMaxRows
	Logger  *slog.Logger // default: discard
}

// withDefaults returns o with its zero values replaced by the defaults.
func (o Options) withDefaults() Options {
	if o.Swarm == nil {
		o.Swarm = Alone{}
	}
	if o.Delay == 0 {
		o.Delay = time.Second
	}
	o.Delay = max(o.Delay, 0)
	if o.Budgeted == nil {
		o.Budgeted = func(partition.Site) bool { return false }
	}
	if o.Workers == 0 {
		o.Workers = 64
	}
	if o.JudgeMemory == 0 {
		o.JudgeMemory = defaultJudgeMemory
	}
	if o.Stuck == 0 {
		o.Stuck = defaultStuck
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 128
	}
	if o.MaxPages == 0 {
		o.MaxPages = 100_000
	}
	if o.DomainSites == 0 {
		o.DomainSites = 16
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// validate returns all faults of o, joined.
func (o Options) validate() error {
	var errs []error
	if o.Store == nil {
		errs = append(errs, errors.New("crawler: no store"))
	}
	if len(o.Sources) == 0 {
		errs = append(errs, errors.New("crawler: no source"))
	}
	if o.Revisit < 0 {
		errs = append(errs, fmt.Errorf("crawler: negative Revisit %s", o.Revisit))
	}
	if !(o.Speed >= 0 && o.Speed <= 1e6) {
		errs = append(errs, fmt.Errorf("crawler: Speed %g is not between 0 and a million", o.Speed))
	}
	if o.Stuck < 0 {
		errs = append(errs, fmt.Errorf("crawler: negative Stuck %s", o.Stuck))
	}
	if o.JudgeMemory != 0 && o.JudgeMemory < MinJudgeMemory {
		errs = append(errs, fmt.Errorf("crawler: JudgeMemory %d, at least %d", o.JudgeMemory, MinJudgeMemory))
	}
	if o.Workers < 0 || o.MaxRows < 0 {
		errs = append(errs, fmt.Errorf("crawler: negative Workers %d or MaxRows %d", o.Workers, o.MaxRows))
	}
	return errors.Join(append(errs, o.Limits.validate())...)
}

// commitsEach, times the workers, is how many sites may wait for Swarm.AtQuorum without a worker.
// Above that, workers wait too.
const commitsEach = 16

// Crawler fetches what is due in the slices of one peer. Safe for concurrent use.
type Crawler struct {
	o        Options
	limits   *limiter
	sites    *siteCache
	domains  *domains
	revisits *revisits // nil = nothing is visited again
	counts   counts
	run      string // the name of this process, in the attempts that it writes (judging.go)
	memory   *memory
	suspects *semaphore.Weighted // one suspect is judged at a time
	slots    chan struct{}       // one for each running worker
	commits  chan struct{}       // one for each site that waits for Swarm.AtQuorum
	nudge    chan struct{}       // the frontier changed
	tasks    sync.WaitGroup
	hands    hands // goroutines for fetches, and for the work beside them
	ran      atomic.Bool
	broken   chan error // the first error that stops Run

	loader chan struct{} // says that toLoad is not empty
	// mu guards the fields below.
	mu      sync.Mutex
	front   *frontier.Frontier
	gained  map[partition.Slice]time.Time // the slices to crawl, with the time they came
	toLoad  []partition.Slice             // the slices whose backlogs are still to be read
	loading bool
	flying  map[partition.Slice]int // Keys picked and not yet committed, by slice
}

// New returns a Crawler without slices. It reports all faults of o at once. It also fails if the
// store cannot read what earlier runs learned of revisits; if that is only damaged, it is learned
// again.
func New(o Options) (*Crawler, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &Crawler{
		o: o, limits: newLimiter(o.Limits, o.Store), sites: newSiteCache(o.Store),
		domains: newDomains(o.DomainSites, o.Delay), run: rand.Text(), memory: newMemory(o.JudgeMemory),
		suspects: semaphore.NewWeighted(1), counts: counts{stops: map[string]int64{}},
		hands: hands{most: 2 * o.Workers},
		slots: make(chan struct{}, o.Workers), commits: make(chan struct{}, commitsEach*o.Workers),
		nudge: make(chan struct{}, 1), loader: make(chan struct{}, 1), broken: make(chan error, 1),
		front: frontier.New(frontier.Options{MaxRows: o.MaxRows}), gained: map[partition.Slice]time.Time{},
		flying: map[partition.Slice]int{},
	}
	if o.Revisit > 0 {
		l, why, err := loadLessons(o.Store)
		if err != nil {
			return nil, err
		}
		if why != nil {
			o.Logger.Warn("revisits", "err", why)
		}
		c.revisits = newRevisits(o.Revisit, o.Speed, time.Now(), l)
	}
	return c, nil
}

// Run crawls until ctx is done (it returns nil) or the store or a Source fails. It returns after
// each fetch under way has ended or was given up (watch.go). It can be called once.
func (c *Crawler) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("crawler: Run was called before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.tasks.Go(func() { c.load(ctx) })
	err := c.dispatch(ctx)
	cancel()
	c.tasks.Wait()
	c.hands.end()
	select {
	case late := <-c.broken:
		err = errors.Join(err, late)
	default:
	}
	if flushed := c.sites.flush(); flushed != nil && err == nil {
		err = flushed
	}
	return err
}

// fail stops Run with err. Only the first error counts.
func (c *Crawler) fail(err error) {
	select {
	case c.broken <- err:
	default: // one error is enough
	}
}

// dispatch takes one step after the other while there are free workers. It returns nil if ctx is
// done, otherwise the error that stops Run.
func (c *Crawler) dispatch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.broken:
			return err
		case c.slots <- struct{}{}:
		}
		started, wait, err := c.step(ctx)
		if err != nil {
			return err
		}
		if started {
			continue // the task frees its slot
		}
		<-c.slots
		if err := c.rest(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits until the frontier changes, ctx is done or the crawler fails, but for at most wait.
// wait of 0 = it does not wait; <0 = it waits without a limit. It returns the failure.
func (c *Crawler) rest(ctx context.Context, wait time.Duration) error {
	if wait == 0 {
		return nil
	}
	var after <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-ctx.Done():
	case <-after:
	case <-c.nudge:
	case err := <-c.broken:
		return err
	}
	return nil
}

// step takes the next step of the frontier, if the volunteer's limits allow that. started means
// that a fetch was started, which frees its slot later. Otherwise wait is for rest.
func (c *Crawler) step(ctx context.Context) (started bool, wait time.Duration, err error) {
	now := time.Now()
	if wait := c.limits.hold(now, int(c.counts.ungated.Load())); wait > 0 {
		return false, wait, nil
	}
	c.mu.Lock()
	st := c.front.Next(now)
	if st.Act == frontier.Fetch {
		c.flying[st.Slice]++
		c.counts.fetching.Add(1) // before the row leaves the frontier, so that Stats always counts it
		c.counts.ungated.Add(1)
	}
	c.mu.Unlock()
	switch st.Act {
	case frontier.Read:
		return false, 0, c.read(st, now)
	case frontier.Fetch:
		c.tasks.Add(1)
		c.hands.do(func() {
			defer c.tasks.Done()
			c.fetch(ctx, st, now)
		})
		return true, 0, nil
	}
	if st.At.IsZero() {
		return false, -1, nil
	}
	return false, max(time.Until(st.At), time.Microsecond), nil
}

// wake tells the dispatcher that the frontier changed. It does not wait.
func (c *Crawler) wake() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}
