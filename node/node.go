package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index"
	"github.com/echo-node/echo-node/store/trash"
)

// Node is one peer. Open makes one, Run works until its context ends, Close
// waits for everything. All methods are safe for concurrent use.
type Node struct {
	o       Options
	log     *slog.Logger
	id      string
	charter partition.Charter
	started time.Time
	joiner  bool // this peer was told of others, so being alone means not having met them yet

	store   *db.Store
	index   *index.Index
	swarm   *swarm
	search  *search.Engine
	dht     *dht.DHT
	crawler *crawler.Crawler
	client  *fetch.Client
	social  *social.Source
	sources []crawler.Source

	gazetteer func() (*geo.Gazetteer, error) // opened at the first call

	slices     []partition.Slice // all of the swarm's
	placer     *geoplace.Placer  // nil in hash mode
	placement  *placement.Placement
	forward    *forwarder
	lookups    chan partition.Slice // whose owner in another zone is wanted
	credit     *creditGate
	verdicts   verdictCounts
	glance     glance
	addresses  *addresses
	neighbours *neighbours
	ahead      *clockAhead
	trash      *trash.Trash
	progress   progress
	seeding    atomic.Int64 // seeds on their way: not idle
	done       atomic.Bool  // WaitIdle has found the swarm idle

	// Who keeps what; see package replica.
	quorum     *quorum.Machine
	replicator *replicate.Replicator
	agreement  *replica.Agreement
	elections  *replica.Elections
	handover   *replica.Handover
	receiver   *replica.Receiver
	tidier     *replica.Tidier
	repairs    *replica.Repairs
	follows    *follows
	replicated replica.Counts
	damaged    chan error // the store turned out to be; see watchDamage
	disk       *diskGauge

	count struct {
		linksOut, linksIn, refused, rowsAhead, restarts atomic.Int64
	}
	backups   backups
	closing   atomic.Bool // Close was called
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
	if err := closeDirectory(o.Dir, o.Logger); err != nil { // it may have been made by hand
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
	s, err := db.Create(filepath.Join(o.Dir, "store"), store.Options{FS: o.FS, Logger: o.Logger, Charter: charter})
	if err != nil {
		return err
	}
	return s.Close()
}

func (o Options) identity(create bool) (crypto.PrivKey, error) {
	if o.Key != nil {
		return o.Key, nil
	}
	return dht.LoadIdentity(filepath.Join(o.Dir, identityName), create)
}

func (o Options) makeCharter(ctx context.Context, key crypto.PrivKey) (partition.Charter, error) {
	ways, err := o.ways()
	if err != nil {
		return partition.Charter{}, err
	}
	join := o.join()
	if len(join) == 0 {
		if ways.Invite != nil {
			return partition.Charter{}, errors.New("the invite names no peer: give --join, too")
		}
		name := o.Swarm
		if name == "" {
			name = "echo"
		}
		c := partition.DefaultCharter(name, dht.PeerID(key))
		if o.Fanout > 0 {
			c.Fanout["mastodon"] = o.Fanout
		}
		c.SliceBits, c.Mode, c.Replicas, c.Private, c.ZoneMax = o.SliceBits, o.Partition, o.Replicas, o.Private,
			o.ZoneMax
		c.Overrides = o.Overrides
		if c, err = withGazetteer(c, o.CellLevel); err != nil {
			return c, err
		}
		return c, c.Validate()
	}
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		c, err := dht.FetchCharter(ctx, key, nil, join, ways)
		if err == nil {
			if o.Swarm != "" && o.Swarm != c.Name {
				return c, fmt.Errorf("--swarm %s: the peers of --join are the swarm %s", o.Swarm, c.Name)
			}
			return c, errors.Join(o.contradicts(c), c.CheckLocal())
		}
		if hopeless(ways, err) {
			return c, fmt.Errorf("join: %w", err)
		}
		o.Logger.Warn("no peer of --join gives the charter yet", "err", err)
		select {
		case <-ctx.Done():
			return c, fmt.Errorf("join: no peer of %v answered: %w", join, err)
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
	n := &Node{o: o, log: o.Logger, gazetteer: sync.OnceValues(geo.Open), started: time.Now(),
		lookups: make(chan partition.Slice, lookupQueue),
		credit:  newCreditGate(o.Credit),
		damaged: make(chan error, 1), disk: o.newDiskGauge()}
	n.addresses, n.neighbours, n.ahead = newAddresses(n), newNeighbours(n), newClockAhead(n)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if o.FS == nil {
		if err := closeDirectory(o.Dir, o.Logger); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	key, err := o.identity(false)
	if err != nil {
		return nil, err
	}
	n.id = dht.PeerID(key)
	n.log = o.Logger.With("peer", n.id[max(0, len(n.id)-6):])
	if err := n.openStore(ctx); err != nil {
		return nil, err
	}
	if err := n.openTrash(); err != nil {
		return nil, err
	}
	n.charter = n.store.Charter()
	if o.Swarm != "" && o.Swarm != n.charter.Name {
		return nil, fmt.Errorf("--swarm %s: %s belongs to the swarm %s; use another --data", o.Swarm, o.Dir,
			n.charter.Name)
	}
	if err := n.charter.CheckLocal(); err != nil {
		return nil, err
	}
	if n.slices, err = n.openPlacer(); err != nil {
		return nil, err
	}
	// All slices, until openAgreement says which: those that were in the index when it
	// was closed and are owned no more may come back soon.
	if n.index, err = index.Open(o.indexDir(), n.store,
		index.Options{Logger: n.log, Slices: n.slices, Fingerprint: search.IndexFingerprint,
			FingerprintVersion: search.FingerprintVersion}); err != nil {
		return nil, err
	}
	if err := n.openPlacement(); err != nil {
		return nil, err
	}
	replicas := n.replicaOptions()
	if err := n.openAgreement(replicas); err != nil {
		return nil, err
	}
	if err := n.openCrawler(); err != nil {
		return nil, err
	}
	n.forward, n.disk.owed = newForwarder(n), n.diskOwed
	n.follows.crawler, n.follows.forward = n.crawler, n.forward
	n.agreement.Recrawl()
	if err := n.openOverlay(ctx, key); err != nil {
		return nil, err
	}
	n.openReplicas(replicas)
	n.search = search.New(search.Options{ID: n.id, Charter: n.charter, Slices: n.slices, Store: n.store, Index: n.index,
		Quorum: n.quorum, Gazetteer: n.gazetteer, Timeout: o.QueryTimeout, OrphanAfter: o.OrphanAfter}, n.swarm)
	n.dht.SetHolds(n.holdsOutside)
	n.dht.Handle(n.admitRequest)
	return n, nil
}

// openOverlay begins to listen for other peers.
func (n *Node) openOverlay(ctx context.Context, key crypto.PrivKey) error {
	o := n.o
	ways, err := o.ways()
	if err != nil {
		return err
	}
	join, known := o.join(), n.placement.Addrs()
	n.joiner = len(join)+len(known) > 0
	if err := n.mayRun(append(append([]string(nil), join...), known...)); err != nil {
		return err
	}
	if n.dht, err = dht.New(ctx, dht.Options{Key: key, Listen: o.Listen, Charter: n.charter, Join: join, Known: known,
		MDNS: o.MDNS, LAN: o.LAN, Dir: o.overlayDir(),
		Capacity: o.Capacity, Location: o.Location, Version: o.Version, Logger: n.log, Host: o.Host, Around: o.Around,
		Ways:     ways,
		Priority: priority, Faulty: n.faulty}); err != nil {
		return err
	}
	n.swarm.dht = n.dht
	return nil
}

// overlayDir is where the overlay keeps what it remembers; nowhere in tests
// that have no disk.
func (o Options) overlayDir() string {
	if o.FS != nil {
		return ""
	}
	return o.Dir
}

// indexDir is where the index is kept; "" is in memory.
func (o Options) indexDir() string {
	if o.IndexDir == "memory" {
		return ""
	}
	return o.IndexDir
}

func (n *Node) openPlacement() error {
	n.placement = placement.New(n.slices, n.charter.Replicas, n.id, n.o.OrphanAfter, len(n.o.Join) > 0)
	b, err := n.store.Meta(replica.MetaPlacement)
	if isNotExist(err) || err == nil && len(b) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return n.placement.Recall(b, n.started)
}

func (n *Node) openCrawler() error {
	o := n.o
	var err error
	n.client, err = fetch.New(fetch.Options{Contact: o.Contact, Version: o.Version, AllowNet: o.AllowNet,
		AllowPorts: o.AllowPorts,
		Hosts:      o.Hosts, FromAddr: o.FromAddr, AddrDelay: addrDelay(o.Delay), Share: n.addresses.share(),
		Transport: o.Transport})
	if err != nil {
		return err
	}
	if o.Media > 0 && n.charter.Mode == partition.ModeGeo {
		return errors.New("node: media: a swarm in geo mode has no files of accounts yet")
	}
	w, err := web.New(web.Options{Client: n.client, Keep: o.KeepBodies, MaxFile: o.Media, Places: n.gazetteer})
	if err != nil {
		return err
	}
	if err := n.openSocial(); err != nil {
		return err
	}
	n.sources = []crawler.Source{w, n.social}
	if o.Source != nil {
		for i, s := range n.sources {
			n.sources[i] = o.Source(s)
		}
	}
	var place func(partition.Slice, *store.Record) *store.Placement
	if n.placer != nil {
		place = n.placer.Place
	}
	n.crawler, err = crawler.New(crawler.Options{Store: n.store, Sources: n.sources, Peer: n.id,
		Owns: n.agreement.Fetches, Delay: o.Delay, Workers: o.Workers, JudgeMemory: o.JudgeMemory,
		MaxDepth: o.MaxDepth, Revisit: o.Revisit, Scope: o.Scope, Logger: n.log,
		Committed: func() { n.forward.notify() }, Place: place, AtQuorum: n.replicator.Committed,
		Budgeted: social.Budgeted,
		Limits: crawler.Limits{MaxRate: o.MaxRate, MaxBandwidth: o.MaxBandwidth, MaxDisk: o.MaxDisk,
			DiskFull: n.disk.full, Hours: o.Hours}})
	return err
}

// openSocial makes the Source of accounts. Its requests have the budget of their
// server for a pace, and no gap between those to one address: peers with budgets of
// their own take no turns for them. A connection takes the turn of its address, as whose
// name it is may be a stranger's. The guard of private addresses is the same.
func (n *Node) openSocial() error {
	o := n.o
	client, err := fetch.New(fetch.Options{Contact: o.Contact, Version: o.Version, AllowNet: o.AllowNet,
		AllowPorts: o.AllowPorts,
		Hosts:      o.Hosts, FromAddr: o.FromAddr, AddrDelay: -1, Share: n.addresses.share(), Transport: o.Transport})
	if err != nil {
		return err
	}
	s := o.Social
	s.Store, s.Client, s.Logger, s.Media = n.store, client, n.log, o.Media > 0
	n.social, err = social.New(s)
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

// ID is this peer's id, Addrs its addresses with /p2p/ID, Charter its swarm's.
func (n *Node) ID() string                 { return n.id }
func (n *Node) Addrs() []string            { return n.dht.Addrs() }
func (n *Node) Charter() partition.Charter { return n.charter }

// Search answers queries and exports of the whole swarm.
func (n *Node) Search() *search.Engine { return n.search }

// Run works until ctx ends, which is no error, or until something fails that
// the peer cannot go on without: its store, its overlay. When ctx ends it gives
// its slices to others first, for at most Options.Leave, unless the swarm was
// found idle.
func (n *Node) Run(outer context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(outer))
	defer cancel()
	g, ctx := errgroup.WithContext(inner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-outer.Done():
		case <-ctx.Done(): // something failed
			return
		}
		if n.o.Leave > 0 && !n.done.Load() {
			leave, stop := context.WithTimeout(ctx, n.o.Leave)
			defer stop()
			if left := n.HandOver(leave); left > 0 {
				n.log.Warn("stopping with slices that could not be handed over", "slices", left)
			}
		}
		cancel()
	}()
	part := func(name string, run func(context.Context) error) {
		g.Go(func() error { return n.supervise(ctx, name, run) })
	}
	part("overlay", n.dht.Run)
	part("index", n.index.Run)
	part("crawler", n.crawler.Run)
	part("forward", n.forward.run)
	part("zones", n.runZones)
	part("view", n.followView)
	part("leases", n.elections.RunLeases)
	part("campaigns", n.elections.RunCampaigns)
	part("proposals", n.elections.RunProposals)
	part("ship", n.runReplicator)
	part("hand-over", n.handover.Run)
	part("tidying", n.tidier.Run)
	part("repair", n.restarted("repair", n.repairs.Run))
	part("addresses", n.addresses.run)
	part("limits", n.restarted("limits", n.followLimits))
	part("streams", n.restarted("streams", n.listen))
	part("watchdog", n.watch)
	part("progress", n.runProgress)
	part("damage", n.watchDamage)
	part("recall", n.restarted("recall", n.repairs.RunRecall))
	if n.o.Scrub > 0 {
		part("scrub", n.restarted("scrub", n.runScrub))
	}
	if n.o.BackupDir != "" {
		part("backups", n.restarted("backups", n.runBackups))
	}
	err := g.Wait()
	cancel()
	<-ended
	n.elections.Wait()
	return n.explain(err)
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
			n.placement.SetZone(n.dht.Zone())
			if n.placement.SetView(v, time.Now()) {
				n.log.Info("members", "live", len(v.Members()))
				if err := n.handover.ViewChanged(); err != nil {
					return err
				}
			} else {
				n.forward.reread() // who is back is tried at once
			}
			n.replicator.RetryAll()
			n.agreement.KickLeases()
		}
	}
}

// Close releases everything and waits. It is safe to call twice, and after a
// failed Open.
func (n *Node) Close() error {
	n.closing.Store(true)
	n.closeOnce.Do(func() {
		var errs []error
		if n.dht != nil {
			errs = append(errs, n.dht.Close())
		}
		if n.index != nil {
			errs = append(errs, n.index.Close())
		}
		if n.social != nil {
			errs = append(errs, n.social.Close())
		}
		if n.store != nil {
			errs = append(errs, n.store.Close())
		}
		n.closeErr = errors.Join(errs...)
	})
	return n.closeErr
}

func isNotExist(err error) bool { return errors.Is(err, store.ErrNotExist) }
