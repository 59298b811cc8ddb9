package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// worldCmd serves a synthetic web until interrupted.
type worldCmd struct {
	Listen     string        `help:"Serve all sites by host name on this one ADDR:PORT. Default: every site on a loopback address of its own." placeholder:"ADDR"`
	Port       int           `help:"Port of the loopback addresses; 0 picks a free one." default:"0"`
	Prefix     string        `help:"First two bytes of the loopback addresses." default:"127.77"`
	Sites      int           `help:"Number of sites." default:"80"`
	Pages      int           `help:"Number of articles on each site." default:"8"`
	Words      int           `help:"Least words on a page." default:"120"`
	Seed       uint64        `help:"Of everything generated." default:"1"`
	Plain      bool          `help:"Articles only: no redirects, robots rules, copies, traps."`
	Maze       bool          `help:"With a growing path that no robots.txt forbids."`
	Think      time.Duration `help:"Time the server takes for a page." default:"0s"`
	Gap        time.Duration `help:"Count gaps between requests to a site that are shorter than this." default:"0s"`
	CrawlDelay time.Duration `help:"Crawl-delay that every fourth site asks for." default:"0s"`
	Admin      string        `help:"Where reports are asked for." default:"127.0.0.1:7790" placeholder:"ADDR"`
	Advertise  string        `help:"Address that stands behind the host names in --hosts-out; default: this machine's first that is not loopback." placeholder:"IP"`
	HostsOut   string        `help:"Write the sites' names and addresses here, as in /etc/hosts." placeholder:"FILE"`
	SeedsOut   string        `help:"Write the URLs to begin with here, one a line." placeholder:"FILE"`
}

// Help returns the example for --help.
func (worldCmd) Help() string {
	return "Example: echo-bench world --listen :8080 --hosts-out /tmp/hosts --seeds-out /tmp/seeds"
}

// Run serves until ctx is done.
func (c *worldCmd) Run(ctx context.Context, o output) error {
	w, handler, err := c.open()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := c.tell(w); err != nil {
		return err
	}
	servers := []*http.Server{{Addr: c.Admin, Handler: admin(w), ReadHeaderTimeout: time.Minute}}
	if handler != nil {
		servers = append(servers, &http.Server{Addr: c.Listen, Handler: handler, ReadHeaderTimeout: time.Minute})
	}
	failed := make(chan error, len(servers))
	for _, srv := range servers {
		l, err := net.Listen("tcp", srv.Addr)
		if err != nil {
			return fmt.Errorf("world: %w", err)
		}
		go func() { failed <- srv.Serve(l) }()
	}
	fmt.Fprintf(o.talk, "world: %d sites, %d pages to fetch, first %s, reports at http://%s/report\n",
		w.Sites(), len(w.Expected(w.Seeds())), w.Seeds()[0], c.Admin)
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
		err = fmt.Errorf("world: %w", err)
	}
	for _, srv := range servers {
		err = errors.Join(err, srv.Close())
	}
	return err
}

// open makes the synthetic web. The handler is nil when the web serves itself.
func (c *worldCmd) open() (*crawltest.World, http.Handler, error) {
	opts := crawltest.Options{Seed: c.Seed, Sites: c.Sites, Pages: c.Pages, Words: c.Words, Plain: c.Plain,
		Maze:  c.Maze,
		Think: c.Think, Gap: c.Gap, CrawlDelay: c.CrawlDelay, Prefix: c.Prefix, Port: c.Port, Names: c.Listen != ""}
	if c.Listen != "" {
		_, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return nil, nil, fmt.Errorf("world: --listen: %w: %w", errUsage, err)
		}
		if opts.Port, err = strconv.Atoi(port); err != nil || opts.Port == 0 {
			return nil, nil, fmt.Errorf("world: --listen %s: %w: want a port number", c.Listen, errUsage)
		}
	}
	if err := opts.Check(); err != nil {
		return nil, nil, fmt.Errorf("world: %w: %w", errUsage, err)
	}
	w := crawltest.NewWorld(opts)
	if c.Listen != "" {
		return w, w.Handler(), nil
	}
	return w, nil, w.Start()
}

// tell writes the files that a crawler needs.
func (c *worldCmd) tell(w *crawltest.World) error {
	if c.HostsOut != "" {
		addr, err := c.address(w)
		if err != nil {
			return err
		}
		var b strings.Builder
		for s := range w.Sites() {
			a := addr
			if c.Listen == "" {
				a = w.Addr(s)
			}
			fmt.Fprintf(&b, "%s %s\n", a, w.Host(s))
		}
		if err := replace(c.HostsOut, b.String(), 0o644); err != nil {
			return err
		}
	}
	if c.SeedsOut != "" {
		return replace(c.SeedsOut, strings.Join(w.Seeds(), "\n")+"\n", 0o644)
	}
	return nil
}

// replace writes a file that other processes may read at any moment.
func replace(name, text string, mode fs.FileMode) error {
	tmp := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
	if err := os.WriteFile(tmp, []byte(text), mode); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	if err := os.Rename(tmp, name); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	return nil
}

// address returns the address to which the host names lead.
func (c *worldCmd) address(w *crawltest.World) (netip.Addr, error) {
	if c.Advertise != "" {
		a, err := netip.ParseAddr(c.Advertise)
		if err != nil {
			return a, fmt.Errorf("world: --advertise: %w: %w", errUsage, err)
		}
		return a, nil
	}
	if c.Listen == "" {
		return w.Addr(0), nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("world: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr(), nil
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
}

// Answer is the response of /report.
type Answer struct {
	Expected int              `json:"expected"`
	Missing  int              `json:"missing"`
	Extra    int              `json:"extra"`
	First    []string         `json:"first,omitempty"` // the first few missing and extra URLs
	Report   crawltest.Report `json:"report"`
}

// admin serves reports next to the synthetic web, on a separate address so that no crawler
// finds it.
func admin(w *crawltest.World) http.Handler {
	expected := w.Expected(w.Seeds())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(rw http.ResponseWriter, _ *http.Request) {
		d := w.Compare(expected)
		a := Answer{Expected: len(expected), Missing: len(d.Missing), Extra: len(d.Extra), Report: w.Report()}
		a.First = append(a.First, d.Missing[:min(10, len(d.Missing))]...)
		a.First = append(a.First, d.Extra[:min(10, len(d.Extra))]...)
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(a) // an error means that the client left
	})
	// /seen has only the report, which is read often.
	mux.HandleFunc("GET /seen", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(w.Report()) // an error means that the client left
	})
	mux.HandleFunc("POST /reset", func(rw http.ResponseWriter, _ *http.Request) {
		w.Reset()
		rw.WriteHeader(http.StatusNoContent)
	})
	return mux
}
