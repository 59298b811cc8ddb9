package crawler

import (
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/store/db"
)

// Limits of TestTrapWorld. trapPages is for each site.
const (
	trapPages  = 300
	trapMemory = 256 << 20 // bytes of heap in use, above those before the crawl
	trapTime   = 60 * time.Second
)

// Good sites are crawled completely beside every kind of trap. The crawl ends within its memory,
// and each bad site's state says why it was stopped.
func TestTrapWorld(t *testing.T) {
	good := crawltest.NewWorld(crawltest.Options{Seed: 3, Sites: 10, Pages: 6, Words: 30, Seeds: 2, Prefix: "127.79"})
	bad, err := crawltest.StartTraps("")
	if err == nil {
		err = good.Start()
		t.Cleanup(func() { bad.Close() })
	}
	if err != nil {
		t.Skipf("no loopback addresses here, so the crawl of traps was NOT run: %v", err)
	}
	t.Cleanup(func() { good.Close() })
	s := memStore(t)
	defer s.Close()
	seeds := good.Seeds()
	for _, b := range bad.All {
		seeds = append(seeds, b.Home)
	}
	for _, url := range seeds {
		admit(t, s, key(t, url))
	}
	peak := watchHeap(t)
	begun := time.Now()
	c := crawlTraps(t, s, good.AllowNet(), netip.MustParsePrefix("127.78.0.0/16"))
	took, mem := time.Since(begun), peak()
	t.Logf("%d sites in %v, heap %d MiB above the start, stops %v", good.Sites()+len(bad.All),
		took.Round(time.Millisecond), mem>>20, c.Stats().Stops)
	if mem > trapMemory {
		t.Errorf("heap of %d MiB, at most %d", mem>>20, trapMemory>>20)
	}
	if d := good.Compare(good.Expected(good.Seeds())); len(d.Missing)+len(d.Extra)+len(d.Twice) > 0 {
		t.Errorf("good sites: %+v", d)
	}
	for _, b := range bad.All {
		checkTrap(t, c, s, b)
	}
}

// checkTrap checks that a trap got few requests and bytes, and that the site's state says why it
// was stopped.
func checkTrap(t *testing.T, c *Crawler, s *db.Store, b *crawltest.Trap) {
	t.Helper()
	home := key(t, b.Home)
	site, err := c.Site(s.SliceOf(home), home.Site())
	if err != nil {
		t.Errorf("%s: %v", b.Name, err)
		return
	}
	t.Logf("%-18s %4d requests, %8d bytes sent: %v", b.Name, b.Requests(), b.Sent(), site.Stops)
	if b.Requests() > int64(b.Most(trapPages)) || b.Requests() == 0 {
		t.Errorf("%s: %d requests, at most %d", b.Name, b.Requests(), b.Most(trapPages))
	}
	if b.Sent() > 64<<20 { // bytes read, and bytes still on their way
		t.Errorf("%s: %d bytes taken", b.Name, b.Sent())
	}
	if len(b.Stops) == 0 && len(site.Stops) > 0 || len(b.Stops) > 0 &&
		!slices.ContainsFunc(b.Stops, func(w string) bool { return site.Stops[w] > 0 }) {
		t.Errorf("%s: stopped by %v, want %v", b.Name, site.Stops, b.Stops)
	}
	rec, err := s.Archive.Record(home)
	if err == nil && !(utf8.ValidString(rec.Text+rec.Title+rec.Lang+rec.ETag) && !strings.ContainsRune(rec.Text, 0)) {
		t.Errorf("%s: not text: %+v", b.Name, rec)
	}
}

// crawlTraps crawls what is in s with small limits.
func crawlTraps(t *testing.T, s *db.Store, nets ...netip.Prefix) *Crawler {
	t.Helper()
	return crawlWeb(t, s, trapTime,
		fetch.Options{AllowNet: nets, MaxBody: 4 << 20, Idle: 2 * time.Second, Connect: 2 * time.Second,
			Total: 6 * time.Second},
		web.Options{MaxLinks: 2000, Retry: fetch.Retry{Attempts: 2, Base: 10 * time.Millisecond,
			Max: 50 * time.Millisecond}},
		Options{Delay: -1, MaxPages: trapPages})
}

// watchHeap measures the heap until the returned function is called. That returns the peak, above
// the heap at the start.
func watchHeap(t *testing.T) (peak func() int64) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapInuse, m.HeapInuse
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}
	}()
	return func() int64 { close(stop); <-stopped; return int64(most - before) }
}
