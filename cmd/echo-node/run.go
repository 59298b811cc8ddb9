package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/cmd/echo-node/diag"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/node/ui"
	"github.com/echo-node/echo-node/partition"
)

type runCmd struct {
	Data     string   `default:"echo-data" placeholder:"DIR" help:"Data directory. It is created when it does not exist." group:"Peer:"`
	API      string   `name:"api" default:"127.0.0.1:7700" placeholder:"HOST:PORT" help:"Where the HTTP API and the dashboard listen; empty for none." group:"Peer:"`
	APIToken string   `name:"api-token-file" placeholder:"FILE" help:"File with the token that API callers must send. Needed when --api is not a loopback address." group:"Peer:"`
	Listen   []string `sep:"," placeholder:"MULTIADDR" help:"Addresses where other peers reach this one (default: QUIC and TCP, any free port)." group:"Peer:"`
	Capacity int      `default:"1" placeholder:"1..16" help:"This peer's share of the work, relative to other peers." group:"Peer:"`
	Location location `placeholder:"LAT,LON" help:"Where this peer is on the map." group:"Peer:"`

	BackupDir   string        `placeholder:"DIR" help:"Make backups here while the peer runs. Use another disk if you can." group:"Peer:"`
	BackupEvery time.Duration `default:"24h" help:"Time between two backups." group:"Peer:"`
	BackupKeep  int           `default:"3" placeholder:"N" help:"Number of backups to keep." group:"Peer:"`

	Scrub span `default:"30d" help:"Read every file of the store this often, to find damage while other peers still have a good copy. 0 = never." group:"Peer:"`

	Undelete    span `default:"7d" help:"Keep slices that this peer drops in its trash for this long. restore --trash brings them back. 0 = keep nothing." group:"Peer:"`
	UndeleteMax size `name:"undelete-max" default:"1GiB" help:"Largest size of the trash. The oldest slices leave first." group:"Peer:"`

	Swarm     string        `placeholder:"NAME" help:"Name of the swarm to found (default echo), or the name that the joined swarm must have." group:"Swarm:"`
	Join      []string      `sep:"," placeholder:"ADDR" help:"A peer of the swarm to join: a multiaddr with /p2p/ID, a file of such addresses, or a DNS name. Repeatable. Without it, a new data directory founds a new swarm." group:"Swarm:"`
	Private   bool          `help:"Found a private swarm: joining needs an invite or the swarm's key." group:"Swarm:"`
	Overrides string        `default:"" enum:",founder,members" placeholder:"founder|members" help:"Who may decide about accounts by hand (echo-node override) in a new swarm (default: members in a private swarm, the founder in an open one)." group:"Swarm:"`
	Invite    string        `placeholder:"CODE" help:"Invitation into a private swarm: the code that echo-node invite prints, or a file with the code. Needed once." group:"Swarm:"`
	SwarmKey  string        `placeholder:"FILE" help:"File with the key that the members of a private swarm share (64 hex digits). The founder creates it when it does not exist." group:"Swarm:"`
	MDNS      bool          `name:"mdns" help:"Find peers of the swarm on the local network." group:"Swarm:"`
	LAN       bool          `name:"lan" help:"This swarm is on a local network: connect to members at private addresses. Set by itself when --listen or --join has only private addresses." group:"Swarm:"`
	Partition string        `default:"hash" enum:"hash,geo" help:"How a new swarm divides the crawl space into slices: ${enum}." group:"Swarm:"`
	SliceBits int           `default:"12" help:"A new swarm has 2^N slices." group:"Swarm:"`
	ZoneMax   int           `default:"0" help:"A new swarm splits into zones of at most N members each. 0 = always one zone. --until-idle and export do not cross zones yet." group:"Swarm:"`
	Replicas  int           `default:"3" placeholder:"1..7" help:"Number of peers that keep each slice of a new swarm." group:"Swarm:"`
	Orphan    time.Duration `name:"orphan-after" default:"60s" help:"How long a peer that is gone keeps its place. Slices that lost most of their replicas wait this long for them." group:"Swarm:"`
	Leave     time.Duration `default:"10s" help:"When interrupted, hand over this peer's slices to others for at most this long." group:"Swarm:"`

	Seed      []string       `sep:"none" placeholder:"KEY" help:"A key or URL to crawl first. Repeatable." group:"Crawl:"`
	Seeds     string         `placeholder:"FILE" help:"File of keys or URLs to crawl first, one a line." group:"Crawl:"`
	Strict    bool           `help:"Do not start when a line of --seeds is not a key. Without this flag, such lines are reported and skipped." group:"Crawl:"`
	Delay     time.Duration  `default:"1s" help:"Least time between two requests to a site." group:"Crawl:"`
	Contact   string         `placeholder:"MAIL-OR-URL" help:"How site owners can reach you. It is part of the user agent. Only loopback addresses are crawled without it." group:"Crawl:"`
	MaxDepth  int            `default:"100" help:"Follow links at most this far from a seed." group:"Crawl:"`
	Scope     string         `placeholder:"1939..1945" help:"Fetch pages first that are probably about this time: years, months, days or FROM..TO, separated by commas." group:"Crawl:"`
	Revisit   time.Duration  `default:"0" placeholder:"24h" help:"Fetch each page again this often on average. Pages that change often are fetched more often than others. 0 = never." group:"Crawl:"`
	Workers   int            `default:"64" help:"Largest number of fetches at the same time." group:"Crawl:"`
	AllowNet  []netip.Prefix `sep:"," placeholder:"CIDR" help:"Allow the crawler to reach this private network. Repeatable." group:"Crawl:"`
	AllowPort []string       `sep:"," placeholder:"PORT" help:"Allow the crawler to use this port below 1024, or a range (81,8000-8010). Ports 80, 443 and those above 1023 need no flag. Ports that browsers refuse are never used. Repeatable." group:"Crawl:"`
	Hosts     string         `placeholder:"FILE" help:"Resolve names from this file only: lines of ADDRESS NAME, as in /etc/hosts." group:"Crawl:"`
	FromAddr  netip.Addr     `placeholder:"ADDR" help:"Source address of requests." group:"Crawl:"`
	Bodies    bool           `default:"true" negatable:"" help:"Store the headers and bodies of pages, for export as WARC." group:"Crawl:"`
	UntilIdle time.Duration  `placeholder:"10s" help:"End with exit 0 once the whole swarm has had nothing to do for this long. A first seed must have come." group:"Crawl:"`

	accountFlags `embed:""`

	JudgeMemory  size    `default:"512MiB" placeholder:"SIZE" help:"Largest memory for all pages that are being read and judged." group:"Your own limits:"`
	MaxRate      float64 `placeholder:"N" help:"Send at most N requests a second." group:"Your own limits:"`
	MaxBandwidth size    `placeholder:"SIZE" help:"Receive at most SIZE bytes a second (64KB, 2MB)." group:"Your own limits:"`
	MaxDisk      size    `placeholder:"SIZE" help:"Largest size of the data directory. Near it, this peer stops fetching, and other peers take its slices over." group:"Your own limits:"`
	Hours        string  `placeholder:"22-07" help:"Fetch only between these hours, local time." group:"Your own limits:"`
}

// Help returns the text below the usage.
func (runCmd) Help() string {
	return `Examples:
  echo-node run --data a --seed https://example.org/ --contact me@example.org
  echo-node run --data b --api 127.0.0.1:7701 --join /ip4/127.0.0.1/udp/4001/quic-v1/p2p/12D3Koo...

Every flag is also an environment variable (--max-rate is ECHO_MAX_RATE) and a
key of the --config file. Interrupt once to stop cleanly.`
}

// Run runs one peer until the context ends, the swarm is idle (--until-idle), or an error
// occurs that prevents it from continuing.
func (c *runCmd) Run(ctx context.Context, p *program, g *globals) error {
	closeFiles()
	log := p.logger(g)
	dht.LogTo(p.libraryLog(g))
	diag.BindStdLog(log)
	defer diag.DumpOnQuit(p.stderr, c.Data, log)()
	seeds, bad, err := readSeeds(c.Seed, c.Seeds, c.Strict)
	if err != nil {
		return err
	}
	if err := joinLines(bad); err != nil {
		log.Warn("lines of --seeds that are no keys are left out; --strict refuses them", "lines", len(bad), "err", err)
	}
	o, named, err := c.options(log)
	if err != nil {
		return err
	}
	seeds = append(seeds, named...)
	ln, token, err := c.listenAPI(log)
	if err != nil {
		return err
	}
	if ln != nil {
		defer ln.Close()
	}
	if !datadir.Exists(c.Data) {
		if err := node.Create(ctx, o); err != nil {
			return err
		}
		log.Info("data directory made", "data", c.Data)
	}
	n, err := node.Open(ctx, o)
	if err != nil {
		return err
	}
	log.Info("peer is up", "id", n.ID(), "swarm", n.Charter().Name, "version", versionText())
	for _, a := range n.Addrs() {
		log.Info("others join with", "addr", a)
	}
	if err := writeAddrs(c.Data, n.Addrs()); err != nil {
		return errors.Join(err, n.Close())
	}
	err = c.serve(ctx, n, ln, token, seeds, log)
	return errors.Join(err, n.Close())
}

// serve runs the node, its API and its seeds until one ends.
func (c *runCmd) serve(ctx context.Context, n *node.Node, ln net.Listener, token string, seeds []partition.Key,
	log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer cancel(); return n.Run(ctx) })
	g.Go(func() error { return serveControl(ctx, c.Data, n.Backup, log) })
	if ln != nil {
		srv, operator, err := newServer(n, ln, token, c.Data, log)
		if err != nil {
			cancel()
			return errors.Join(err, g.Wait())
		}
		defer operator.remove(log)
		g.Go(func() error { return srv.Serve(ctx, ln) })
	}
	if len(seeds) > 0 {
		g.Go(func() error { return ignoreDone(ctx, n.SeedUntilDone(ctx, seeds)) })
	}
	if c.UntilIdle > 0 {
		g.Go(func() error {
			if err := n.WaitIdle(ctx, c.UntilIdle); err != nil {
				return ignoreDone(ctx, err)
			}
			log.Info("the swarm is idle: done")
			cancel()
			return nil
		})
	}
	return ignoreDone(ctx, g.Wait())
}

// newServer returns the API of n with the dashboard. If there is no token for all requests, it
// makes the operator's token, which the caller removes at the end.
func newServer(n *node.Node, ln net.Listener, token, data string, log *slog.Logger) (*api.Server, *operatorToken,
	error) {
	dash, err := ui.New(ui.Options{Peer: n.API(), Login: true, Log: log})
	if err != nil {
		return nil, nil, err
	}
	o := api.Options{Peer: n.API(), Token: token, Addr: ln.Addr().String(), Version: versionText(), Logger: log,
		UI: dash}
	operator, found := &operatorToken{}, true
	if token == "" {
		if operator, found, err = publishToken(data, o.Addr); err != nil {
			return nil, nil, err
		}
		o.Operator = operator.text
	}
	srv, err := api.New(o)
	if err != nil {
		operator.remove(log)
		return nil, nil, err
	}
	url := "http://" + o.Addr
	log.Info("API and dashboard", "url", url+"/")
	if token == "" {
		log.Info("to change something in the dashboard, log in: the link works once, for an hour", "url",
			url+srv.LoginPath())
	}
	if !found {
		log.Warn("this user has no directory for the API's token: commands need --api-token-file", "file",
			filepath.Join(data, tokenName))
	}
	return srv, operator, nil
}

// ignoreDone turns the end of the context into success.
func ignoreDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil
	}
	return err
}

// options translates the flags; node reports all errors at once. seeds are those of
// --community.
func (c *runCmd) options(log *slog.Logger) (o node.Options, seeds []partition.Key, err error) {
	hosts, err := readHosts(c.Hosts)
	if err != nil {
		return o, nil, &usageError{err}
	}
	if c.Data == "" {
		return o, nil, usage("--data is empty")
	}
	invite, err := readInvite(c.Invite)
	if err != nil {
		return o, nil, err
	}
	var scope period.Scope
	if c.Scope != "" {
		if scope, err = period.ParseScope(c.Scope); err != nil {
			return o, nil, usage("--scope: %w", err)
		}
	}
	founds := c.Private && len(c.Join) == 0 && invite == "" && !datadir.Exists(c.Data)
	key, err := readSwarmKey(c.SwarmKey, founds)
	if err != nil {
		return o, nil, err
	}
	accounts, seeds, err := c.accountFlags.options()
	if err != nil {
		return o, nil, err
	}
	ports, err := fetch.ParsePorts(c.AllowPort)
	if err != nil {
		return o, nil, usage("--allow-port: %w", err)
	}
	o = node.Options{
		Social: accounts, Fanout: c.Fanout, Media: c.media(),
		Scrub: time.Duration(c.Scrub), Undelete: c.Undelete.orNone(), UndeleteMax: int64(c.UndeleteMax),
		Private: c.Private, Overrides: c.Overrides, Invite: invite, SwarmKey: key,
		Dir: c.Data, Swarm: c.Swarm, Join: c.Join, Listen: c.Listen, MDNS: c.MDNS, LAN: c.LAN,
		Partition: partition.Mode(c.Partition), SliceBits: c.SliceBits, ZoneMax: c.ZoneMax,
		Replicas: c.Replicas, Leave: c.Leave, Capacity: c.Capacity, Location: c.Location.Point, OrphanAfter: c.Orphan,
		Delay: c.Delay, Workers: c.Workers, MaxDepth: c.MaxDepth, Scope: scope, Revisit: c.Revisit,
		Contact: c.Contact, AllowNet: c.AllowNet, AllowPorts: ports, Hosts: hosts, FromAddr: c.FromAddr,
		KeepBodies:  c.Bodies,
		JudgeMemory: int64(c.JudgeMemory), MaxRate: c.MaxRate, MaxBandwidth: int64(c.MaxBandwidth),
		MaxDisk: int64(c.MaxDisk), Hours: c.Hours,
		BackupDir: c.BackupDir, BackupEvery: c.BackupEvery, BackupKeep: c.BackupKeep,
		Version: versionText(), Logger: log,
	}
	if err := o.Validate(); err != nil {
		return o, nil, &usageError{err}
	}
	return o, seeds, nil
}

// listenAPI opens the API's port before anything else, so that a second peer on the same port
// fails at once and changes nothing.
func (c *runCmd) listenAPI(log *slog.Logger) (net.Listener, string, error) {
	if c.API == "" {
		return nil, "", nil
	}
	var token string
	if c.APIToken != "" {
		b, err := os.ReadFile(c.APIToken)
		if err != nil {
			return nil, "", usage("--api-token-file: %w", err)
		}
		if token = strings.TrimSpace(string(b)); token == "" {
			return nil, "", usage("--api-token-file: %s is empty", c.APIToken)
		}
	}
	if _, err := api.New(api.Options{Addr: c.API, Token: token}); err != nil {
		return nil, "", &usageError{err} // this error is found before the port is opened
	}
	ln, err := net.Listen("tcp", c.API)
	if err != nil {
		return nil, "", fmt.Errorf("--api: %w; is another peer using it? give another --api HOST:PORT", err)
	}
	return ln, token, nil
}

// writeAddrs writes the peer's addresses into the data directory, one per line. The --join flag
// of another peer on the machine can name that file.
func writeAddrs(dir string, addrs []string) error {
	name := filepath.Join(dir, "addrs")
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, []byte(strings.Join(addrs, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
	return os.Rename(tmp, name)
}
