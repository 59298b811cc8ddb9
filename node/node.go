package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
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
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/node/forward"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/hostlease"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/quota"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/node/status"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index"
	"github.com/echo-node/echo-node/store/trash"
)

// Node is one peer. Open returns one, Run works until its context ends, and Close waits for
// everything. All methods are safe for concurrent use.
type Node struct {
	o       Options
	log     *slog.Logger
	id      string
	charter partition.Charter
	started time.Time
	joiner  bool // it has addresses of peers; if alone, it has not met them yet

	store   *db.Store
	index   *index.Index
	swarm   *swarm
	search  *search.Engine
	dht     *dht.DHT
	crawler *crawler.Crawler
	client  *fetch.Client
	social  *social.Source
	sources []crawler.Source

	gazetteer func() (*geo.Gazetteer, error) // opened by the first call

	slices    []partition.Slice // all slices of the swarm
	placer    *geoplace.Placer  // nil in hash mode
	placement *placement.Placement
	registrar *forward.Registrar
	forward   *forward.Forwarder
	gate      *quota.Gate
	addresses *hostlease.Exchange
	board     *status.Board
	clock     status.Clock
	counts    status.Counts
	trash     *trash.Trash
	done      atomic.Bool // WaitIdle has found the swarm idle

	// Which peers keep which slice; see package replica.
	quorum     *quorum.Machine
	replicator *replicate.Replicator
	agreement  *replica.Agreement
	elections  *replica.Elections
	handover   *replica.Handover
	receiver   *replica.Receiver
	tidier     *replica.Tidier
	repairs    *replica.Repairs
	follows    *follows
	crawls     *crawls
	replicated replica.Counts
	damaged    chan error // reports that the store is damaged; see watchDamage
	disk       *diskGauge

	links     forward.Counts
	closing   atomic.Bool // Close was called
	closeOnce sync.Once
	closeErr  error
}

// Create makes a data directory with an identity, the charter and an empty store. It founds the
// swarm if o.Join is empty. Otherwise it fetches the charter from a peer of o.Join, and waits until
// one answers or ctx ends. It returns an error if the directory already has a store.
func Create(ctx context.Context, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := datadir.Close(o.Dir, o.Logger); err != nil { // a person may have made it
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
	s, err := db.Create(datadir.Store(o.Dir), store.Options{FS: o.FS, Logger: o.Logger, Charter: charter})
	if err != nil {
		return err
	}
	return s.Close()
}

// identity returns o.Key, or the key in the data directory. create makes one if there is none.
func (o Options) identity(create bool) (crypto.PrivKey, error) {
	if o.Key != nil {
		return o.Key, nil
	}
	return dht.LoadIdentity(datadir.Identity(o.Dir), create)
}

// makeCharter returns the charter of a new swarm, or the one that a peer of o.Join sends.
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

// Open opens the data directory o.Dir as a peer. Only the peer's listeners run until Run is called.
func Open(ctx context.Context, o Options) (_ *Node, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	n := &Node{o: o, log: o.Logger, gazetteer: sync.OnceValues(geo.Open), started: time.Now(),
		damaged: make(chan error, 1), disk: o.newDiskGauge()}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if o.FS == nil {
		if err := datadir.Close(o.Dir, o.Logger); err != nil {
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
	// Give all slices until openAgreement decides. Slices that were in the index when it was
	// closed, and that this peer does not own any more, may come back soon.
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
	n.openForward()
	n.disk.owed = n.diskOwed
	n.follows.crawler, n.follows.forward = n.crawler, n.forward
	n.agreement.Recrawl()
	if err := n.openOverlay(ctx, key); err != nil {
		return nil, err
	}
	n.openReplicas(replicas)
	n.board = status.New(status.Parts{ID: n.id, Version: o.Version, Started: n.started, Charter: n.charter,
		Slices: n.slices, Store: n.store, Index: n.index, Trash: n.trash, Crawler: n.crawler,
		Social: n.social, Quorum: n.quorum, Replicator: n.replicator, Handover: n.handover,
		Replicated: &n.replicated, Placement: n.placement,
		Placer: n.placer, Forward: n.forward, Links: &n.links, Gate: n.gate, Addresses: n.addresses, Overlay: n.dht,
		Search: n.search, Clock: &n.clock, Counts: &n.counts, DiskUse: n.disk.use, Membership: n.Membership,
		Backups: o.BackupDir != "", Logger: n.log})
	n.dht.SetHolds(n.holdsOutside)
	n.dht.Handle(n.serve)
	return n, nil
}

// openOverlay starts to listen for other peers.
func (n *Node) openOverlay(ctx context.Context, key crypto.PrivKey) error {
	o := n.o
	ways, err := o.ways()
	if err != nil {
		return err
	}
	join, known := o.join(), n.placement.Addrs()
	n.joiner = len(join)+len(known) > 0
	n.addresses.Connect(n.client, n.forward, n.joiner)
	if err := n.mayRun(append(append([]string(nil), join...), known...)); err != nil {
		return err
	}
	if n.dht, err = dht.New(ctx, dht.Options{Key: key, Listen: o.Listen, Charter: n.charter, Join: join, Known: known,
		MDNS: o.MDNS, LAN: o.LAN, Dir: o.overlayDir(),
		Capacity: o.Capacity, Location: o.Location, Version: o.Version, Logger: n.log, Host: o.Host, Around: o.Around,
		Ways:     ways,
		Priority: quota.Priority, Faulty: n.gate.Faulty}); err != nil {
		return err
	}
	n.swarm.dht = n.dht
	return nil
}

// overlayDir is the directory for the overlay's state. It is "" in tests without a disk.
func (o Options) overlayDir() string {
	if o.FS != nil {
		return ""
	}
	return o.Dir
}

// indexDir is the directory of the index; "" means in memory.
func (o Options) indexDir() string {
	if o.IndexDir == "memory" {
		return ""
	}
	return o.IndexDir
}

// openPlacement restores the members that the last run knew.
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

// openCrawler makes the client, the sources and the crawler.
func (n *Node) openCrawler() error {
	o := n.o
	var err error
	n.client, err = fetch.New(fetch.Options{Contact: o.Contact, Version: o.Version, AllowNet: o.AllowNet,
		AllowPorts: o.AllowPorts,
		Hosts:      o.Hosts, FromAddr: o.FromAddr, AddrDelay: addrDelay(o.Delay), Share: n.addresses.Share(),
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
	n.crawls = &crawls{agreement: n.agreement, replicator: n.replicator, placer: n.placer}
	n.crawler, err = crawler.New(crawler.Options{Store: n.store, Sources: n.sources, Peer: n.id,
		Swarm: n.crawls, Delay: o.Delay, Workers: o.Workers, JudgeMemory: o.JudgeMemory,
		MaxDepth: o.MaxDepth, Revisit: o.Revisit, Scope: o.Scope, Logger: n.log,
		Budgeted: social.Budgeted,
		Limits: crawler.Limits{MaxRate: o.MaxRate, MaxBandwidth: o.MaxBandwidth, MaxDisk: o.MaxDisk,
			DiskFull: n.disk.full, Hours: o.Hours}})
	return err
}

// openSocial makes the Source of accounts. The rate budget of their server paces its requests, and
// no gap applies between requests to one address. So peers with their own budgets need no host
// leases for requests. A connection does take the host lease of its address, because the name may
// belong to a stranger. The guard against private addresses is the same as for pages.
func (n *Node) openSocial() error {
	o := n.o
	client, err := fetch.New(fetch.Options{Contact: o.Contact, Version: o.Version, AllowNet: o.AllowNet,
		AllowPorts: o.AllowPorts,
		Hosts:      o.Hosts, FromAddr: o.FromAddr, AddrDelay: -1, Share: n.addresses.Share(), Transport: o.Transport})
	if err != nil {
		return err
	}
	s := o.Social
	s.Store, s.Client, s.Logger, s.Media = n.store, client, n.log, o.Media > 0
	n.social, err = social.New(s)
	return err
}

// addrDelay is the least gap between two requests to one address, which may serve many sites. It is
// a second, or the operator's delay for a site if that is shorter.
func addrDelay(delay time.Duration) time.Duration {
	if delay >= time.Second {
		return 0 // the default of package fetch
	}
	return delay
}

// openForward makes what admits links, what forwards them, and the searches, which know in words why
// a peer does not answer.
func (n *Node) openForward() {
	n.search = search.New(search.Options{ID: n.id, Charter: n.charter, Slices: n.slices, Store: n.store, Index: n.index,
		Quorum: n.quorum, Gazetteer: n.gazetteer, Timeout: n.o.QueryTimeout, OrphanAfter: n.o.OrphanAfter}, n.swarm)
	o := forward.Options{Self: n.id, MaxDepth: n.o.MaxDepth, Store: n.store, Quorum: n.quorum, Agreement: n.agreement,
		Replicator: n.replicator, Placer: n.placer, Crawler: n.crawler, Peers: n.swarm, Reasons: n.search,
		Admissible: n.admissible, Counts: &n.links, Logger: n.log}
	n.registrar = forward.NewRegistrar(o)
	n.forward = forward.New(o, n.registrar)
	n.crawls.forward = n.forward
}

// admissible returns why this peer cannot fetch a canonical Key, or nil. A Key is refused if no
// source handles it, or if its address is in a private network. The fetcher checks the address
// again after DNS, on every connection.
func (n *Node) admissible(k partition.Key) error {
	if !n.handles(k) {
		return fmt.Errorf("no source of this version fetches %s keys", k.Service())
	}
	if port, named := k.Port(); named && partition.BadPort(port) { // from an older version
		return fmt.Errorf("%w: %d belongs to another service than the web", fetch.ErrPort, port)
	}
	ip, err := netip.ParseAddr(k.Host())
	if err != nil {
		return nil // a host name
	}
	return n.client.Reachable(ip)
}

// handles reports whether a source can fetch k.
func (n *Node) handles(k partition.Key) bool {
	for _, s := range n.sources {
		if s.Handles(k) {
			return true
		}
	}
	return false
}

// ID returns this peer's id.
func (n *Node) ID() string { return n.id }

// Addrs returns this peer's addresses, with /p2p/ID.
func (n *Node) Addrs() []string { return n.dht.Addrs() }

// Charter returns the charter of the swarm.
func (n *Node) Charter() partition.Charter { return n.charter }

// Search returns the engine for queries and exports over the whole swarm.
func (n *Node) Search() *search.Engine { return n.search }

// Run works until ctx ends, which is no error, or until a part fails that the peer needs, such as
// its store or its overlay. When ctx ends, it first gives its slices to other peers, for at most
// Options.Leave, unless the swarm was found idle.
func (n *Node) Run(outer context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(outer))
	defer cancel()
	g, ctx := errgroup.WithContext(inner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-outer.Done():
		case <-ctx.Done(): // a part failed
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
	part("forward", n.forward.Run)
	part("zones", n.forward.RunLookups)
	part("view", n.followView)
	part("leases", n.elections.RunLeases)
	part("campaigns", n.elections.RunCampaigns)
	part("proposals", n.elections.RunProposals)
	part("replicator", n.runReplicator)
	part("hand-over", n.handover.Run)
	part("tidying", n.tidier.Run)
	part("repair", n.restarted("repair", n.repairs.Run))
	part("addresses", n.addresses.Run)
	part("limits", n.restarted("limits", n.followLimits))
	part("streams", n.restarted("streams", n.listen))
	part("watchdog", n.watch)
	part("progress", n.board.Run)
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

// followView applies every View, in order.
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
				n.forward.Reread() // peers that are back get their links at once
			}
			n.replicator.RetryAll()
			n.agreement.KickLeases()
		}
	}
}

// Close releases everything and waits. It may be called twice, and after a failed Open.
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
