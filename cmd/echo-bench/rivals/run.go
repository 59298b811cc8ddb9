package rivals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// Mode says what the crawlers must do.
type Mode string

// The modes.
const (
	Raw     Mode = "raw"     // fetch, robots.txt, links, each page once, durable store; no delay
	Indexed Mode = "indexed" // raw, plus a full-text index of everything
	Polite  Mode = "polite"  // a whole peer, one request per second and site
)

// Options are the arguments of Run. The zero value of every field except Program is usable.
type Options struct {
	Program string   // echo-bench itself, which runs the web and some of the crawlers
	Modes   []Mode   // default all
	Rivals  []string // of Names, in addition to echo-node; default all
	Sites   int      // default 200
	Pages   int      // per site, default 2000
	Words   int      // on a page, default 1500: about 14 KB
	// start of a run, not measured; default 5 s. In Polite: until every site is in flight, at
	// most a minute
	Warm     time.Duration
	For      time.Duration // measured; default 40 s, 120 s in Polite
	Dir      string        // for stores, default a temporary one
	Profiles string        // where profiles of echo-node are written; default nowhere
	Talk     io.Writer
}

// Result is one crawler in one mode.
type Result struct {
	Mode    Mode   `json:"mode"`
	Crawler string `json:"crawler"`
	Skipped string `json:"skipped,omitempty"` // why it was not run
	// From the web's server: different pages, and all requests, per second of the measured
	// time. The values below cover the whole run.
	PagesPerS    float64 `json:"pages_per_s"`
	RequestsPerS float64 `json:"requests_per_s"`
	Sites        int     `json:"sites"` // asked at least once
	Duplicates   int64   `json:"duplicates"`
	Hurried      int64   `json:"hurried"` // gaps of less than a second, in Polite
	MinGapMS     float64 `json:"min_gap_ms"`
	// From the operating system.
	PeakMiB float64 `json:"peak_rss_mib"`
	CPU     float64 `json:"cpu_s"` // of the crawler, whole run
	Seconds float64 `json:"seconds"`
	// IndexLag is how many changes were not searchable when the crawler ended, in mode Indexed.
	// The index gets the time that the crawl leaves it, so pages per second mean little without
	// this value.
	IndexLag int64 `json:"index_lag"`
	// Ratio is PagesPerS divided by that of Colly in mode raw, or 0 when Colly was not run.
	Ratio float64 `json:"ratio_to_colly"`
}

// Check returns the errors in o.
func (o Options) Check() error {
	var errs []error
	for _, m := range o.Modes {
		if m != Raw && m != Indexed && m != Polite {
			errs = append(errs, fmt.Errorf("mode %q: want raw, indexed or polite", m))
		}
	}
	for _, r := range o.Rivals {
		if !slices.Contains(Names, r) {
			errs = append(errs, fmt.Errorf("rival %q: want some of %v", r, Names))
		}
	}
	if o.Warm < 0 || o.For < 0 {
		errs = append(errs, errors.New("negative time"))
	}
	return errors.Join(append(errs, o.filled().world().Check())...)
}

func (o Options) filled() Options {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&o.Sites, 200)
	def(&o.Pages, 2000)
	def(&o.Words, 1500)
	if o.Modes == nil {
		o.Modes = []Mode{Raw, Indexed, Polite}
	}
	if o.Rivals == nil {
		o.Rivals = Names
	}
	if o.Warm == 0 {
		o.Warm = 5 * time.Second
	}
	if o.Talk == nil {
		o.Talk = io.Discard
	}
	o.Talk = &shared{w: o.Talk}
	return o
}

// shared is a Writer for this process and the output of its children.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

func (o Options) world() crawltest.Options {
	return crawltest.Options{Sites: o.Sites, Pages: o.Pages, Words: o.Words, Plain: true}
}

// length returns how long is measured.
func (o Options) length(m Mode) time.Duration {
	switch {
	case o.For > 0:
		return o.For
	case m == Polite:
		return 2 * time.Minute
	}
	return 40 * time.Second
}

// Run measures echo-node and the rivals in each mode.
func Run(ctx context.Context, o Options) (rs []Result, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o = o.filled()
	if o.Dir, err = os.MkdirTemp(o.Dir, "echo-rivals-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	w, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	for _, m := range o.Modes {
		for _, c := range contenders(o, m) {
			r, err := w.measure(ctx, o, m, c)
			if err != nil {
				return rs, fmt.Errorf("%s, %s: %w", m, c.name, err)
			}
			if r.Skipped != "" {
				fmt.Fprintf(o.Talk, "%s: %s SKIPPED: %s\n", m, c.name, r.Skipped)
			} else {
				fmt.Fprintf(o.Talk, "%s: %s %.0f pages/s, %.0f MiB\n", m, c.name, r.PagesPerS, r.PeakMiB)
			}
			rs = append(rs, r)
		}
	}
	relate(rs)
	return rs, nil
}

// relate sets the ratios.
func relate(rs []Result) {
	for _, c := range rs {
		if c.Mode == Raw && c.Crawler == "colly" && c.PagesPerS > 0 {
			for i := range rs {
				rs[i].Ratio = rs[i].PagesPerS / c.PagesPerS
			}
		}
	}
}

// server is the process that serves the web.
type server struct {
	cmd   *exec.Cmd
	admin string
	seeds string // a file
}

func startServer(ctx context.Context, o Options) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	w := &server{admin: "127.0.0.1:" + strconv.Itoa(port), seeds: filepath.Join(o.Dir, "seeds")}
	w.cmd = exec.Command(o.Program, "world", "--plain", "--gap", "1s", "--prefix", prefix, "--sites",
		strconv.Itoa(o.Sites), "--pages", strconv.Itoa(o.Pages),
		"--words", strconv.Itoa(o.Words), "--admin", w.admin, "--seeds-out", w.seeds)
	w.cmd.Stderr = o.Talk
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	for {
		if _, err = w.report(ctx); err == nil {
			return w, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, w.stop())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// prefix is the prefix of the addresses of the web's sites.
const prefix = "127.78"

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (w *server) stop() error {
	err := w.cmd.Process.Signal(syscall.SIGTERM)
	if waited := w.cmd.Wait(); err == nil {
		err = waited
	}
	return err
}

func (w *server) call(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.admin+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// report returns what the server saw since the last reset.
func (w *server) report(ctx context.Context) (r crawltest.Report, err error) {
	return r, w.call(ctx, http.MethodGet, "/seen", &r)
}

// measure runs one crawler.
func (w *server) measure(ctx context.Context, o Options, m Mode, c contender) (r Result, err error) {
	r = Result{Mode: m, Crawler: c.name, Skipped: c.missing}
	if c.missing != "" {
		return r, nil
	}
	if err := w.call(ctx, http.MethodPost, "/reset", nil); err != nil {
		return r, err
	}
	log, err := os.Create(filepath.Join(o.Dir, string(m)+"-"+c.name+".log"))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	args, err := c.args(w)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, o.Dir
	if err := cmd.Start(); err != nil {
		return r, err
	}
	ended := make(chan struct{})
	var exit error
	go func() { exit = cmd.Wait(); close(ended) }()
	begun := time.Now()
	from, to, span, err := w.watch(ctx, o, m, ended)
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone: then watch returned that
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
	}
	r.Seconds = time.Since(begun).Seconds()
	if err != nil {
		return r, fmt.Errorf("%w (%v); it said: %s", err, exit, tail(log.Name()))
	}
	if m == Indexed {
		b, err := os.ReadFile(filepath.Join(o.Dir, string(m), lagFile))
		if err != nil {
			return r, err
		}
		if r.IndexLag, err = strconv.ParseInt(string(b), 10, 64); err != nil {
			return r, err
		}
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	r.PeakMiB, r.CPU = float64(u.Maxrss)/1024, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	r.PagesPerS, r.RequestsPerS = float64(to.Pages-from.Pages)/span.Seconds(),
		float64(to.Requests-from.Requests)/span.Seconds()
	r.Sites, r.Duplicates, r.Hurried, r.MinGapMS = to.Sites, to.Duplicates, to.Hurried, float64(to.MinGap)/1e6
	return r, nil
}

// errEnded means that a crawler ended before the end of its measurement.
var errEnded = errors.New("the crawler ended by itself: the web is too small for it, or it failed")

// watch waits until the crawler is at work, and then for the measured time.
func (w *server) watch(ctx context.Context, o Options, m Mode, ended <-chan struct{}) (from, to crawltest.Report,
	span time.Duration, err error) {
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	began := time.Now()
	for {
		if from, err = w.report(ctx); err != nil {
			return
		}
		waited := time.Since(began)
		if m == Polite && (from.Sites == o.Sites || waited > time.Minute) || m != Polite && from.Pages > 0 &&
			waited > o.Warm {
			break
		}
		if waited > 2*time.Minute {
			err = errors.New("it fetches nothing")
			return
		}
		if err = wait(50 * time.Millisecond); err != nil {
			return
		}
	}
	at := time.Now()
	if err = wait(o.length(m)); err != nil {
		return
	}
	to, err = w.report(ctx)
	return from, to, time.Since(at), err
}

// tail returns the end of a log.
func tail(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}
