package crawler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// realSite is a web site on its own address that counts the requests.
type realSite struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	at    []time.Time
	now   int
	worst int // most requests at once
}

// serve starts a site on addr, or skips the test if the machine lacks that address.
func serve(t *testing.T, addr string, h func(s *realSite, w http.ResponseWriter, r *http.Request)) *realSite {
	t.Helper()
	l, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Skipf("no loopback address %s here, so the crawl of real sites was NOT run: %v", addr, err)
	}
	s := &realSite{asked: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.RequestURI()]++
		s.at = append(s.at, time.Now())
		s.now++
		s.worst = max(s.worst, s.now)
		s.mu.Unlock()
		h(s, w, r)
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}))
	s.Server.Listener.Close()
	s.Server.Listener = l
	s.Start()
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s
}

// Real HTTP on loopback. Three good sites that link to each other are crawled completely: each page
// once, at their pace, and by their robots.txt. The bad sites between them end, each with a reason.
func TestRealSites(t *testing.T) {
	const delay = 20 * time.Millisecond
	const pages = 12
	var good [3]*realSite
	var bad map[string]*realSite
	page := func(i int) func(*realSite, http.ResponseWriter, *http.Request) {
		return func(s *realSite, w http.ResponseWriter, r *http.Request) {
			var n int
			switch {
			case r.URL.Path == "/robots.txt":
				fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
			case r.URL.Path == "/":
				fmt.Fprint(w, "<title>Start</title>")
				for n := range pages {
					fmt.Fprintf(w, "<a href=/p%d>page %d</a> ", n, n)
				}
				for _, b := range bad {
					fmt.Fprintf(w, "<a href=%s/>bad</a> ", b.URL)
				}
				fmt.Fprintf(w, "<a href=%s/>next</a> <a href=/private>no</a> <a href=/r0>chain</a> <a href=/gone>gone</a>", good[(i+1)%3].URL)
			case strings.HasPrefix(r.URL.Path, "/r"):
				fmt.Sscanf(r.URL.Path, "/r%d", &n)
				http.Redirect(w, r, fmt.Sprintf("/r%d", n+1), http.StatusFound)
			case strings.HasPrefix(r.URL.Path, "/p") && r.URL.Path != "/private":
				fmt.Sscanf(r.URL.Path, "/p%d", &n)
				fmt.Fprintf(w, "<title>Page %d</title><p>Words of page %d <a href=/p%d#x>more</a>", n, n, (n+1)%pages)
			default:
				http.NotFound(w, r)
			}
		}
	}
	for i := range good {
		good[i] = serve(t, fmt.Sprintf("127.0.0.%d", 2+i), page(i))
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	hang := func(r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}
	bad = map[string]*realSite{
		"unreachable: over idle-time": serve(t, "127.0.0.11",
			func(_ *realSite, _ http.ResponseWriter, r *http.Request) { hang(r) }),
		"over idle-time 100ms": serve(t, "127.0.0.12", func(_ *realSite, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, "<p>begin")
			w.(http.Flusher).Flush()
			hang(r)
		}),
		"unreachable: robots.txt: status 503": serve(t, "127.0.0.13",
			func(_ *realSite, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }),
		"unreachable: status 500": serve(t, "127.0.0.14", func(_ *realSite, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/robots.txt" {
				w.WriteHeader(500)
			}
		}),
		"crawl-delay 1h0m0s is over 30s": serve(t, "127.0.0.15",
			func(_ *realSite, w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "User-agent: *\nCrawl-delay: 3600\n")
			}),
	}

	s := memStore(t)
	defer s.Close()
	admit(t, s, key(t, good[0].URL+"/"))
	c := crawlWeb(t, s, 60*time.Second,
		fetch.Options{AllowNet: loopback(), Idle: 100 * time.Millisecond, Connect: 100 * time.Millisecond,
			Total: 2 * time.Second},
		web.Options{Retry: fetch.Retry{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond}},
		Options{Peer: "me", Delay: delay, MaxDepth: 20})

	for i, g := range good {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.worst > 1 {
			t.Errorf("%s: %d requests at once", g.URL, g.worst)
		}
		for uri, n := range g.asked {
			if n != 1 {
				t.Errorf("good site %d: %s asked %d times", i, uri, n)
			}
		}
		// robots.txt, start page (at depth i), pages, the missing page, the chain to depth 20
		if len(g.asked) != 1+1+pages+1+20-i || g.asked["/private"] != 0 {
			t.Errorf("good site %d: %d addresses asked: %v", i, len(g.asked), g.asked)
		}
	}
	rec, err := s.Archive.Record(key(t, good[1].URL+"/p3"))
	if err != nil || rec.Title != "Page 3" || rec.Peer != "me" || len(rec.Links) != 1 {
		t.Errorf("%+v %v", rec, err)
	}
	all := []*realSite{good[0], good[1], good[2]}
	for reason, b := range bad {
		all = append(all, b)
		b.mu.Lock()
		defer b.mu.Unlock()
		if d, _, err := c.Due(key(t, b.URL+"/")); err != nil || d.State != store.StateRefused ||
			!strings.Contains(d.Reason, reason) {
			t.Errorf("want %q: %+v %v", reason, d, err)
		}
	}
	for _, a := range all {
		for i := 1; i < len(a.at); i++ {
			if gap := a.at[i].Sub(a.at[i-1]); gap < delay {
				t.Errorf("%s: a gap of %v", a.URL, gap)
			}
		}
	}
	st := c.Stats()
	for _, stop := range []string{"robots", "depth", "crawl-delay", "idle-time", "status", "unreachable",
		"robots-unreachable"} {
		if st.Stops[stop] == 0 {
			t.Errorf("no stop %q in %v", stop, st.Stops)
		}
	}
}

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// crawlWeb crawls the rows of s, and the pages to which they link, within limit. It uses the
// fetcher and the Source that a peer has.
func crawlWeb(t *testing.T, s *db.Store, limit time.Duration, f fetch.Options, w web.Options, o Options) *Crawler {
	t.Helper()
	client, err := fetch.New(f)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w.Client = client
	src, err := web.New(w)
	if err != nil {
		t.Fatal(err)
	}
	hint := make(chan struct{}, 1)
	o.Store, o.Sources, o.Swarm = s, []Source{src}, hinting{hint: hint}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.SetSlices(s.Charter().Slices())
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	forwardUntilIdle(ctx, t, c, s, hint)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return c
}

// forwardUntilIdle does what node does with the outbox, until nothing is left.
func forwardUntilIdle(ctx context.Context, t *testing.T, c *Crawler, s *db.Store, hint <-chan struct{}) {
	t.Helper()
	for {
		rows, _, err := s.Queue.Outbox(0, 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if _, err := s.Queue.Admit([]store.Admission{r.Admission}, time.Now()); err != nil {
				t.Fatal(err)
			}
			c.Wake(s.SliceOf(r.Key), r.Key.Site())
		}
		if err := s.Queue.Sent(rows); err != nil {
			t.Fatal(err)
		}
		if before := c.Stats(); before.Idle() && len(rows) == 0 {
			if st := s.Stats(); st.Pending == 0 && st.Outbox == 0 && c.Stats().Idle() {
				return
			}
		}
		select {
		case <-ctx.Done():
			var left []store.Due
			for sl := range c.gained {
				bs, _ := s.Queue.Backlogs(sl)
				for _, b := range bs {
					rows, _, _ := s.Queue.PendingOf(sl, b.Site, nil, 5)
					left = append(left, rows...)
				}
			}
			t.Fatalf("not done in time: %+v, left %+v", c.Stats(), left)
		case <-hint:
		case <-time.After(10 * time.Millisecond): // a site may be refused without a commit, or a Wake may follow
		}
	}
}

// A source is a Source without an import of its parent package.
func TestWebIsASource(t *testing.T) {
	var src Source = &web.Source{}
	if src.Name() != "web" || !src.Handles(partition.Key("web:https://example.org/")) ||
		src.Handles("feed:https://example.org/") {
		t.Error(errors.New("not the web source"))
	}
}

// Many sites on one address: the address has its own gap, for all of them.
func TestManyHostsOneAddress(t *testing.T) {
	const gap, hosts, each = 10 * time.Millisecond, 15, 3
	srv := serve(t, "127.0.0.21", func(_ *realSite, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "<a href=/1>1</a><a href=/2>2</a>")
	})
	port := srv.URL[strings.LastIndex(srv.URL, ":"):]
	s := memStore(t)
	defer s.Close()
	names := map[string]netip.Addr{}
	for i := range hosts {
		name := fmt.Sprintf("h%d.example.org", i)
		names[name] = netip.MustParseAddr("127.0.0.21")
		admit(t, s, key(t, "http://"+name+port+"/"))
	}
	crawlWeb(t, s, 30*time.Second, fetch.Options{AllowNet: loopback(), Hosts: names, AddrDelay: gap}, web.Options{},
		Options{Delay: time.Millisecond})
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if len(srv.at) != hosts*(each+1) {
		t.Errorf("%d requests, want robots.txt and %d pages of %d hosts", len(srv.at), each, hosts)
	}
	for i := 1; i < len(srv.at); i++ {
		// the gap is kept at the sender; the way to the server takes a little more or less
		if d := srv.at[i].Sub(srv.at[i-1]); d < gap/2 {
			t.Errorf("request %d came %v after the one before", i, d)
		}
	}
}

// hinting is a Swarm that reports commits.
type hinting struct {
	Alone
	hint chan<- struct{}
}

func (h hinting) Committed() {
	select {
	case h.hint <- struct{}{}:
	default:
	}
}
