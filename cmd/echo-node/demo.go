package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/cmd/echo-node/diag"
	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

type demoCmd struct {
	Peers     int           `default:"3" help:"How many peers, 1 to 32."`
	Once      bool          `help:"End when everything is crawled. Exit 0 only if nothing is missing, lost or fetched twice, and every reachable member of the community is found."`
	API       string        `name:"api" placeholder:"HOST:PORT" help:"Serve the first peer's API and dashboard at this address."`
	Sites     int           `default:"80" help:"Number of sites in the embedded world."`
	Pages     int           `default:"8" help:"Number of articles on each site."`
	People    int           `default:"40" help:"Number of people on a simulated Mastodon server. The Portuguese ones are followed. 0 = no server; none in geo mode."`
	Delay     time.Duration `default:"100ms" help:"Least time between two requests to a site. It is short for the demo; a real crawl waits 1s."`
	Partition string        `default:"hash" enum:"hash,geo" help:"How the crawl space is divided into slices: ${enum}. In geo mode, sites and peers are placed in several towns."`
	Data      string        `placeholder:"DIR" help:"Keep the peers' data here. Default: a temporary directory, which is removed at the end."`
}

// Help returns the text below the usage.
func (demoCmd) Help() string {
	return `Examples:
  echo-node demo --once
  echo-node demo --peers 7 --api 127.0.0.1:7700

Everything happens on loopback addresses of this machine.`
}

// summary is the JSON of CLI.md, "demo --once --json".
type summary struct {
	Peers []demoPeer `json:"peers"`
	Keys  struct {
		Expected   int `json:"expected"`
		Fetched    int `json:"fetched"`
		Missing    int `json:"missing"`
		Duplicates int `json:"duplicate_fetches"`
		Extra      int `json:"extra"` // fetched and not expected
	} `json:"keys"`
	Links struct {
		Forwarded    int64 `json:"forwarded"`
		Acknowledged int64 `json:"acknowledged"`
		Lost         int64 `json:"lost"`
	} `json:"links"`
	Query struct {
		Q        string        `json:"q"`
		Hits     int           `json:"hits"`
		Expected int           `json:"expected"`
		Answered int           `json:"slices_answered"`
		Total    int           `json:"slices_total"`
		Missing  []api.Missing `json:"missing"`
	} `json:"query"`
	Server struct { // what the test web's server saw
		RobotsViolations int64   `json:"robots_violations"`
		Forbidden        int64   `json:"forbidden"`
		MinGapMS         float64 `json:"min_gap_ms"`
	} `json:"server"`
	Judged  *judgedSummary `json:"judged"`
	Geo     *geoSummary    `json:"geo,omitempty"`
	Elapsed float64        `json:"elapsed_s"`
}

type demoPeer struct {
	ID       string `json:"id"`
	Slices   int    `json:"slices"`
	Fetched  int64  `json:"fetched"`
	Records  int64  `json:"records"`
	LinksOut int64  `json:"links_out"`
	LinksIn  int64  `json:"links_in"`
}

// Run runs the demo.
func (c *demoCmd) Run(ctx context.Context, p *program, g *globals) (err error) {
	if c.Peers < 1 || c.Peers > 32 {
		return usage("--peers %d: give 1 to 32", c.Peers)
	}
	if c.Sites < 1 || c.Sites > 5000 || c.Pages < 1 || c.Pages > 100_000 {
		return usage("--sites takes 1 to 5000, --pages 1 to 100000")
	}
	if c.People < 0 || c.People > 200 {
		return usage("--people %d: give 0 to 200", c.People)
	}
	closeFiles()
	dht.LogTo(p.libraryLog(g))
	defer diag.DumpOnQuit(p.stderr, c.Data, p.logger(g))()
	dir := c.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "echo-demo-"); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	options := crawltest.Options{Seed: 1, Sites: c.Sites, Pages: c.Pages}
	if c.Partition == "geo" {
		options.Places = demoPlaces()
	}
	world := crawltest.NewWorld(options)
	if err := world.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	d := &demo{cmd: c, p: p, g: g, dir: dir, world: world, start: time.Now()}
	if c.People > 0 && c.Partition != "geo" {
		if d.village, err = newVillage(c.People); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.village.stop()) }()
	}
	return d.run(ctx)
}

type demo struct {
	cmd     *demoCmd
	p       *program
	g       *globals
	dir     string
	world   *crawltest.World
	village *village // nil = there is none
	nodes   []*node.Node
	start   time.Time
}

// run runs the whole demo: it opens the swarm, crawls, and prints the summary. Without --once
// the swarm then runs until ctx ends.
func (d *demo) run(ctx context.Context) (err error) {
	running, stop := context.WithCancel(ctx)
	group, running := errgroup.WithContext(running)
	defer func() {
		stop()
		err = errors.Join(err, ignoreDone(running, group.Wait()))
		for _, n := range d.nodes {
			err = errors.Join(err, n.Close())
		}
	}()
	if err := d.open(running, group); err != nil {
		return err
	}
	if d.cmd.API != "" {
		ln, err := net.Listen("tcp", d.cmd.API)
		if err != nil {
			return fmt.Errorf("--api: %w", err)
		}
		log := d.p.logger(d.g)
		srv, operator, err := newServer(d.nodes[0], ln, "", d.dir, log)
		if err != nil {
			return err
		}
		defer operator.remove(log)
		group.Go(func() error { return srv.Serve(running, ln) })
	}
	if err := d.crawl(running); err != nil {
		return d.blame(running, group, err)
	}
	s, err := d.summarise(running)
	if err != nil {
		return d.blame(running, group, err)
	}
	if err := d.p.print(d.g, s, func(w io.Writer) { s.print(w) }); err != nil {
		return err
	}
	if !d.cmd.Once {
		fmt.Fprintln(d.p.stderr, "the swarm stays up; interrupt to end")
		<-running.Done()
		return nil
	}
	if s.Keys.Missing+s.Keys.Duplicates+s.Keys.Extra > 0 || s.Links.Lost > 0 || s.Query.Answered < s.Query.Total ||
		s.Query.Hits != s.Query.Expected || s.Judged.Unread > 0 {
		return &incompleteError{errors.New("the crawl is not whole; see the summary")}
	}
	return nil
}

// blame prefers the failure of a peer to the cancelled context that it causes.
func (d *demo) blame(ctx context.Context, g *errgroup.Group, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		if cause := g.Wait(); cause != nil {
			return cause
		}
	}
	return err
}

// open founds the swarm with one peer and joins the others. It waits until each peer sees all
// and acts in all slices that it owns.
func (d *demo) open(ctx context.Context, g *errgroup.Group) error {
	var join []string
	for i := range d.cmd.Peers {
		o := node.Options{
			Dir: filepath.Join(d.dir, fmt.Sprintf("peer%d", i+1)), Join: join, Swarm: "demo",
			Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"},
			Delay:  d.cmd.Delay, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.77.0.0/16")},
			Version:   versionText(),
			Partition: partition.Mode(d.cmd.Partition), Location: demoLocation(d.cmd.Partition, i),
		}
		if d.village != nil {
			o.Social, o.Fanout = social.Options{Lists: true, Rules: d.village.rules}, villageFanout
		}
		if d.g.Verbose {
			o.Logger = d.p.logger(d.g)
		}
		if !datadir.Exists(o.Dir) {
			if err := node.Create(ctx, o); err != nil {
				return err
			}
		}
		n, err := node.Open(ctx, o)
		if err != nil {
			return err
		}
		d.nodes = append(d.nodes, n)
		g.Go(func() error { return n.Run(ctx) })
		if i == 0 {
			join = n.Addrs()
		}
	}
	return d.until(ctx, time.Minute, "the peers did not find each other", func() (bool, string, error) {
		ready := 0
		for _, n := range d.nodes {
			st, err := n.API().Status(ctx)
			if err != nil {
				return false, "", err
			}
			if st.Peers == len(d.nodes) && st.SlicesAwaited == 0 && st.Slices > 0 {
				ready++
			}
		}
		return ready == len(d.nodes), fmt.Sprintf("%d of %d peers ready", ready, len(d.nodes)), nil
	})
}

// until polls cond until it returns true, and shows progress on a terminal.
func (d *demo) until(ctx context.Context, limit time.Duration, complaint string,
	cond func() (bool, string, error)) error {
	screen, show := terminal(d.p.stderr)
	deadline := time.Now().Add(limit)
	for {
		ok, progress, err := cond()
		if err != nil {
			return err
		}
		if show {
			fmt.Fprintf(screen, "\r\033[K%s", oneLine(progress))
			if ok {
				fmt.Fprintln(screen)
			}
		}
		if ok {
			return nil
		}
		if limit > 0 && time.Now().After(deadline) {
			return fmt.Errorf("demo: %s within %s (%s)", complaint, limit, progress)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// crawl gives the first peer the seeds and waits until the swarm is idle.
func (d *demo) crawl(ctx context.Context) error {
	var keys []partition.Key
	for _, u := range d.world.Seeds() {
		k, err := partition.ParseKey(u)
		if err != nil {
			return err
		}
		keys = append(keys, k)
	}
	if d.village != nil {
		keys = append(keys, d.village.seeds...)
	}
	if err := d.nodes[0].SeedUntilDone(ctx, keys); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := make(chan error, 1)
	wg.Go(func() { idle <- d.nodes[0].WaitIdle(ctx, time.Second) })
	return d.until(ctx, 0, "", func() (bool, string, error) {
		var fetched, pending, out int64
		for _, n := range d.nodes {
			st, err := n.API().Status(ctx)
			if err != nil {
				return false, "", err
			}
			fetched, pending, out = fetched+st.Fetched, pending+st.Pending, out+st.Outbox
		}
		text := fmt.Sprintf("fetched %d, pending %d, links under way %d", fetched, pending, out)
		select {
		case err := <-idle:
			return true, text, err
		default:
			return false, text, nil
		}
	})
}

// summarise compares what the swarm fetched with what the test web expects.
func (d *demo) summarise(ctx context.Context) (summary, error) {
	var s summary
	for _, n := range d.nodes {
		if err := n.FlushIndex(ctx); err != nil {
			return s, err
		}
		st, err := n.API().Status(ctx)
		if err != nil {
			return s, err
		}
		s.Peers = append(s.Peers, demoPeer{ID: st.ID, Slices: st.Slices, Fetched: st.Fetched, Records: st.Records,
			LinksOut: st.LinksOut, LinksIn: st.LinksIn})
		s.Links.Forwarded += st.LinksOut
		s.Links.Acknowledged += st.LinksIn
		s.Links.Lost += st.Outbox
	}
	// A link with a final answer at its sender and none at a receiver is lost.
	s.Links.Lost += max(0, s.Links.Forwarded-s.Links.Acknowledged)

	expected := d.world.Expected(d.world.Seeds())
	diff, rep := d.world.Compare(expected), d.world.Report()
	s.Keys.Expected, s.Keys.Missing, s.Keys.Extra = len(expected), len(diff.Missing), len(diff.Extra)
	s.Keys.Fetched, s.Keys.Duplicates = len(expected)-len(diff.Missing), int(rep.Duplicates)
	s.Server.RobotsViolations, s.Server.Forbidden, s.Server.MinGapMS = rep.RobotsViolations, rep.Forbidden,
		float64(rep.MinGap.Microseconds())/1000

	s.Query.Q = d.world.Words()[0]
	s.Query.Expected = min(len(d.world.Matching(s.Query.Q, expected)), search.MaxHits)
	a, err := d.nodes[len(d.nodes)-1].Search().Query(ctx, api.Query{Q: s.Query.Q, Kind: store.KindPage,
		Limit:  search.MaxHits,
		Unfold: true})
	if err != nil {
		return s, err
	}
	s.Query.Hits, s.Query.Answered, s.Query.Total, s.Query.Missing = len(a.Hits), a.Coverage.SlicesAnswered,
		a.Coverage.SlicesTotal, a.Coverage.Missing
	if s.Judged, err = d.judged(ctx); err != nil {
		return s, err
	}
	if d.cmd.Partition == "geo" {
		if s.Geo, err = d.geo(ctx); err != nil {
			return s, err
		}
	}
	s.Elapsed = time.Since(d.start).Seconds()
	return s, nil
}

func (s summary) print(w io.Writer) {
	for _, x := range s.Peers {
		fmt.Fprintf(w, "peer …%s  slices %4d  fetched %4d  records %4d  links out %4d  in %4d\n", tail(x.ID), x.Slices,
			x.Fetched, x.Records, x.LinksOut, x.LinksIn)
	}
	fmt.Fprintf(w, "keys   expected %d  fetched %d  missing %d  duplicate_fetches %d\n", s.Keys.Expected,
		s.Keys.Fetched, s.Keys.Missing, s.Keys.Duplicates)
	fmt.Fprintf(w, "links  forwarded %d  acknowledged %d  lost %d\n", s.Links.Forwarded, s.Links.Acknowledged,
		s.Links.Lost)
	fmt.Fprintf(w, "query  %q: %d hits (%d expected), %d of %d slices answered, missing %d\n", s.Query.Q, s.Query.Hits,
		s.Query.Expected, s.Query.Answered, s.Query.Total, len(s.Query.Missing))
	fmt.Fprintf(w, "sites  robots violations %d, private addresses asked %d, smallest gap %.1f ms\n",
		s.Server.RobotsViolations, s.Server.Forbidden, s.Server.MinGapMS)
	s.Judged.print(w)
	if s.Geo != nil {
		s.Geo.print(w)
	}
	fmt.Fprintf(w, "done in %.1f s\n", s.Elapsed)
}

// terminal returns the writer below w, if that is a terminal. Our own escape sequences may go
// only there, past the code that cleans strangers' texts.
func terminal(w io.Writer) (io.Writer, bool) {
	if below, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = below.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok {
		return nil, false
	}
	st, err := f.Stat()
	return f, err == nil && st.Mode()&os.ModeCharDevice != 0
}
