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

// Descriptor is what a peer declares about itself, as stored in Kademlia.
type Descriptor = wire.Descriptor

// Gone is what this peer remembers of a member that vanished or left.
type Gone = member.Gone

// Handler answers one request from the peer with the id from. It must not keep req. Its ctx ends
// after Options.ServeTimeout or with Close. For a call of this peer to itself it is the caller's
// ctx. If the Handler returns nil, the caller gets a refusal, CODE_UNSUPPORTED. A Handler runs in
// many goroutines at once.
type Handler func(ctx context.Context, from string, req *wire.Request) *wire.Response

// DHT is this peer in the swarm. All methods are safe for concurrent use.
type DHT struct {
	opts       Options
	log        *slog.Logger
	host       host.Host
	own        bool // New made the host, and Close closes it
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
	handshaker *handshake.Host // the same as host, in a private swarm; else nil
	life       *life.Life

	handshakeFailed guard.Tally

	closeOnce sync.Once
	closeErr  error

	mu   sync.Mutex
	meta partition.Member // what this peer declares about itself, without addresses
}

// New starts a host, Kademlia and the membership. The DHT knows no other peer until Run. The caller
// closes the DHT. If New fails, it stops what it started.
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

// open makes the parts. After an error, Close stops those that exist.
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
	// openLanes needs the guard for its pools, and zones below needs calls.
	d.calls.openLanes()
	var err error
	d.zones, err = zone.New(zone.Options{Host: d.host, Kademlia: d.kad, Key: d.opts.Key, Charter: d.opts.Charter,
		Prefix: d.prefix, Calls: d.calls, Self: d.describe, Follow: d.guard.Welcome, Life: d.life, Logger: d.log})
	if err != nil {
		return err
	}
	// From here on the guard can tell members from outsiders.
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

// openHost makes the host, or takes Options.Host, and sets a guard on it.
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
	// Everything below uses the guarded host.
	d.self = d.host.ID()
	d.host = d.guard.Wrap(d.host)
	return nil
}

// openKademlia starts Kademlia. It knows no peer yet.
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

// describe returns this peer's Member with its present addresses, but without its zone.
func (d *DHT) describe() partition.Member {
	d.mu.Lock()
	m := d.meta
	d.mu.Unlock()
	m.ID = d.self.String()
	m.Addrs = published(d.host.Addrs(), d.opts.AllowLoopback)
	return m
}

// ID returns this peer's id.
func (d *DHT) ID() string { return d.self.String() }

// Addrs returns the addresses on which this peer listens. Each ends in /p2p/ID, as another peer's
// Options.Join needs it.
func (d *DHT) Addrs() []string {
	var out []string
	for _, a := range d.host.Addrs() {
		out = append(out, a.String()+"/p2p/"+d.ID())
	}
	return out
}

// View returns the newest View: the live members of the zone, with this peer. During a split it
// also has the members of the zone before.
func (d *DHT) View() partition.View { return d.zones.View() }

// Views delivers each new View in order. A slow reader misses some Views, but never the newest.
// There is one channel, for one reader. Close closes it.
func (d *DHT) Views() <-chan partition.View { return d.zones.Views() }

// Gone returns, by id, the members that were in a View within the last day and are not now. Each
// entry has the time, the last descriptor, and whether the member left on purpose.
func (d *DHT) Gone() map[string]Gone { return d.zones.Gone() }

// Handle sets the Handler that answers calls of other peers. Call it before Run. Until then, calls
// are refused as busy.
func (d *DHT) Handle(h Handler) {
	d.calls.handle(h)
}

// SetLoadStep gossips a new load step. It clamps step to 0 to 16.
func (d *DHT) SetLoadStep(step int) error {
	return d.UpdateMeta(func(m *partition.Member) { m.LoadStep = max(0, min(step, wire.MaxLoadStep)) })
}

// UpdateMeta changes what this peer declares about itself, and gossips it. change runs under a
// lock, so it must not call the DHT. Changes of ID, Addrs and the zone fields have no effect.
func (d *DHT) UpdateMeta(change func(*partition.Member)) error {
	d.mu.Lock()
	change(&d.meta)
	d.mu.Unlock()
	return d.zones.Announce()
}

// Leave says goodbye to the zone. The others remove this peer from their Views at once, and their
// Gone says that it left. The caller must still call Close.
func (d *DHT) Leave(ctx context.Context) error { return d.zones.Leave(ctx) }

// Close stops without a goodbye. It waits for every goroutine, Run included. Later calls return the
// same error.
func (d *DHT) Close() error {
	d.closeOnce.Do(func() { d.closeErr = d.close() })
	return d.closeErr
}

// close stops the parts in an order in which no goroutine uses a part that is closed. It also closes
// a DHT of which New made only some parts.
func (d *DHT) close() error {
	// First nothing new may begin, and contexts end. Then the parts stop. The host, which all parts
	// use, closes last.
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

// Run joins the swarm and keeps trying while this peer is alone. It looks for members that
// vanished, and publishes this peer in Kademlia. It blocks until ctx ends or Close is called, and
// then returns nil.
func (d *DHT) Run(ctx context.Context) error {
	if !d.life.Begin() {
		return nil
	}
	defer d.life.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Run also ends with Close.
	defer context.AfterFunc(d.life.Context(), cancel)()
	changes, err := d.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		return fmt.Errorf("run dht: %w", err)
	}
	if err := d.kad.Bootstrap(ctx); err != nil {
		return fmt.Errorf("run dht: %w", errors.Join(err, changes.Close()))
	}
	if d.opts.MDNS {
		// The name has the swarm's prefix, so that only peers of the same swarm find each other.
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

// addressLoop gossips new addresses, for example when the peer changes networks.
func (d *DHT) addressLoop(ctx context.Context, changes <-chan any) {
	if err := d.zones.Announce(); err != nil { // the addresses of a host that listened late
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

// Call sends req to the peer and returns its answer, which may be a refusal. It uses one stream. It
// ends with ctx, or after Options.CallTimeout if ctx has no deadline. The error wraps ErrNoPeer if
// the peer could not be reached, so that it has not seen req. After any other error it may have
// seen req. A call to this peer itself goes to the Handler directly. If req has no version, Call
// sets it in its own copy.
func (d *DHT) Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error) {
	return d.calls.Call(ctx, peerID, req)
}

// Zone returns the hash zone of this peer.
func (d *DHT) Zone() partition.Zone { return d.zones.Zone() }

// SetHolds sets the function that reports whether this peer still holds slices outside a zone.
// While it does, this peer stays in the list of the zone that was split. Without such a function,
// it holds none.
func (d *DHT) SetHolds(holds func(partition.Zone) bool) { d.zones.SetHolds(holds) }

// KnownOwner returns the owner of s if the cache has it. It never waits.
func (d *DHT) KnownOwner(s partition.Slice) (zone.Owner, bool) { return d.zones.KnownOwner(s) }

// ForgetOwner removes id from the cache as the owner of s. Call it if that peer could not be
// reached, or says that it is not the owner. The next FindOwner asks again.
func (d *DHT) ForgetOwner(s partition.Slice, id string) { d.zones.ForgetOwner(s, id) }

// FindOwner returns the owner of s, a hash slice of any zone. It looks in its own View, in the
// cache, and asks known members of the slice's zone. If these do not help, it walks through
// Kademlia. Concurrent searches for one slice share one search. The error wraps zone.ErrNoOwner if
// members of the zone say that there is no owner, or if no member could be found.
func (d *DHT) FindOwner(ctx context.Context, s partition.Slice) (zone.Owner, error) {
	return d.zones.FindOwner(ctx, s)
}

// FindZone asks Kademlia for the members of a zone, as an outsider does. It returns, in no order,
// those whose descriptor it could fetch and verify. This is not the View: peers that died within
// the last two hours may be in it. If ctx ends early, it returns those found so far, with an error.
func (d *DHT) FindZone(ctx context.Context, z partition.Zone) ([]Descriptor, error) {
	return d.dir.find(ctx, z)
}

// Descriptor finds in Kademlia what a peer declares about itself. Of several valid descriptors, it
// returns the one with the highest sequence. The error wraps ErrNoPeer if there is none.
func (d *DHT) Descriptor(ctx context.Context, peerID string) (Descriptor, error) {
	return d.dir.descriptor(ctx, peerID)
}
