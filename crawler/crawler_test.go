package crawler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// fakeSource answers from a map of links and remembers when each site was asked.
type fakeSource struct {
	links map[partition.Key][]partition.Key
	reply func(t Task, n int) (Result, error) // nil: done with links; n = earlier fetches of the Key
	took  time.Duration

	mu     sync.Mutex
	asked  map[partition.Site][]time.Time
	times  map[partition.Key]int
	flying map[partition.Site]int
	faults []string
}

func newFake() *fakeSource {
	return &fakeSource{links: map[partition.Key][]partition.Key{}, asked: map[partition.Site][]time.Time{},
		times: map[partition.Key]int{}, flying: map[partition.Site]int{}}
}

func (f *fakeSource) Name() string                 { return "fake" }
func (f *fakeSource) Handles(k partition.Key) bool { return k.Kind() == partition.KindPage }

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
	if err := sleep(ctx, f.took); err != nil {
		return Result{Site: t.Site}, err
	}
	if f.reply != nil {
		return f.reply(t, n)
	}
	return f.page(t), nil
}

func (f *fakeSource) page(t Task) Result {
	r := Result{Site: t.Site, Reqs: 1, Bytes: 1000, Next: store.Next{State: store.StateDone}}
	r.Site.Fetched++
	r.Record = &store.Record{V: store.RecordVersion, Key: t.Due.Key, Kind: "page", URL: t.Due.Key.URL(), FetchedAt: t.Now.UTC(), Source: "fake", Status: 200}
	for _, k := range f.links[t.Due.Key] {
		r.Links = append(r.Links, store.Link{Key: k})
	}
	return r
}

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

func (f *fakeSource) count(k partition.Key) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.times[k]
}

func memStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Create("data", store.Options{FS: vfs.NewMem(), Charter: partition.DefaultCharter("test", "founder")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(t *testing.T, url string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func admit(t *testing.T, s *store.Store, keys ...partition.Key) {
	t.Helper()
	var as []store.Admission
	for _, k := range keys {
		as = append(as, store.Admission{Key: k, Seed: true})
	}
	if _, err := s.Admit(as, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// crawl runs a Crawler of all slices over f for d of fake time.
func crawl(t *testing.T, s *store.Store, f *fakeSource, o Options, d time.Duration) *Crawler {
	t.Helper()
	o.Store, o.Sources = s, []Source{f}
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

// A small world, all of it crawled, each page once, each site at its pace.
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
