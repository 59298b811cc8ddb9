package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/wire"
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
	list       *lists
	owners     *ownerFinder
	handshaker *handshaker // host, in a private swarm; else nil
	check      *validator
	sealed     atomic.Pointer[wire.SealedCharter]

	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	closeOnce sync.Once
	closeErr  error
	gates     gates
	places    places
	lanes     lanes

	priorityGates gates
	gate          *gater // nil with Options.Host: its creator decides who is dialled
	inquiries     inquiries
	shunned       shunned
	meets         chan struct{}           // cap 1: the members changed
	aside         chan struct{}           // cap joinContacts: joins under way with who turned up
	ready         atomic.Bool             // there is a View
	scopes        network.ResourceManager // nil with Options.Host
	members       map[string]struct{}     // of the View before; used by regulars only
	found         chan peer.AddrInfo      // by mDNS
	changed       chan struct{}           // cap 1: our descriptor changed
	notifiee      network.Notifiee
	counters      counters

	mu       sync.Mutex
	closed   bool
	running  sync.WaitGroup // Add under mu, and only while not closed
	handler  Handler
	recently map[peer.ID]time.Time     // turned up; see joinAside
	holds    func(partition.Zone) bool // nil = nothing is held outside any zone
	meta     partition.Member          // what we say of ourselves, without addresses
}

// New starts a host, Kademlia and the membership, which knows nobody yet: see
// Run. The caller closes the DHT.
func New(ctx context.Context, o Options) (*DHT, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("new dht: %w", err)
	}
	d := &DHT{opts: o, log: o.Logger, host: o.Host, own: o.Host == nil, space: o.Charter.Digest(),
		prefix: prefix(o.Charter),
		places: places{all: o.MaxServing, peer: o.MaxServingPeer, bulk: o.MaxServing - o.MaxServing/4},
		found:  make(chan peer.AddrInfo, 64), changed: make(chan struct{}, 1), recently: map[peer.ID]time.Time{},
		meets: make(chan struct{}, 1), aside: make(chan struct{}, joinContacts),
		gates: gates{limit: o.MaxCalls}, priorityGates: gates{limit: o.MaxCalls},
		meta: partition.Member{Capacity: o.Capacity, LoadStep: o.LoadStep, Location: o.Location, Version: o.Version}}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("new dht: %w", err)
	}
	d.openLanes()
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("new dht: %w", errors.Join(err, d.Close()))
	}
	return d, nil
}

// open makes the parts; on error Close takes down those that exist.
func (d *DHT) open() error {
	var err error
	if d.own {
		d.gate = newGater(d.opts.lan(), d.opts.Charter.ZoneMax > 0, d)
		if d.scopes, err = newLimits(d.isMember); err != nil {
			return err
		}
		if d.host, err = newHost(d.opts, d.opts.Listen, d.gate, d.scopes); err != nil {
			return err
		}
		d.gate.settled(d.interfaceAddrs())
	}
	d.self = d.host.ID()
	d.host = newCareful(d.host, d)
	d.notifiee = &network.NotifyBundle{ConnectedF: d.connected, DisconnectedF: d.disconnected}
	d.host.Network().Notify(d.notifiee)
	if err := d.loadCharter(); err != nil {
		return err
	}
	if d.opts.Charter.Private {
		if err := d.openHandshaker(); err != nil {
			return err
		}
	}
	d.check = &validator{space: d.space}
	options := []kad.Option{
		kad.Mode(kad.ModeServer), // ModeAuto stays a client on private networks
		kad.ProtocolPrefix(d.prefix),
		kad.Validator(record.NamespacedValidator{namespace: d.check}),
		kad.MaxRecordAge(maxLife),
	}
	records := d.opts.Datastore
	if records == nil {
		records = newRecords(MaxRecords, &d.counters.noPlace)
	}
	options = append(options, kad.Datastore(records))
	if d.gate != nil {
		options = append(options, kad.AddressFilter(d.gate.sensible), kad.RoutingTableFilter(d.inReach),
			kad.QueryFilter(d.worthAsking))
	}
	if d.kad, err = kad.New(d.ctx, d.host, options...); err != nil {
		return fmt.Errorf("kademlia: %w", err)
	}
	if d.list, err = newLists(d.describe(), d.openList, d.regulars); err != nil {
		return err
	}
	d.ready.Store(true)
	d.owners = newOwnerFinder()
	d.host.SetStreamHandler(charterProtocol, d.serveCharter)
	d.host.SetStreamHandler(d.prefix+rpcSuffix, d.serve)
	d.host.SetStreamHandler(d.prefix+prioritySuffix, d.serve)
	d.host.SetStreamHandler(d.prefix+vouchSuffix, d.serveVouch)
	return nil
}

// describe is this peer's Member with its present addresses.
func (d *DHT) describe() partition.Member {
	d.mu.Lock()
	m := d.meta
	d.mu.Unlock()
	m.ID = d.self.String()
	m.Addrs = published(d.host.Addrs(), d.opts.AllowLoopback)
	if d.list != nil {
		zone := d.Zone()
		m.ZoneDepth = zone.Depth()
		m.ZoneFree = m.ZoneDepth > 0 && d.free(zone)
	}
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
func (d *DHT) View() partition.View { return d.list.View() }

// Views delivers each new View in order; a slow reader misses some, never the
// newest. There is one channel, for one reader; Close closes it.
func (d *DHT) Views() <-chan partition.View { return d.list.Views() }

// Gone are the members that were in a View within the last day and are not
// now, by id: since when, what they last said, and whether they left on purpose.
func (d *DHT) Gone() map[string]Gone { return d.list.Gone() }

// Handle sets what answers the calls of other peers. Call it before Run; until
// then calls are refused as busy.
func (d *DHT) Handle(h Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handler = h
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
	return d.announce()
}

// announce gossips the present description and has it published again.
func (d *DHT) announce() error {
	if err := d.list.Update(d.describe()); err != nil {
		return err
	}
	notify(d.changed)
	return nil
}

// Leave says good-bye to the zone: the others drop this peer from their Views
// at once and Gone tells them that it left. Close must still be called.
func (d *DHT) Leave(ctx context.Context) error { return d.list.Leave(ctx) }

// begin counts a goroutine that Close will wait for; false when closed.
func (d *DHT) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.running.Add(1)
	return true
}

// Close stops without a good-bye and waits for every goroutine, Run included.
func (d *DHT) Close() error {
	d.closeOnce.Do(func() { d.closeErr = d.close() })
	return d.closeErr
}

func (d *DHT) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	var errs []error
	if d.list != nil {
		errs = append(errs, d.list.Close())
	}
	if d.notifiee != nil {
		d.host.RemoveStreamHandler(charterProtocol)
		d.host.RemoveStreamHandler(d.prefix + rpcSuffix)
		d.host.RemoveStreamHandler(d.prefix + prioritySuffix)
		d.host.RemoveStreamHandler(d.prefix + vouchSuffix)
		d.host.Network().StopNotify(d.notifiee)
	}
	d.running.Wait()
	if d.kad != nil {
		errs = append(errs, d.kad.Close())
	}
	if d.handshaker != nil {
		d.handshaker.close()
	}
	if d.own && d.host != nil {
		errs = append(errs, d.host.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close dht: %w", err)
	}
	return nil
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits for wait or the end of ctx, and says whether ctx goes on.
func sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
