package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/handshake"
	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/partition"
)

// Descriptor is what a peer says of itself, as found in Kademlia.
type Descriptor = wire.Descriptor

// Gone is what is remembered of a member that vanished or left.
type Gone = member.Gone

// Handler answers one request of the peer from. It must not keep req, and its
// ctx ends when the caller can wait no longer. A nil answer is sent as a
// refusal, CODE_UNSUPPORTED.
type Handler func(ctx context.Context, from string, req *wire.Request) *wire.Response

// DHT is this peer in the overlay. All methods are safe for concurrent use.
type DHT struct {
	opts       Options
	log        *slog.Logger
	host       host.Host
	own        bool // the host is ours to close
	self       peer.ID
	space      string // the charter's digest
	prefix     protocol.ID
	kad        *kad.IpfsDHT
	guard      *guard.Guard
	zones      *zone.Zones
	calls      *calls
	joiner     *joiner
	charters   *charterKeeper
	dir        *directory
	handshaker *handshake.Host // host, in a private swarm; else nil
	life       *life.Life

	handshakeFailed guard.Tally

	closeOnce sync.Once
	closeErr  error

	mu   sync.Mutex
	meta partition.Member // what we say of ourselves, without addresses
}

// New starts a host, Kademlia and the membership, which knows nobody yet: see
// Run. The caller closes the DHT.
func New(ctx context.Context, o Options) (*DHT, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("new dht: %w", err)
	}
	d := &DHT{opts: o, log: o.Logger, host: o.Host, own: o.Host == nil, space: o.Charter.Digest(),
		prefix: prefix(o.Charter), life: life.New(),
		meta: partition.Member{Capacity: o.Capacity, LoadStep: o.LoadStep, Location: o.Location, Version: o.Version}}
	err := ctx.Err()
	if err == nil {
		err = d.open()
	}
	if err != nil {
		return nil, fmt.Errorf("new dht: %w", errors.Join(err, d.Close()))
	}
	return d, nil
}

// open makes the parts; on error Close takes down those that exist.
func (d *DHT) open() error {
	if err := d.openHost(); err != nil {
		return err
	}
	d.charters = &charterKeeper{opts: d.opts, log: d.log, self: d.self, space: d.space, life: d.life,
		refused: &d.handshakeFailed}
	if err := d.charters.load(); err != nil {
		return err
	}
	if d.opts.Charter.Private {
		if err := d.openHandshaker(); err != nil {
			return err
		}
	}
	if err := d.openKademlia(); err != nil {
		return err
	}
	d.calls = &calls{opts: d.opts, log: d.log, host: d.host, self: d.self, prefix: d.prefix, kad: d.kad, guard: d.guard,
		life: d.life, gates: gates{limit: d.opts.MaxCalls}, priorityGates: gates{limit: d.opts.MaxCalls},
		places: places{all: d.opts.MaxServing, peer: d.opts.MaxServingPeer,
			bulk: d.opts.MaxServing - d.opts.MaxServing/4}}
	d.calls.openLanes()
	var err error
	d.zones, err = zone.New(zone.Options{Host: d.host, Kademlia: d.kad, Key: d.opts.Key, Charter: d.opts.Charter,
		Prefix: d.prefix, Calls: d.calls, Self: d.describe, Follow: d.guard.Welcome, Life: d.life, Logger: d.log})
	if err != nil {
		return err
	}
	d.guard.Start(d.host, d.zones)
	d.dir.zones, d.calls.zones = d.zones, d.zones
	d.joiner = &joiner{opts: d.opts, log: d.log, host: d.host, self: d.self, kad: d.kad, guard: d.guard,
		handshaker: d.handshaker, zones: d.zones, dir: d.dir, life: d.life, found: make(chan peer.AddrInfo, 64),
		aside: make(chan struct{}, joinContacts), recently: map[peer.ID]time.Time{}}
	d.charters.host, d.charters.handshaker, d.charters.zones = d.host, d.handshaker, d.zones
	d.host.SetStreamHandler(charterProtocol, d.charters.serve)
	d.calls.open()
	return nil
}

// openHost makes the host, unless there is one, and guards it.
func (d *DHT) openHost() error {
	var err error
	d.guard, err = guard.New(guard.Options{Connections: d.own, LAN: d.opts.lan(), Zones: d.opts.Charter.ZoneMax > 0,
		Space: d.space, Prefix: d.prefix, Calls: []protocol.ID{d.prefix + rpcSuffix, d.prefix + prioritySuffix},
		Questions: []protocol.ID{charterProtocol, handshake.Protocol}, Life: d.life, Logger: d.log})
	if err != nil {
		return err
	}
	if d.own {
		if d.host, err = newHost(d.opts, d.opts.Listen, d.guard); err != nil {
			return err
		}
	}
	d.self = d.host.ID()
	d.host = d.guard.Wrap(d.host)
	return nil
}

// openKademlia starts Kademlia, which knows nobody yet.
func (d *DHT) openKademlia() error {
	d.dir = &directory{log: d.log, key: d.opts.Key, self: d.self, space: d.space, check: &validator{space: d.space}}
	records := d.opts.Datastore
	if records == nil {
		records = newRecords(MaxRecords, &d.guard.Count.NoPlace)
	}
	options := append([]kad.Option{
		kad.Mode(kad.ModeServer), // ModeAuto stays a client on private networks
		kad.ProtocolPrefix(d.prefix),
		kad.Validator(record.NamespacedValidator{namespace: d.dir.check}),
		kad.MaxRecordAge(maxLife),
		kad.Datastore(records),
	}, d.guard.Kademlia()...)
	var err error
	if d.kad, err = kad.New(d.life.Context(), d.host, options...); err != nil {
		return fmt.Errorf("kademlia: %w", err)
	}
	d.dir.kad = d.kad
	return nil
}

// describe is this peer's Member with its present addresses, but for its zone.
func (d *DHT) describe() partition.Member {
	d.mu.Lock()
	m := d.meta
	d.mu.Unlock()
	m.ID = d.self.String()
	m.Addrs = published(d.host.Addrs(), d.opts.AllowLoopback)
	return m
}

// ID is this peer's id.
func (d *DHT) ID() string { return d.self.String() }

// Addrs are the addresses this peer listens on, each with /p2p/ID, fit for
// another's Options.Join.
func (d *DHT) Addrs() []string {
	var out []string
	for _, a := range d.host.Addrs() {
		out = append(out, a.String()+"/p2p/"+d.ID())
	}
	return out
}

// View is the newest View: the live members of the zone, this peer included,
// and while a split is under way those of the zone before.
func (d *DHT) View() partition.View { return d.zones.View() }

// Views delivers each new View in order; a slow reader misses some, never the
// newest. There is one channel, for one reader; Close closes it.
func (d *DHT) Views() <-chan partition.View { return d.zones.Views() }

// Gone are the members that were in a View within the last day and are not
// now, by id: since when, what they last said, and whether they left on purpose.
func (d *DHT) Gone() map[string]Gone { return d.zones.Gone() }

// Handle sets what answers the calls of other peers. Call it before Run; until
// then calls are refused as busy.
func (d *DHT) Handle(h Handler) {
	d.calls.handle(h)
}

// SetLoadStep gossips a new load step, clamped to 0 to 16.
func (d *DHT) SetLoadStep(step int) error {
	return d.UpdateMeta(func(m *partition.Member) { m.LoadStep = max(0, min(step, wire.MaxLoadStep)) })
}

// UpdateMeta changes what this peer says of itself and gossips it. ID and
// Addrs are not change's to set.
func (d *DHT) UpdateMeta(change func(*partition.Member)) error {
	d.mu.Lock()
	change(&d.meta)
	d.mu.Unlock()
	return d.zones.Announce()
}

// Leave says good-bye to the zone: the others drop this peer from their Views
// at once and Gone tells them that it left. Close must still be called.
func (d *DHT) Leave(ctx context.Context) error { return d.zones.Leave(ctx) }

// Close stops without a good-bye and waits for every goroutine, Run included.
func (d *DHT) Close() error {
	d.closeOnce.Do(func() { d.closeErr = d.close() })
	return d.closeErr
}

func (d *DHT) close() error {
	d.life.Finish()
	var errs []error
	if d.zones != nil {
		errs = append(errs, d.zones.Close())
		d.host.RemoveStreamHandler(charterProtocol)
		d.calls.close()
	}
	if d.guard != nil {
		d.guard.Close()
	}
	d.life.Wait()
	if d.kad != nil {
		errs = append(errs, d.kad.Close())
	}
	if d.handshaker != nil {
		d.handshaker.Stop()
	}
	if d.own && d.host != nil {
		errs = append(errs, d.host.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close dht: %w", err)
	}
	return nil
}

// Run joins the swarm, keeps trying while alone, looks for members that
// vanished, and publishes this peer in Kademlia. It blocks until ctx ends or
// Close is called, and then returns nil.
func (d *DHT) Run(ctx context.Context) error {
	if !d.life.Begin() {
		return nil
	}
	defer d.life.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life.Context(), cancel)()
	changes, err := d.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		return fmt.Errorf("run dht: %w", err)
	}
	if err := d.kad.Bootstrap(ctx); err != nil {
		return fmt.Errorf("run dht: %w", errors.Join(err, changes.Close()))
	}
	if d.opts.MDNS {
		service := mdns.NewMdnsService(d.host, "_echo-"+strings.TrimPrefix(string(d.prefix), "/echo/")+"._udp",
			finder{d.joiner.found})
		if err := service.Start(); err != nil {
			d.log.Warn("no discovery on the local network", "err", err)
		} else {
			defer func() { _ = service.Close() }()
		}
	}
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){d.joiner.run, d.dir.run, d.charters.run, d.joiner.bookLoop,
		func(ctx context.Context) { d.zones.Run(ctx, d.joiner) }, d.guard.Run,
		func(ctx context.Context) { d.addressLoop(ctx, changes.Out()) }} {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
	if err := changes.Close(); err != nil {
		return fmt.Errorf("run dht: %w", err)
	}
	return nil
}

// addressLoop gossips new addresses, as when the volunteer changes networks.
func (d *DHT) addressLoop(ctx context.Context, changes <-chan any) {
	if err := d.zones.Announce(); err != nil { // those of a host that listened late
		d.log.Warn("announce addresses", "err", err)
	}
	for {
		select {
		case <-changes:
			if err := d.zones.Announce(); err != nil {
				d.log.Warn("announce addresses", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Call sends req to the peer and returns its answer, which may be a refusal.
// It uses one stream, and ends with ctx, or after Options.CallTimeout when ctx
// has no deadline. The error wraps ErrNoPeer when the peer could not be reached
// and so has not seen req; after any other error it may have. A call to this
// peer itself goes to the Handler directly. An unset version is filled in.
func (d *DHT) Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error) {
	return d.calls.Call(ctx, peerID, req)
}

// Zone is the hash zone that this peer is in.
func (d *DHT) Zone() partition.Zone { return d.zones.Zone() }

// SetHolds says how to find out whether this peer still holds slices outside a
// zone; until it does not, it stays in the list of the zone that was split.
// Without, it holds none.
func (d *DHT) SetHolds(holds func(partition.Zone) bool) { d.zones.SetHolds(holds) }

// KnownOwner is the owner of s if the cache has it; it never waits.
func (d *DHT) KnownOwner(s partition.Slice) (zone.Owner, bool) { return d.zones.KnownOwner(s) }

// ForgetOwner drops id as the owner of s: it could not be reached, or says that
// it is not. The next FindOwner asks again.
func (d *DHT) ForgetOwner(s partition.Slice, id string) { d.zones.ForgetOwner(s, id) }

// FindOwner says who owns s, a hash slice of any zone: from the own View, from
// the cache, from members of its zone that are known, or after a walk through
// Kademlia. Searches for one slice are one search. The error wraps
// zone.ErrNoOwner when members of the zone say that there is none, or none could
// be found.
func (d *DHT) FindOwner(ctx context.Context, s partition.Slice) (zone.Owner, error) {
	return d.zones.FindOwner(ctx, s)
}

// FindZone asks Kademlia for the members of a zone, as a stranger would, and
// returns those whose descriptor could be fetched and is good, in no order. It is
// not the View: it may name peers that died within the last hours.
func (d *DHT) FindZone(ctx context.Context, z partition.Zone) ([]Descriptor, error) {
	return d.dir.find(ctx, z)
}

// Descriptor finds what a peer says of itself in Kademlia: the one with the
// highest sequence among those found.
func (d *DHT) Descriptor(ctx context.Context, peerID string) (Descriptor, error) {
	return d.dir.descriptor(ctx, peerID)
}
