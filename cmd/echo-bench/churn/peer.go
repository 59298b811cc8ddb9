package churn

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/metrics"
	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// RunPeer is one process of the swarm, or of the baseline. It obeys the orders of in and writes
// its words to out until in or ctx ends.
func RunPeer(ctx context.Context, spec string, in io.Reader, out, talk io.Writer) error {
	var s Spec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &mouth{out: out}
	orders := make(chan order)
	go func() { // ends with in, or with the process
		defer cancel()
		_ = lines(in, func(o order) error { // a bad order ends the peer
			select {
			case orders <- o:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if s.Naive {
		return runNaive(ctx, s, m, orders)
	}
	return runSwarmPeer(ctx, s, m, orders, talk)
}

// swarmPeer is a node with its host, which can be cut off.
type swarmPeer struct {
	spec  Spec
	mouth *mouth
	gate  *gater
	host  host.Host
	bytes *metrics.BandwidthCounter
	node  *node.Node
	api   api.Peer
}

func runSwarmPeer(ctx context.Context, s Spec, m *mouth, orders <-chan order, talk io.Writer) (err error) {
	level := slog.LevelInfo
	if s.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(talk, &slog.HandlerOptions{Level: level})).With("name", s.Name)
	dht.LogTo(slog.NewTextHandler(talk, &slog.HandlerOptions{Level: slog.LevelError}))
	p := &swarmPeer{spec: s, mouth: m, gate: &gater{}, bytes: metrics.NewBandwidthCounter()}
	if err := p.open(ctx, log); err != nil {
		return ended(ctx, err)
	}
	defer func() { err = errors.Join(err, p.node.Close(), p.host.Close()) }()
	if err := writeAddrs(s.Dir, p.node.Addrs()); err != nil {
		return err
	}
	if err := m.say(word{Hello: &hello{ID: p.node.ID()}}); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.node.Run(ctx) })
	g.Go(func() error { return tell(ctx, m, p.status) })
	g.Go(func() error {
		return follow(ctx, orders, func(o order) error { return p.obey(ctx, g, o) })
	})
	return ended(ctx, g.Wait())
}

// open makes the host and the node, like echo-node run, plus the gater and the count of bytes.
func (p *swarmPeer) open(ctx context.Context, log *slog.Logger) error {
	s := p.spec
	if err := p.gate.set(s.Cut); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	key, err := dht.LoadIdentity(filepath.Join(s.Dir, "identity.key"), true)
	if err != nil {
		return err
	}
	from, err := netip.ParseAddr(s.From)
	if err != nil {
		return err
	}
	allow, err := netip.ParsePrefix(s.Allow)
	if err != nil {
		return err
	}
	p.host, err = libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings("/ip4/127.0.0.1/udp/0/quic-v1"),
		libp2p.ConnectionGater(p.gate),
		libp2p.BandwidthReporter(p.bytes), libp2p.DisableMetrics(), libp2p.DisableRelay())
	if err != nil {
		return err
	}
	o := node.Options{Dir: s.Dir, Swarm: "churn", Join: s.Join, Partition: partition.Mode(s.Partition),
		Replicas: s.Replicas, Location: s.Location, Delay: s.Delay,
		FromAddr: from, AllowNet: []netip.Prefix{allow}, Logger: log, Key: key, Host: p.host, Version: "churn"}
	if !datadir.Exists(s.Dir) {
		if err := node.Create(ctx, o); err != nil {
			return errors.Join(err, p.host.Close())
		}
	}
	if p.node, err = node.Open(ctx, o); err != nil {
		return errors.Join(err, p.host.Close())
	}
	p.api = p.node.API()
	return nil
}

func (p *swarmPeer) status() status {
	s := p.node.Status()
	return status{Peers: s.Peers, Slices: s.Slices, Total: s.SlicesTotal, Awaited: s.SlicesAwaited, Pending: s.Pending,
		Outbox: s.Outbox, Fetching: s.Fetching,
		Fetched: s.Fetched, LinksOut: s.LinksOut, LinksIn: s.LinksIn, BytesOut: p.bytes.GetBandwidthTotals().TotalOut,
		Idle: s.Idle}
}

func (p *swarmPeer) obey(ctx context.Context, g *errgroup.Group, o order) error {
	reply := func(a answer, err error) error {
		a.To = o.Do
		if err != nil {
			a.Error = err.Error()
		}
		return p.mouth.say(word{Answer: &a})
	}
	switch o.Do {
	case doCut, doHeal:
		if err := p.gate.set(o.IDs); err != nil {
			return err
		}
		p.gate.hangUp(p.host)
	case doSeed:
		keys, err := parseKeys(o.Keys)
		if err != nil {
			return err
		}
		g.Go(func() error { return p.node.SeedUntilDone(ctx, keys) })
	case doOwners:
		owners, err := p.owners(ctx, o.Keys)
		return reply(answer{Owners: owners}, err)
	case doExport:
		g.Go(func() error { return reply(answer{}, p.export(ctx, o.File)) })
	default:
		return fmt.Errorf("no order is called %q", o.Do)
	}
	return nil
}

func (p *swarmPeer) owners(ctx context.Context, urls []string) ([]string, error) {
	keys, err := parseKeys(urls)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, k := range keys {
		o, err := p.api.Owner(ctx, k)
		if err != nil {
			return nil, err
		}
		owner := ""
		if len(o.Replicas) > 0 {
			owner = o.Replicas[0]
		}
		out = append(out, owner)
	}
	return out, nil
}

// export writes the records of the whole swarm, one line of JSON each.
func (p *swarmPeer) export(ctx context.Context, name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	missing, err := p.api.Export(ctx, api.Export{},
		func(r store.Record, _ string) error { return json.NewEncoder(w).Encode(r) })
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.Join(fmt.Errorf("the export lacks %v", missing), w.Flush())
	}
	return w.Flush()
}

// follow obeys orders until one fails or ctx ends.
func follow(ctx context.Context, orders <-chan order, obey func(order) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o := <-orders:
			if err := obey(o); err != nil {
				return err
			}
		}
	}
}

// tell sends the peer's status until ctx ends.
func tell(ctx context.Context, m *mouth, now func() status) error {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		s := now()
		if err := m.say(word{Status: &s}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// ended returns nil when err is only the end of ctx.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func parseKeys(urls []string) ([]partition.Key, error) {
	keys := make([]partition.Key, 0, len(urls))
	for _, u := range urls {
		k, err := partition.ParseKey(u)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// writeAddrs writes the addresses, as a complete file, where other processes look for them.
func writeAddrs(dir string, addrs []string) error {
	name := filepath.Join(dir, "addrs")
	if err := os.WriteFile(name+".new", []byte(strings.Join(addrs, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
