package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/fetch"
	source "github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Options are the options of Run.
type Options struct {
	World  contest.World // the history; required
	Budget float64       // visits per item per 30 days of the world, > 0
	Speed  float64       // speed of the world's time relative to the clock, > 0
	Warm   float64       // share of the world's time that is not measured, below 1
	Seeds  int           // plays of the simulator that are averaged, default 10
	// where the store is made, and removed afterwards; default the system's directory
	Dir   string
	Talk  io.Writer    // progress; nil = none
	Log   *slog.Logger // of the crawler; nil = none
	Hints Hints        // what the sites' sitemaps say; default: there are none

	// Carry brings requests to the web without a network, for tests in fake time; nil =
	// loopback.
	Carry func(http.Handler) http.RoundTripper
	// Store has the options of the store, for the same tests; Dir is then ignored.
	Store *store.Options
}

func (o Options) validate() error {
	var faults []error
	if len(o.World.Things) == 0 || o.World.To <= o.World.From || o.World.Timeline {
		faults = append(faults, errors.New("no world of pages"))
	}
	if !(o.Budget > 0) || !(o.Speed > 0) || !(o.Warm >= 0 && o.Warm < 1) || o.Seeds < 0 {
		faults = append(faults, fmt.Errorf("budget %g, speed %g, warm-up %g, seeds %d", o.Budget, o.Speed, o.Warm,
			o.Seeds))
	}
	if len(faults) > 0 {
		return fmt.Errorf("replay: %w", errors.Join(faults...))
	}
	return nil
}

// Side is the result of one side.
type Side struct {
	Freshness float64 `json:"freshness"`
	AgeDays   float64 `json:"age_days"`
	Visits    float64 `json:"visits"` // in the measured time
	Changed   float64 `json:"change_rate"`
}

// Result compares the crawler with the simulator.
type Result struct {
	World     string  `json:"world"`
	Items     int     `json:"items"`
	Days      float64 `json:"days"`
	Speed     float64 `json:"speed"`
	Budget    float64 `json:"budget"`
	Seconds   float64 `json:"seconds"` // from the first request to the end of the world
	Crawler   Side    `json:"crawler"`
	Simulator Side    `json:"simulator"` // the mean of its plays
	HalfCI    float64 `json:"simulator_freshness_ci95"`
	Uniform   Side    `json:"uniform"` // simulated
	// Points is how much fresher the crawler was, in hundredths. Spent is its visits divided by
	// the simulator's.
	Points float64 `json:"points"`
	Spent  float64 `json:"spent"`
	// AtSpent is the simulator's freshness with the number of visits that the crawler made.
	AtSpent float64 `json:"simulator_freshness_at_spent"`
	Same    int     `json:"not_modified"` // responses with status 304
	// items whose edition in the store is not the one sent last
	Stale int              `json:"stale"`
	Found map[string]int64 `json:"revisits"` // by the crawler's own view of the result
	// responses with sitemaps, in addition to the visits
	Lists int              `json:"sitemaps"`
	Hints map[string]int64 `json:"hints"` // what the crawler did with them
}

// Run crawls o.World until its end.
func Run(ctx context.Context, o Options) (r Result, err error) {
	if err := o.validate(); err != nil {
		return r, err
	}
	if o.Seeds == 0 {
		o.Seeds = 10
	}
	if o.Talk == nil {
		o.Talk = io.Discard
	}
	c, err := open(o)
	if err != nil {
		return r, fmt.Errorf("replay: %w", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	begun := time.Now()
	if err := c.run(ctx); err != nil {
		return r, fmt.Errorf("replay: %w", err)
	}
	w := &o.World
	r = Result{World: w.Name, Items: len(w.Things), Days: float64(w.To-w.From) / 86400, Speed: o.Speed,
		Budget: o.Budget, Seconds: time.Since(begun).Seconds(), Found: c.crawler.Stats().Revisits,
		Hints: c.crawler.Stats().Hints, Lists: c.web.listed()}
	visits, editions, same := c.web.took()
	r.Same = same
	if r.Stale, err = c.stale(editions); err != nil {
		return r, fmt.Errorf("replay: %w", err)
	}
	return r, r.compare(w, visits, o)
}

// compare sets both sides.
func (r *Result) compare(w *contest.World, visits []contest.Visit, o Options) error {
	real, err := contest.Judge(w, visits, o.Warm)
	if err != nil {
		return err
	}
	hold := func(budget float64, policies ...string) ([]contest.Entry, error) {
		return contest.Hold(contest.Contest{World: func(uint64) (contest.World, error) { return *w, nil },
			Policies: policies, Budget: budget, Seeds: o.Seeds, Warm: o.Warm})
	}
	plays, err := hold(o.Budget, "default", "uniform")
	if err != nil {
		return err
	}
	if real.Visits == 0 {
		return errors.New("replay: the crawler looked at nothing again")
	}
	made := float64(max(1, real.Visits-met(w, visits, o.Warm)))
	r.Crawler = Side{real.Freshness, real.AgeDays, made, float64(real.Hits) / made}
	side := func(e contest.Entry) Side {
		return Side{e.Freshness.Mean, e.AgeDays.Mean, e.Visits.Mean, e.ChangeRate.Mean}
	}
	r.Simulator, r.Uniform, r.HalfCI = side(plays[0]), side(plays[1]), plays[0].Freshness.Half
	r.Points = 100 * (r.Crawler.Freshness - r.Simulator.Freshness)
	r.Spent = made / r.Simulator.Visits
	if plays, err = hold(o.Budget*r.Spent, "default"); err != nil {
		return err
	}
	r.AtSpent = plays[0].Freshness.Mean
	return nil
}

// met returns how many of the visits in the measured time were the first of their item: items
// born later are free for policies.
func met(w *contest.World, visits []contest.Visit, warm float64) (n int) {
	since := w.From + int64(warm*float64(w.To-w.From))
	seen := make([]bool, len(w.Things))
	for _, v := range visits {
		if !seen[v.Thing] && v.At >= since && v.At < w.To {
			n++
		}
		seen[v.Thing] = true
	}
	return n
}

// crawl is one crawler and the web that it crawls.
type crawl struct {
	o       Options
	web     *web
	port    string
	server  *http.Server
	store   *db.Store
	client  *fetch.Client
	crawler *crawler.Crawler
	dir     string
}

// workers are many, because each site allows only one at a time.
const workers = 32

// open makes the store, the web and the crawler of a replay. After an error it closes them.
func open(o Options) (c *crawl, err error) {
	c = &crawl{o: o, web: newWeb(&o.World, o.Speed, o.Hints), port: "80"}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	so := store.Options{Charter: partition.DefaultCharter("replay", "nobody"), Logger: o.Log}
	where := "store"
	if o.Store != nil {
		so = *o.Store
	} else {
		if c.dir, err = os.MkdirTemp(o.Dir, "replay"); err != nil {
			return c, err
		}
		where = filepath.Join(c.dir, where)
	}
	if c.store, err = db.Create(where, so); err != nil {
		return c, err
	}
	loop := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	fo := fetch.Options{AllowNet: []netip.Prefix{netip.PrefixFrom(loop, 8)}, AddrDelay: -1,
		Hosts: map[string]netip.Addr{}}
	for i := 0; i < len(o.World.Things); i += perSite {
		fo.Hosts[host(i)] = loop
	}
	if o.Carry != nil {
		fo.Transport = o.Carry(c.web)
	} else if err := c.serve(loop); err != nil {
		return c, err
	}
	if c.client, err = fetch.New(fo); err != nil {
		return c, err
	}
	src, err := source.New(source.Options{Client: c.client})
	if err != nil {
		return c, err
	}
	interval := time.Duration(30 / o.Budget * float64(24*time.Hour))
	c.web.epoch = time.Now()
	c.crawler, err = crawler.New(crawler.Options{Store: c.store, Sources: []crawler.Source{src}, Delay: -1,
		Workers: workers, Revisit: interval, Speed: o.Speed, Logger: o.Log})
	return c, err
}

// serve serves the web on a loopback address.
func (c *crawl) serve(at netip.Addr) error {
	l, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return err
	}
	_, c.port, _ = net.SplitHostPort(l.Addr().String()) // its own addresses parse
	c.server = &http.Server{Handler: c.web, ReadHeaderTimeout: time.Minute}
	go func() { _ = c.server.Serve(l) }() // ends with Close; the crawl notices missing responses
	return nil
}

func (c *crawl) close() error {
	var faults []error
	if c.client != nil {
		c.client.Close()
	}
	if c.server != nil {
		faults = append(faults, c.server.Close())
	}
	if c.store != nil {
		faults = append(faults, c.store.Close())
	}
	if c.dir != "" {
		faults = append(faults, os.RemoveAll(c.dir))
	}
	return errors.Join(faults...)
}

func (c *crawl) key(i int) (partition.Key, error) { return c.at(i, address(i)) }

// at returns the Key of a path on the site of item i.
func (c *crawl) at(i int, path string) (partition.Key, error) {
	where := "http://" + host(i)
	if c.port != "80" {
		where += ":" + c.port
	}
	return partition.ParseKey(where + path)
}

// admitLists makes the sitemaps known, as robots.txt would.
func (c *crawl) admitLists() error {
	var lists []store.Admission
	for i := 0; i < len(c.o.World.Things) && c.o.Hints != ""; i += perSite {
		k, err := c.at(i, sitemapPath)
		if err != nil {
			return err
		}
		lists = append(lists, store.Admission{Key: k, Seed: true})
	}
	_, err := c.store.Queue.Admit(lists, time.Now())
	return err
}

// admit makes items known, as links to them would.
func (c *crawl) admit(items []int) error {
	admissions := make([]store.Admission, len(items))
	for j, i := range items {
		k, err := c.key(i)
		if err != nil {
			return err
		}
		admissions[j] = store.Admission{Key: k, Seed: true}
	}
	if _, err := c.store.Queue.Admit(admissions, time.Now()); err != nil {
		return err
	}
	for _, a := range admissions {
		c.crawler.Wake(c.store.SliceOf(a.Key), a.Key.Site())
	}
	return nil
}

// run crawls until the end of the world. An item born during it becomes known at its birth, as
// for every policy of the contest.
func (c *crawl) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.crawler.SetSlices(c.store.Charter().Slices())
	ended := make(chan error, 1)
	go func() {
		ended <- c.crawler.Run(ctx)
		cancel()
	}()
	err := c.tell(ctx)
	early := ctx.Err()
	cancel()
	if crawled := <-ended; crawled != nil {
		return errors.Join(crawled, err)
	}
	if err != nil {
		return err
	}
	return early
}

// tell admits every item at its time and waits for the end of the world.
func (c *crawl) tell(ctx context.Context) error {
	w := &c.o.World
	var known []int
	born := map[int64][]int{}
	for i, t := range w.Things {
		if t.Born <= w.From {
			known = append(known, i)
		} else {
			born[t.Born] = append(born[t.Born], i)
		}
	}
	if len(known) == 0 {
		return errors.New("no item is there at the start")
	}
	if err := c.admitLists(); err != nil {
		return err
	}
	if err := c.admit(known); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-c.web.started:
	}
	fmt.Fprintf(c.o.Talk, "replay: %d items are known; the end in %.0f s\n", len(known),
		time.Until(c.web.real(w.To)).Seconds())
	for _, at := range slices.Sorted(maps.Keys(born)) {
		if !wait(ctx, c.web.real(at+1)) { // the web counts whole seconds
			return nil
		}
		if err := c.admit(born[at]); err != nil {
			return err
		}
	}
	wait(ctx, c.web.real(w.To))
	return nil
}

// wait reports whether t came before the end of ctx.
func wait(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// stale returns how many items have another edition in the store than the one sent last.
// Editions sent at the very end and not committed any more are included.
func (c *crawl) stale(editions []int) (n int, err error) {
	for i, edition := range editions {
		if edition < 0 {
			continue
		}
		k, err := c.key(i)
		if err != nil {
			return n, err
		}
		r, err := c.store.Archive.Record(k)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return n, err
		}
		if r.Title != title(i, edition) {
			n++
		}
	}
	return n, nil
}
