package web

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web/webtest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

var (
	pages    = flag.Int("pages", 2000, "generated pages of TestBadPages; one in a thousand is of 16 MiB")
	pageSeed = flag.Uint64("pageseed", 1, "seed of the pages of TestBadPages")
	scale    = flag.Int("scale", 64<<10,
		"bytes of the smaller pages of TestWorkGrowsWithThePage; the larger are of 16 times as many")
)

// Limits for judging one page.
const (
	mostCPU    = time.Second
	mostMemory = 64 << 20
	largest    = 16 << 20 // fetch.Options.MaxBody
)

func newJudge(t testing.TB) *Source {
	t.Helper()
	src, err := New(Options{Client: &fetch.Client{}})
	if err != nil {
		t.Fatal(err)
	}
	judged(t, src, webtest.Page{URL: "https://example.org/", Type: "text/html",
		Body: []byte("<meta name=geo.placename content=Lisboa>" + somePage())})
	return src
}

// judged runs p through all steps from its bytes to its record.
func judged(t testing.TB, src *Source, p webtest.Page) (res fetch.Result) {
	t.Helper()
	k, err := partition.ParseKey(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp := &fetch.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {p.Type}}, Body: p.Body}
	src.page(fetch.Task{Due: store.Due{Key: k}, Now: time.Unix(1.7e9, 0)}, &res, resp)
	return res
}

// The Linux clocks for processor time.
const (
	ofProcess = 2 // CLOCK_PROCESS_CPUTIME_ID
	ofThread  = 3 // CLOCK_THREAD_CPUTIME_ID
)

func cpu(t testing.TB, clock uintptr) time.Duration {
	t.Helper()
	var at syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// peak returns how much the heap grows while f runs. It reads the uncollected bytes every fraction
// of a millisecond. The collector is set so that it leaves little garbage behind.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	runtime.GC()
	const heap = "/memory/classes/heap/objects:bytes"
	before, most := metric(heap), uint64(0)
	done, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			most = max(most, metric(heap))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return most - min(most, before)
}

// corpus returns the pages that bad pages are mixed from: the feeds of gofeed, the pages of
// golang.org/x/net, and one of ours.
func corpus(t *testing.T) (out []webtest.Page) {
	t.Helper()
	out = append(out, webtest.Page{Shape: "page", URL: "https://example.org/", Type: "text/html",
		Body: []byte(somePage())})
	feeds := filepath.Join(module(t, "github.com/mmcdole/gofeed"), "testdata", "parser")
	html := filepath.Join(module(t, "golang.org/x/net"), "html")
	for _, from := range []struct{ name, glob, kind string }{
		{"RSS", filepath.Join(feeds, "rss", "*.xml"), "application/xml"},
		{"Atom", filepath.Join(feeds, "atom", "*.xml"), "application/xml"},
		{"JSON feed", filepath.Join(feeds, "json", "*", "*.json"), "application/feed+json"},
		{"HTML", filepath.Join(html, "testdata", "*", "*.dat"), "text/html"},
		{"charset", filepath.Join(html, "charset", "testdata", "*.html"), "text/html"},
	} {
		files, err := filepath.Glob(from.glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, webtest.Page{Shape: from.name, URL: "https://example.org/x", Type: from.kind,
				Body: body[:min(len(body), 8<<10)]})
		}
	}
	return out
}

// No page takes more than a second of processor time or 64 MiB of memory on top of itself, and none
// breaks a parser. The complete run is: -pages 1000000 -timeout 60m.
func TestBadPages(t *testing.T) {
	racetest.Skip(t)
	src := newJudge(t)
	g := webtest.NewGenerator(*pageSeed, corpus(t))
	shapes := webtest.Shapes()
	stops := map[string]int{}
	var slow, big struct {
		p    webtest.Page
		cpu  time.Duration
		size uint64
	}
	large := 0
	begun := time.Now()
	for i := range *pages {
		p := g.Next
		if i%1000 == 999 {
			p = func() webtest.Page { large++; return webtest.OfShape(shapes[(large-1)%len(shapes)], largest) }
		}
		page := p()
		before, held := cpu(t, ofProcess), metric(allocated)
		res := judged(t, src, page)
		took, size := cpu(t, ofProcess)-before, metric(allocated)-held
		stops[cmp.Or(res.Stop, "none")]++
		if strings.Contains(res.Next.Reason, "panicked") {
			t.Errorf("page %d, %s: %s\n%.2000q", i, page.Shape, res.Next.Reason, page.Body)
		}
		for try := 0; took > mostCPU && try < 3; try++ { // other processes may have slowed it
			before := cpu(t, ofProcess)
			judged(t, src, page)
			took = min(took, cpu(t, ofProcess)-before)
		}
		most := uint64(MaxMemory(len(page.Body)))
		if size > min(mostMemory, most) { // the heap holds at most what was allocated
			size = min(size, peak(func() { judged(t, src, page) }))
		}
		if took > mostCPU || size > mostMemory {
			t.Errorf("page %d, %s of %d bytes: %v, %d KiB, stop %q", i, page.Shape, len(page.Body), took, size>>10,
				res.Stop)
		}
		if size > most {
			t.Errorf("page %d, %s of %d bytes: %d KiB, MaxMemory says %d", i, page.Shape, len(page.Body), size>>10,
				most>>10)
		}
		if took > slow.cpu {
			slow.p, slow.cpu = page, took
		}
		if size > big.size {
			big.p, big.size = page, size
		}
	}
	t.Logf("%d pages, %d of 16 MiB, in %v", *pages, large, time.Since(begun).Round(time.Second))
	t.Logf("the slowest %v: %s of %d bytes", slow.cpu, slow.p.Shape, len(slow.p.Body))
	t.Logf("the largest at most %d KiB: %s of %d bytes", big.size>>10, big.p.Shape, len(big.p.Body))
	for _, name := range slices.Sorted(maps.Keys(stops)) {
		t.Logf("%8d stopped by %s", stops[name], name)
	}
}

// A body of any size and shape stays under MaxMemory. With -pages above 100000 all sizes are
// tested.
func TestMaxMemory(t *testing.T) {
	racetest.Skip(t)
	src := newJudge(t)
	sizes := []int{16 << 10, 512 << 10}
	if *pages > 100_000 {
		sizes = append(sizes, 0, 1<<10, 128<<10, 1<<20, 4<<20, largest)
	}
	for _, size := range sizes {
		worst, least := "", uint64(0)
		for _, shape := range webtest.Shapes() {
			p := webtest.OfShape(shape, size)
			took := peak(func() { judged(t, src, p) })
			if most := MaxMemory(len(p.Body)); int(took) > most {
				t.Errorf("%s of %d bytes takes %d KiB, MaxMemory says %d", shape, len(p.Body), took>>10, most>>10)
			}
			if took > least {
				worst, least = fmt.Sprintf("%s of %d bytes", shape, len(p.Body)), took
			}
		}
		t.Logf("%8d bytes: at most %d KiB, %s; MaxMemory says %d", size, least>>10, worst, MaxMemory(size)>>10)
	}
}

// Twice the page takes at most 2.2 times the work, for each shape, over four doublings. A single
// doubling may take more because of the processor's caches. Quadratic work would take 256 times as
// much after four. The test measures processor time of this thread alone, without the collector,
// and takes the least of several tries. If a limit is hit, the work is less.
func TestWorkGrowsWithThePage(t *testing.T) {
	racetest.Skip(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	src := newJudge(t)
	took := func(p webtest.Page) time.Duration {
		runtime.GC()
		before := cpu(t, ofThread)
		judged(t, src, p)
		return cpu(t, ofThread) - before
	}
	const most, tries, noise = 2.2 * 2.2 * 2.2 * 2.2, 12, 2 * time.Millisecond
	worst, ratioOfWorst := "", 0.0
	for _, shape := range webtest.Shapes() {
		small, large := webtest.OfShape(shape, *scale), webtest.OfShape(shape, 16**scale)
		a, b := took(small), took(large)
		ratio := func() float64 { return float64(b-noise) / float64(a) }
		for i := 0; i < tries && ratio() > most; i++ {
			a, b = min(a, took(small)), min(b, took(large))
		}
		if ratio() > most {
			t.Errorf("%s: %d bytes take %v, %d take %v: %.1f times as long", shape, len(small.Body), a, len(large.Body),
				b, ratio())
		}
		if ratio() > ratioOfWorst {
			worst, ratioOfWorst = shape, ratio()
		}
	}
	t.Logf("16 times the page takes %.1f times as long at most: %s", ratioOfWorst, worst)
}
