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
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Options of New.
type Options struct {
	Store   *db.Store // required
	Sources []Source  // at least one; the first that handles a Key fetches it
	Peer    string    // Record.Peer
	// Owns says whether this peer may fetch in that slice now. It is asked when a
	// Key is picked and again just before each request. nil = yes.
	Owns  func(partition.Slice) bool
	Delay time.Duration // least gap between two requests to a site, default 1 s; <0 = none
	// Budgeted says of a site that its source keeps the pace there by a budget of calls:
	// Delay is not kept between its requests. nil = no.
	Budgeted func(partition.Site) bool
	Workers  int // concurrent fetches, default 64
	// JudgeMemory is the most bytes that all pages take together while they are read and judged;
	// default 512 MiB, at least MinJudgeMemory. See memory.go.
	JudgeMemory int64
	// Stuck is how long a fetch may make no progress (see watch.go) before it is
	// cancelled. Default 5 min.
	Stuck    time.Duration
	Limits   Limits // the volunteer's own
	MaxDepth int    // links followed from a seed, default 128; <0 = no limit
	MaxPages int    // pages fetched of one site, ever; the rest is refused; default 100,000; <0 = no limit
	// Revisit is how often what was fetched is looked at again, on average: by
	// the default policy of package schedule what changes more is looked at more. The
	// politeness of a site goes before. 0 = never.
	Revisit time.Duration
	// Speed is how many times faster than the clock revisits live: Revisit, histories
	// and plans are in their time, so that a bench replays months in minutes. A store
	// that was crawled so is of no use to another run. 0 = 1.
	Speed float64
	// DomainSites is of how many sites together a registrable domain has the pace
	// that no other domain links to; each that does adds one. What comes too early
	// is deferred, not dropped. Default 16; <0 = no limit.
	DomainSites int
	// Scope is a wanted time: links that promise pages which speak of it are
	// fetched first. nil = links nearer to a seed first.
	Scope   period.Scope
	MaxRows int          // rows of the frontier held in memory, default frontier.DefaultMaxRows
	Logger  *slog.Logger // default: discard
	// Place says where the unit of a Key that was fetched in a slice is to be
	// crawled from now on; nil, or a nil answer: where it is.
	Place func(partition.Slice, *store.Record) *store.Placement
	// Committed is called after each durable commit, a hint that there may be
	// outbox rows. It must not block.
	Committed func()
	// AtQuorum is closed when what was committed in the slice so far survives the
	// loss of this peer, or the slice is not its any more; nil when that is so
	// already. Until then the site that was asked last is not asked again: what a
	// lost peer has fetched and nobody else has is one page of a site at most.
	// nil = commits survive.
	AtQuorum func(partition.Slice) <-chan struct{}
}

func (o Options) withDefaults() Options {
	if o.Owns == nil {
		o.Owns = func(partition.Slice) bool { return true }
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
	if o.Committed == nil {
		o.Committed = func() {}
	}
	if o.AtQuorum == nil {
		o.AtQuorum = func(partition.Slice) <-chan struct{} { return nil }
	}
	return o
}

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

// commitsEach is how many sites a worker may have that wait for Options.AtQuorum.
// With more it waits, too.
const commitsEach = 16

// Crawler fetches what is due in the slices of one peer. Safe for concurrent use.
type Crawler struct {
	o        Options
	limits   *limiter
	sites    *siteCache
	domains  *domains
	revisits *revisits // nil = nothing is looked at again
	counts   counts
	run      string // names this process among those that judge
	memory   *memory
	suspects *semaphore.Weighted // one of them at a time
	slots    chan struct{}       // one for each worker
	commits  chan struct{}       // one for each site that waits for Options.AtQuorum
	nudge    chan struct{}       // the frontier changed
	tasks    sync.WaitGroup
	hands    hands // of fetches, and of what runs beside them
	ran      atomic.Bool
	broken   chan error // the first failure that stops Run

	loader  chan struct{} // toLoad is not empty
	mu      sync.Mutex
	front   *frontier.Frontier
	gained  map[partition.Slice]time.Time // the slices to crawl, and since when
	toLoad  []partition.Slice             // their backlogs are still to be read
	loading bool
	flying  map[partition.Slice]int // picked, not yet committed
}

// New is a Crawler of no slices yet; it reports every fault of o at once.
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

// Run crawls until ctx is done (nil) or the store or a source fails. It returns
// after every fetch under way has ended, or was given up (watch.go); it can be called once.
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

// fail stops Run with err.
func (c *Crawler) fail(err error) {
	select {
	case c.broken <- err:
	default: // one is enough
	}
}

// dispatch takes one step after the other while there are free workers.
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
			continue // the task gives its slot back
		}
		<-c.slots
		if err := c.rest(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits for wait, at most (0 = not at all, <0 = without end), a change of
// the frontier or a failure.
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

// step takes the next step of the frontier, if the volunteer's limits let it.
func (c *Crawler) step(ctx context.Context) (started bool, wait time.Duration, err error) {
	now := time.Now()
	if wait := c.limits.hold(now, int(c.counts.ungated.Load())); wait > 0 {
		return false, wait, nil
	}
	c.mu.Lock()
	st := c.front.Next(now)
	if st.Act == frontier.Fetch {
		c.flying[st.Slice]++
		c.counts.fetching.Add(1) // before the row leaves the frontier's view: Stats never misses it
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

func (c *Crawler) wake() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}
