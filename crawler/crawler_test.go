package crawler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// fakeSource answers from a map of links, and remembers when each site was asked. Safe for
// concurrent use.
type fakeSource struct {
	links map[partition.Key][]partition.Key
	reply func(t Task, n int) (Result, error) // nil: done, with links; n = earlier fetches of the Key
	took  time.Duration

	mu     sync.Mutex
	asked  map[partition.Site][]time.Time
	times  map[partition.Key]int
	flying map[partition.Site]int
	faults []string
}

// newFake returns a fakeSource without links.
func newFake() *fakeSource {
	return &fakeSource{links: map[partition.Key][]partition.Key{}, asked: map[partition.Site][]time.Time{},
		times: map[partition.Key]int{}, flying: map[partition.Site]int{}}
}

func (f *fakeSource) Name() string                 { return "fake" }
func (f *fakeSource) Handles(k partition.Key) bool { return k.Kind() == partition.KindPage }

// Fetch asks once, takes f.took, and notes two fetches of one site at the same time as a fault.
func (f *fakeSource) Fetch(ctx context.Context, t Task) (Result, error) {
	if err := t.Gate(ctx); err != nil {
		return Result{Site: t.Site}, err
	}
	k, s := t.Due.Key, t.Due.Key.Site()
	f.mu.Lock()
	n := f.times[k]
	f.times[k]++
	f.asked[s] = append(f.asked[s], time.Now())
	if f.flying[s]++; f.flying[s] > 1 {
		f.faults = append(f.faults, fmt.Sprintf("%s: %d at once", s, f.flying[s]))
	}
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.flying[s]--; f.mu.Unlock() }()
	if err := fetch.Sleep(ctx, f.took); err != nil {
		return Result{Site: t.Site}, err
	}
	if f.reply != nil {
		return f.reply(t, n)
	}
	return f.page(t), nil
}

// link adds links to the page k; pages are fetched immediately.
func (f *fakeSource) link(k partition.Key, to ...partition.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[k] = append(f.links[k], to...)
}

// page is the result of a good fetch: a record and the links of the page, 1000 bytes.
func (f *fakeSource) page(t Task) Result {
	r := Result{Site: t.Site, Reqs: 1, Bytes: 1000, Next: store.Next{State: store.StateDone}}
	r.Site.Fetched++
	r.Record = &store.Record{V: store.RecordVersion, Key: t.Due.Key, Kind: "page", URL: t.Due.Key.URL(),
		FetchedAt: t.Now.UTC(), Source: "fake", Status: 200}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.links[t.Due.Key] {
		r.Links = append(r.Links, store.Link{Key: k})
	}
	return r
}

// check reports the noted faults, and requests to one site that were closer than gap.
func (f *fakeSource) check(t *testing.T, gap time.Duration) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		t.Error(fault)
	}
	for s, at := range f.asked {
		for i := 1; i < len(at); i++ {
			if got := at[i].Sub(at[i-1]); got < gap {
				t.Errorf("%s asked %v after the last request, delay %v", s, got, gap)
			}
		}
	}
}

// askedAt returns when a site was asked.
func (f *fakeSource) askedAt(s partition.Site) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked[s])
}

// count returns how often k was fetched.
func (f *fakeSource) count(k partition.Key) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.times[k]
}

// memStore returns an empty store in memory, with 16 slices.
func memStore(t *testing.T) *db.Store {
	t.Helper()
	charter := partition.DefaultCharter("test", "founder")
	charter.SliceBits = 4 // many restarts in one test each read all backlogs
	s, err := db.Create("data", store.Options{FS: vfs.NewMem(), Charter: charter})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// key parses a Key, or ends the test.
func key(t *testing.T, url string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// admit puts seeds into the store.
func admit(t *testing.T, s *db.Store, keys ...partition.Key) {
	t.Helper()
	var as []store.Admission
	for _, k := range keys {
		as = append(as, store.Admission{Key: k, Seed: true})
	}
	if _, err := s.Queue.Admit(as, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// crawl runs a Crawler of all slices with src for the fake time d.
func crawl(t *testing.T, s *db.Store, src Source, o Options, d time.Duration) *Crawler {
	t.Helper()
	o.Store, o.Sources = s, []Source{src}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.SetSlices(s.Charter().Slices())
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// A small world is crawled completely: each page once, and each site at its pace.
func TestCrawlsAllAtPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memStore(t)
		defer s.Close()
		f := newFake()
		f.took = 50 * time.Millisecond
		page := func(site, n int) partition.Key { return key(t, fmt.Sprintf("https://s%d.example.org/%d", site, n)) }
		const sites, pages = 5, 12 // of one registrable domain: one slice
		for i := range sites {
			for n := range pages {
				f.links[page(i, n)] = []partition.Key{page(i, (n+1)%pages), page((i+1)%sites, n), page(i, n)}
			}
		}
		admit(t, s, page(0, 0))
		c := crawl(t, s, f, Options{Delay: 2 * time.Second}, 10*time.Minute)
		f.check(t, 2*time.Second)
		for i := range sites {
			for n := range pages {
				if got := f.count(page(i, n)); got != 1 {
					t.Errorf("%s fetched %d times", page(i, n), got)
				}
			}
		}
		st := c.Stats()
		if st.Fetched != sites*pages || st.Fetching != 0 || !st.Idle() || st.Requests != sites*pages {
			t.Errorf("stats %+v", st)
		}
		if got := s.Stats(); got.Pending != 0 || got.Done != sites*pages {
			t.Errorf("store %+v", got)
		}
	})
}

// I7: a peer that starts, or starts again, first waits the delay of every site. A longer wait that
// a site asked for survives a restart.
func TestRestartHurriesNoSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		a, b, slow := key(t, "https://a.example.org/"), key(t, "https://b.example.org/"),
			key(t, "https://slow.example.org/")
		var keys []partition.Key
		for i := range 20 {
			for _, k := range []partition.Key{a, b, slow} {
				keys = append(keys, key(t, fmt.Sprint(k.URL(), i)))
			}
		}
		f.reply = func(task Task, _ int) (Result, error) {
			r := f.page(task)
			switch task.Due.Key.Site() {
			case b.Site():
				r.Site.Delay = 10 * time.Second // like a Crawl-delay
			case slow.Site():
				r.Site.NextAllowed = time.Now().Add(time.Minute) // like a Retry-After
			}
			return r, nil
		}
		admit(t, s, keys...)
		for i := range 40 { // stopped at arbitrary moments
			crawl(t, s, f, Options{Delay: 2 * time.Second}, time.Duration(i)*700*time.Millisecond)
		}
		f.check(t, 2*time.Second)
		only := func(k partition.Key, gap time.Duration) {
			g := &fakeSource{asked: map[partition.Site][]time.Time{k.Site(): f.asked[k.Site()]}}
			g.check(t, gap)
			if n := len(g.asked[k.Site()]); n == 0 {
				t.Errorf("%s was never asked", k.Site())
			}
		}
		only(b, 10*time.Second)
		only(slow, time.Minute)
		for k, n := range f.times {
			if n != 1 {
				t.Errorf("%s fetched %d times", k, n)
			}
		}
	})
}

// Nothing is fetched in a lost slice, and a gained one waits. Busy counts the fetches under way in
// a lost slice until they are committed.
func TestSlicesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		f.took = 3 * time.Second
		var keys []partition.Key
		for i := range 10 {
			keys = append(keys, key(t, fmt.Sprintf("https://www.example.org/%d", i)))
		}
		sl := s.SliceOf(keys[0])
		admit(t, s, keys...)
		c, end := begin(t, s, f, Options{})
		defer end()
		time.Sleep(2 * time.Second)
		if c.Busy(sl) != 1 || c.Stats().Fetching != 1 || c.Stats().Idle() {
			t.Fatalf("busy %d, %+v", c.Busy(sl), c.Stats())
		}
		c.SetSlices(nil)
		c.Wake(sl, keys[0].Site()) // not our slice: nothing happens
		time.Sleep(time.Minute)
		if c.Busy(sl) != 0 || c.Stats().Fetched != 1 || c.Stats().Sites != 0 || s.Stats().Pending != 9 {
			t.Fatalf("busy %d, %+v", c.Busy(sl), c.Stats())
		}
		c.SetSlices([]partition.Slice{sl})
		gained := time.Now()
		time.Sleep(time.Minute)
		if first := f.askedAt(keys[0].Site())[1].Sub(gained); first < time.Second || s.Stats().Pending != 0 {
			t.Errorf("asked %v after the gain; %+v", first, s.Stats())
		}
		f.check(t, 4*time.Second) // the answer takes 3 s, the delay is 1 s
	})
}

// Owns is asked at the pick and at each request. A lease that ends stops the fetches, and the Keys
// stay due.
func TestLeaseLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		keys := many(t, 30)
		admit(t, s, keys...)
		var ours atomic.Bool
		c, end := begin(t, s, f, Options{Swarm: owning{owns: func() bool { return ours.Load() }}})
		defer end()
		time.Sleep(10 * time.Second)
		if c.Stats().Requests != 0 || len(f.askedAt(keys[0].Site())) != 0 || s.Stats().Pending != 30 {
			t.Fatal("fetched without a lease")
		}
		ours.Store(true)
		time.Sleep(10 * time.Second)
		if got := c.Stats(); got.Fetched != 30 {
			t.Errorf("%+v", got)
		}
	})
}

// If the slice is lost between the pick and the request, Gate fails and the Key stays due. It is
// fetched once, later.
func TestGateAsksOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		admit(t, s, key(t, "https://example.org/"))
		var asked atomic.Int64
		// the slice is lost between pick and request
		c, end := begin(t, s, f, Options{Swarm: owning{owns: func() bool { return asked.Add(1) != 2 }}})
		defer end()
		time.Sleep(10 * time.Second)
		if got := c.Stats(); got.Fetched != 1 || asked.Load() < 4 || f.count(key(t, "https://example.org/")) != 1 {
			t.Errorf("%+v after %d questions", got, asked.Load())
		}
	})
}

// A failed fetch is an outcome, and so is a panic. A closed store stops Run.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		k, bad, none := key(t, "https://example.org/"), key(t, "https://example.org/panics"),
			partition.Key("feed:https://example.org/feed")
		f.reply = func(task Task, n int) (Result, error) {
			switch {
			case task.Due.Key == bad:
				panic("bad page")
			case n < 2:
				return Result{Site: task.Site,
					Next: store.Next{State: store.StatePending, At: task.Now.Add(time.Minute), Attempts: n + 1,
						Reason: "reset"}, Stop: "unreachable"}, nil
			}
			return f.page(task), nil
		}
		admit(t, s, k, bad, none)
		c, _ := New(Options{Store: s, Sources: []Source{f}})
		c.SetSlices(s.Charter().Slices())
		done := make(chan error, 1)
		go func() { done <- c.Run(context.Background()) }()
		time.Sleep(10 * time.Minute)
		got := c.Stats()
		if f.count(k) != 3 || f.count(bad) != 5 || got.Fetched != 1 || got.Failed != 6 || got.Refused != 2 ||
			got.Stops["panic"] != 5 || got.Stops["no-source"] != 1 {
			t.Errorf("%d and %d fetches, %+v", f.count(k), f.count(bad), got)
		}
		if d, _, err := c.Due(bad); err != nil || d.State != store.StateRefused ||
			d.Reason != "unreachable: panic in the source" {
			t.Errorf("%+v %v", d, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c.Wake(s.SliceOf(k), k.Site())
		if err := <-done; err == nil {
			t.Error("Run went on without a store")
		}
		if err := c.Run(context.Background()); err == nil {
			t.Error("Run ran twice")
		}
	})
}

// A Result with Again keeps the row, and commits only the site. The row is fetched again after the
// site's delay.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		k := key(t, "https://example.org/")
		f.reply = func(task Task, n int) (Result, error) {
			if n == 0 {
				r := Result{Site: task.Site, Again: true, Reqs: 1}
				r.Site.Robots = map[string]store.Robots{"https://example.org": {Status: 404, Fetched: task.Now,
					Expires: task.Now.Add(time.Hour)}}
				return r, nil
			}
			if len(task.Site.Robots) != 1 {
				t.Error("robots were forgotten")
			}
			return f.page(task), nil
		}
		admit(t, s, k)
		c := crawl(t, s, f, Options{}, time.Minute)
		f.check(t, time.Second)
		if got := c.Stats(); f.count(k) != 2 || got.Fetched != 1 || got.Failed != 0 || got.Requests != 2 {
			t.Errorf("%+v", got)
		}
		st, err := s.Queue.Site(k.Site())
		if err != nil || len(st.Robots) != 1 || st.Fetched != 1 {
			t.Errorf("%+v %v", st, err)
		}
	})
}

// A Source may say Again without a request and without a time. That does not use up a processor
// core: its site rests between two fetches.
func TestAFetchThatNeitherAsksNorWaitsIsNotMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), &idle{}
		defer s.Close()
		admit(t, s, key(t, "https://example.org/"))
		crawl(t, s, f, Options{}, time.Minute)
		if n := f.fetches.Load(); n < 2 || n > int64(time.Minute/idleRest)+1 {
			t.Errorf("%d fetches in a minute", n)
		}
	})
}

// idle is a Source that never makes progress.
type idle struct{ fetches atomic.Int64 }

func (*idle) Name() string                 { return "idle" }
func (*idle) Handles(k partition.Key) bool { return k.Kind() == partition.KindPage }

func (f *idle) Fetch(_ context.Context, t Task) (Result, error) {
	if f.fetches.Add(1) > 10_000 {
		panic("time stands still")
	}
	return Result{Site: t.Site, Again: true}, nil
}

// Pages above MaxDepth links from a seed are not fetched, and count as stopped by depth.
func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		page := func(n int) partition.Key { return key(t, fmt.Sprintf("https://example.org/%d", n)) }
		for n := range 50 {
			f.links[page(n)] = []partition.Key{page(n + 1)}
		}
		admit(t, s, page(0))
		c := crawl(t, s, f, Options{MaxDepth: 7}, 5*time.Minute)
		if got := c.Stats(); got.Fetched != 8 || got.Stops["depth"] != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// Revisits: a row that is done, with a time, is fetched again at that time.
func TestRevisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		k := key(t, "https://example.org/")
		f.reply = func(task Task, n int) (Result, error) {
			r := f.page(task)
			if n < 3 {
				r.Next.At = task.Now.Add(2 * time.Minute)
			}
			return r, nil
		}
		admit(t, s, k)
		c := crawl(t, s, f, Options{}, 10*time.Minute)
		if f.count(k) != 4 {
			t.Errorf("%d fetches, %+v", f.count(k), c.Stats())
		}
	})
}

// owning is a Swarm that owns all slices or none.
type owning struct {
	Alone
	owns func() bool
}

func (o owning) Owns(partition.Slice) bool { return o.owns() }
