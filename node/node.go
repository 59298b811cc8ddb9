package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

const metaTerritory = "territory"

// Node is one peer. Open makes one, Run works until its context ends, Close
// waits for everything. All methods are safe for concurrent use.
type Node struct {
	o       Options
	log     *slog.Logger
	id      string
	charter partition.Charter
	started time.Time
	// joiner: this peer was told of others, so being alone means not having met
	// them yet. heldBefore: it held slices when it was opened.
	joiner, heldBefore bool

	store   *store.Store
	index   *index.Index
	dht     *dht.DHT
	crawler *crawler.Crawler
	client  *fetch.Client
	sources []crawler.Source

	terr        *territory
	forward     *forwarder
	viewChanged chan struct{}
	seeding     atomic.Int64 // seeds on their way: not idle
	done        atomic.Bool  // WaitIdle has found the swarm idle
	admitting   sync.RWMutex // held for reading from acts to the end of the admission it allows
	persisting  sync.Mutex   // what is held is written in the order in which it changes

	count struct {
		linksOut, linksIn, refused atomic.Int64
	}
	closeOnce sync.Once
	closeErr  error
}

// Exists says whether dir holds a node's data.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "store"))
	return err == nil
}

// Create makes a data directory: an identity, the charter (founded here, or
// fetched from one of o.Join, waiting until one answers or ctx ends), and an
// empty store. It refuses a directory that has one.
func Create(ctx context.Context, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	key, err := o.identity(true)
	if err != nil {
		return err
	}
	charter, err := o.makeCharter(ctx, key)
	if err != nil {
		return err
	}
	s, err := store.Create(filepath.Join(o.Dir, "store"), store.Options{FS: o.FS, Logger: o.Logger, Charter: charter})
	if err != nil {
		return err
	}
	return s.Close()
}

func (o Options) identity(create bool) (crypto.PrivKey, error) {
	if o.Key != nil {
		return o.Key, nil
	}
	return dht.LoadIdentity(filepath.Join(o.Dir, "identity.key"), create)
}

func (o Options) makeCharter(ctx context.Context, key crypto.PrivKey) (partition.Charter, error) {
	if len(o.Join) == 0 {
		name := o.Swarm
		if name == "" {
			name = "echo"
		}
		c := partition.DefaultCharter(name, dht.PeerID(key))
		c.SliceBits, c.Mode = o.SliceBits, o.Partition
		return c, c.Validate()
	}
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		c, err := dht.FetchCharter(ctx, key, nil, o.Join)
		if err == nil {
			if o.Swarm != "" && o.Swarm != c.Name {
				return c, fmt.Errorf("--swarm %s: the peers of --join are the swarm %s", o.Swarm, c.Name)
			}
			return c, c.CheckLocal()
		}
		o.Logger.Warn("no peer of --join gives the charter yet", "err", err)
		select {
		case <-ctx.Done():
			return c, fmt.Errorf("join: no peer of %v answered: %w", o.Join, err)
		case <-time.After(wait):
		}
	}
}

// Open opens the data directory o.Dir as a peer. Nothing runs yet but the
// peer's listeners.
func Open(ctx context.Context, o Options) (_ *Node, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	n := &Node{o: o, log: o.Logger, started: time.Now(), viewChanged: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	key, err := o.identity(false)
	if err != nil {
		return nil, err
	}
	n.id = dht.PeerID(key)
	n.log = o.Logger.With("peer", n.id[max(0, len(n.id)-6):])
	if n.store, err = store.Open(filepath.Join(o.Dir, "store"), store.Options{FS: o.FS, Logger: n.log}); err != nil {
		return nil, err
	}
	n.charter = n.store.Charter()
	if o.Swarm != "" && o.Swarm != n.charter.Name {
		return nil, fmt.Errorf("--swarm %s: %s belongs to the swarm %s; use another --data", o.Swarm, o.Dir, n.charter.Name)
	}
	if err := n.charter.CheckLocal(); err != nil {
		return nil, err
	}
	if n.index, err = index.Open(o.IndexDir, n.store, index.Options{Logger: n.log}); err != nil {
		return nil, err
	}
	if err := n.openTerritory(); err != nil {
		return nil, err
	}
	if err := n.openCrawler(); err != nil {
		return nil, err
	}
	n.forward = newForwarder(n)
	join := append(append([]string(nil), o.Join...), n.terr.addrs()...)
	n.joiner = len(join) > 0
	if n.dht, err = dht.New(ctx, dht.Options{Key: key, Listen: o.Listen, Charter: n.charter, Join: join, MDNS: o.MDNS, Dir: o.overlayDir(),
		Capacity: o.Capacity, Location: o.Location, Version: o.Version, Logger: n.log, Host: o.Host}); err != nil {
		return nil, err
	}
	n.dht.Handle(n.serve)
	return n, nil
}

// overlayDir is where the overlay keeps what it remembers; nowhere in tests
// that have no disk.
func (o Options) overlayDir() string {
	if o.FS != nil {
		return ""
	}
	return o.Dir
}

func (n *Node) openTerritory() error {
	n.terr = newTerritory(n.charter, n.id, n.o.OrphanAfter)
	b, err := n.store.Meta(metaTerritory)
	if isNotExist(err) || err == nil && len(b) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if err := n.terr.recall(b, n.started); err != nil {
		return err
	}
	n.heldBefore = slices.Contains(n.terr.held, true)
	return nil
}

func (n *Node) openCrawler() error {
	o := n.o
	var err error
	n.client, err = fetch.New(fetch.Options{Contact: o.Contact, Version: o.Version, AllowNet: o.AllowNet, Hosts: o.Hosts, FromAddr: o.FromAddr,
		AddrDelay: addrDelay(o.Delay)})
	if err != nil {
		return err
	}
	w, err := web.New(web.Options{Client: n.client})
	if err != nil {
		return err
	}
	n.sources = []crawler.Source{w}
	n.crawler, err = crawler.New(crawler.Options{Store: n.store, Sources: n.sources, Peer: n.id, Owns: n.terr.acts, Delay: o.Delay, Workers: o.Workers,
		MaxDepth: o.MaxDepth, Logger: n.log, Committed: func() { n.forward.notify() },
		Limits: crawler.Limits{MaxRate: o.MaxRate, MaxBandwidth: o.MaxBandwidth, MaxDisk: o.MaxDisk, Hours: o.Hours}})
	return err
}

// addrDelay is the least gap between two requests to one address, which may
// carry many sites: a second, or the delay that the operator dares to give a
// site if that is shorter.
func addrDelay(delay time.Duration) time.Duration {
	if delay >= time.Second {
		return 0 // fetch's own default
	}
	return delay
}

func (n *Node) handles(k partition.Key) bool {
	for _, s := range n.sources {
		if s.Handles(k) {
			return true
		}
	}
	return false
}

// indexLag is how many changes of the store are not searchable yet.
func (n *Node) indexLag() uint64 {
	last, done := n.store.LastSeq(), n.index.Seq()
	return max(last, done) - done
}

// ID is this peer's id, Addrs its addresses with /p2p/ID, Charter its swarm's.
func (n *Node) ID() string                 { return n.id }
func (n *Node) Addrs() []string            { return n.dht.Addrs() }
func (n *Node) Charter() partition.Charter { return n.charter }

// Run works until ctx ends, which is no error, or until something fails that
// the peer cannot go on without: its store, its overlay.
func (n *Node) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	part := func(name string, run func(context.Context) error) {
		g.Go(func() error {
			err := run(ctx)
			if err == nil || ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
				return nil
			}
			return fmt.Errorf("%s: %w", name, err)
		})
	}
	part("overlay", n.dht.Run)
	part("index", n.index.Run)
	part("crawler", n.crawler.Run)
	part("forward", n.forward.run)
	part("view", n.followView)
	part("hand-over", n.runHandover)
	part("limits", n.followLimits)
	return g.Wait()
}

// followView takes every View in order.
func (n *Node) followView(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case v, open := <-n.dht.Views():
			if !open {
				return errors.New("the overlay ended")
			}
			if n.terr.setView(v, time.Now()) {
				n.log.Info("members", "live", len(v.Members()))
				if err := n.territoryChanged(); err != nil {
					return err
				}
			} else {
				n.forward.reread() // who is back is tried at once
			}
		}
	}
}

// territoryChanged acts on a new effective view.
func (n *Node) territoryChanged() error {
	if err := n.persistTerritory(); err != nil {
		return err
	}
	n.crawler.SetSlices(n.terr.acting())
	n.forward.reread()
	select {
	case n.viewChanged <- struct{}{}:
	default:
	}
	return nil
}

// followLimits lowers this peer's share of the swarm while one of the
// volunteer's limits has stopped it for a while, and restores it afterwards.
func (n *Node) followLimits(ctx context.Context) error {
	const patience = 30 * time.Second // hysteresis: hand-overs cost more than a short stop
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var since time.Time
	lowered := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if stopped := stopsFetching(n.crawler.Stats().Limits); stopped == lowered {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) >= patience {
			lowered, since = stopped, time.Time{}
			step := 0
			if stopped {
				step = 16
			}
			n.log.Info("load step", "step", step)
			if err := n.dht.SetLoadStep(step); err != nil {
				return err
			}
		}
	}
}

// stopsFetching says whether one of the limits that hold stops fetching
// altogether, rather than pacing it.
func stopsFetching(limits []string) bool {
	return slices.ContainsFunc(limits, func(l string) bool {
		return strings.HasPrefix(l, "hours") || strings.HasPrefix(l, "disk") || strings.HasPrefix(l, "outbox")
	})
}

// Close releases everything and waits. It is safe to call twice, and after a
// failed Open.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		var errs []error
		if n.dht != nil {
			errs = append(errs, n.dht.Close())
		}
		if n.index != nil {
			errs = append(errs, n.index.Close())
		}
		if n.store != nil {
			errs = append(errs, n.store.Close())
		}
		n.closeErr = errors.Join(errs...)
	})
	return n.closeErr
}

func isNotExist(err error) bool { return errors.Is(err, store.ErrNotExist) }
