// Package scale measures a store and a crawl loop with many URLs and sites, and no other part
// of a peer: no network, no pages, no index. Fill and Crawl should each run in a separate
// process, because they measure its memory.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Options are the parameters of Fill and Crawl.
type Options struct {
	Dir   string // of the store
	URLs  int    // known, 1 to 100 million, evenly spread over the sites
	Sites int    // 1 to URLs
	Pops  int    // URLs to take and commit, at most URLs
}

// Check returns all errors in o, except those of Dir.
func (o Options) Check() error {
	var errs []error
	if o.URLs < 1 || o.URLs > 100_000_000 {
		errs = append(errs, fmt.Errorf("%d URLs, 1 to 100 million", o.URLs))
	}
	if o.Sites < 1 || o.Sites > o.URLs {
		errs = append(errs, fmt.Errorf("%d sites, 1 to the number of URLs", o.Sites))
	}
	if o.Pops < 1 || o.Pops > o.URLs {
		errs = append(errs, fmt.Errorf("%d pops, 1 to the number of URLs", o.Pops))
	}
	return errors.Join(errs...)
}

// Result has the measured values. Fill and Crawl each set their part.
type Result struct {
	URLs  int `json:"urls"`
	Sites int `json:"sites"`

	FillRate float64 `json:"fill_urls_per_s,omitempty"` // admitted durably
	FillMiB  float64 `json:"fill_rss_mib,omitempty"`    // peak resident memory of the process
	DiskMiB  float64 `json:"disk_mib,omitempty"`

	Open float64 `json:"open_s,omitempty"` // until the store is open
	// from the start of the process until the first URL is taken
	First float64 `json:"first_pop_s,omitempty"`
	// from the start of the process until every site with URLs is in the frontier
	Loaded float64 `json:"loaded_s,omitempty"`
	// taken and committed durably, once all sites are loaded
	PopRate float64 `json:"pops_per_s,omitempty"`
	PopCPU  float64 `json:"pop_cpu_us,omitempty"` // processor time of one such pop
	// the frontier's part of it, with that many sites and nothing stored
	PopAlone float64 `json:"pop_frontier_us,omitempty"`
	CrawlMiB float64 `json:"crawl_rss_mib,omitempty"` // peak resident memory of the process
}

// batch is how many URLs Fill admits at once: as many as in a forwarded message.
const batch = 1000

// url returns the i-th URL. Consecutive URLs belong to different sites.
func (o Options) url(i int) partition.Key {
	site, page := i%o.Sites, i/o.Sites
	return partition.Key("web:https://www.site-" + strconv.Itoa(100_000+site) +
		".example/articles/" + strconv.Itoa(2000+page%27) + "/page-" + strconv.Itoa(page))
}

// Fill makes the store.
func Fill(ctx context.Context, o Options) (Result, error) {
	r := Result{URLs: o.URLs, Sites: o.Sites}
	s, err := db.Create(o.Dir, store.Options{Charter: partition.DefaultCharter("scale", "nobody")})
	if err != nil {
		return r, err
	}
	begun := time.Now()
	err = o.fill(ctx, s, begun)
	r.FillRate = float64(o.URLs) / time.Since(begun).Seconds()
	if err := errors.Join(err, s.Close()); err != nil {
		return r, err
	}
	if r.DiskMiB, err = diskMiB(o.Dir); err != nil {
		return r, err
	}
	r.FillMiB, err = peakMiB()
	return r, err
}

func (o Options) fill(ctx context.Context, s *db.Store, now time.Time) error {
	items := make([]store.Admission, 0, batch)
	for i := range o.URLs {
		items = append(items, store.Admission{Key: o.url(i), Depth: 3, Priority: 3})
		if len(items) < batch && i+1 < o.URLs {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		answers, err := s.Queue.Admit(items, now)
		if err != nil {
			return err
		}
		for n, a := range answers {
			if a != store.Admitted {
				return fmt.Errorf("%s was %v", items[n].Key, a)
			}
		}
		items = items[:0]
	}
	return nil
}

// instant is a Source that returns every page at once, with nothing in it.
type instant struct {
	pops  atomic.Int64
	first atomic.Int64 // Unix nanoseconds
}

func (*instant) Name() string               { return "instant" }
func (*instant) Handles(partition.Key) bool { return true }

func (i *instant) Fetch(ctx context.Context, t crawler.Task) (crawler.Result, error) {
	if err := t.Gate(ctx); err != nil {
		return crawler.Result{}, err
	}
	if i.pops.Add(1) == 1 {
		i.first.Store(time.Now().UnixNano())
	}
	return crawler.Result{Site: t.Site, Reqs: 1, Next: store.Next{State: store.StateDone}}, nil
}

// Crawl opens the store that Fill made and crawls o.Pops of its URLs.
func Crawl(ctx context.Context, o Options) (Result, error) {
	r := Result{URLs: o.URLs, Sites: o.Sites}
	begun := time.Now()
	s, err := db.Open(o.Dir, store.Options{})
	if err != nil {
		return r, err
	}
	r.Open = time.Since(begun).Seconds()
	if err := errors.Join(o.crawl(ctx, s, begun, &r), s.Close()); err != nil {
		return r, err
	}
	if r.CrawlMiB, err = peakMiB(); err != nil {
		return r, err
	}
	r.PopAlone = o.alone().Seconds() * 1e6
	return r, nil
}

// crawl runs the crawler on s and measures the times and rates of r. The rates begin once all
// sites are loaded.
func (o Options) crawl(ctx context.Context, s *db.Store, begun time.Time, r *Result) error {
	src := &instant{}
	c, err := crawler.New(crawler.Options{Store: s, Sources: []crawler.Source{src}, Delay: -1, Workers: 64,
		MaxPages: -1})
	if err != nil {
		return err
	}
	c.SetSlices(s.Charter().Slices())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	until := func(done func() bool) error {
		for !done() {
			select {
			case err := <-ended:
				return errors.Join(err, ctx.Err(), errors.New("the crawl ended early"))
			case <-time.After(time.Millisecond):
			}
		}
		return nil
	}
	if err := until(func() bool { return !c.Stats().Loading }); err != nil {
		return err
	}
	r.Loaded = time.Since(begun).Seconds()
	from, at, used := src.pops.Load(), time.Now(), processorTime()
	if err := until(func() bool {
		return src.pops.Load() >= from+int64(o.Pops) ||
			src.pops.Load() >= int64(o.URLs)
	}); err != nil {
		return err
	}
	n := src.pops.Load() - from
	r.PopRate = float64(n) / time.Since(at).Seconds()
	r.PopCPU = (processorTime() - used).Seconds() * 1e6 / float64(n)
	r.First = time.Unix(0, src.first.Load()).Sub(begun).Seconds()
	stop()
	return <-ended
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMiB returns the peak resident memory of this process according to Linux.
func peakMiB() (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}

func diskMiB(dir string) (float64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return float64(n) / (1 << 20), err
}
