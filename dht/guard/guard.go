// Package guard decides to which peers this one connects, and how much an outsider may use of it.
//
// A peer that is not in the View is an outsider. It gets few streams and connections, and never
// those that members need (Pool, gater). The addresses that a peer announces are claims. This peer
// dials them only as far as this peer or another member saw the claim hold (dials). Members vouch
// for each other's addresses (vouch).
package guard

import (
	"log/slog"
	"sync/atomic"

	"github.com/libp2p/go-libp2p"
	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/partition"
)

// Members returns the live members in this peer's own View. It must be safe for concurrent use.
type Members interface {
	View() partition.View
}

// Options configure a Guard.
type Options struct {
	// Connections lets the Guard decide who is dialled and who may connect. The host must be made
	// with HostOptions. If false, the creator of the host decides.
	Connections bool
	LAN         bool          // private addresses are dialled too
	Zones       bool          // the swarm has several zones, so members of other zones are outsiders
	Space       string        // the charter's digest
	Prefix      protocol.ID   // of the swarm's protocols
	Calls       []protocol.ID // protocols with their own pools, see NewPool
	Questions   []protocol.ID // protocols outside Prefix that outsiders may use a little
	Life        *life.Life
	Logger      *slog.Logger
}

// Counts has counters of what the Guard refused since New.
type Counts struct {
	NoPlace, NotDialled Tally
	StaleConns          atomic.Uint64 // connections closed because they did not answer a ping
}

// Guard guards one host. All methods are safe for concurrent use, except where they say otherwise.
// Before Start no peer is a member. HostOptions and Dialer of a nil Guard add nothing to a host.
type Guard struct {
	opts  Options
	Count Counts

	self      peer.ID
	base      host.Host               // as libp2p made it; set by Wrap
	started   atomic.Pointer[started] // nil before Start
	gate      *gater                  // nil without Options.Connections
	scopes    network.ResourceManager // nil without Options.Connections
	notifiee  network.Notifiee
	inquiries inquiries
	shunned   shunned
	meets     chan struct{}       // capacity 1: the members changed
	members   map[string]struct{} // those of the View before; used only by Welcome
}

// started has what a Guard gets in Start.
type started struct {
	host    host.Host
	members Members
}

// New makes a Guard. The caller then calls HostOptions, Wrap and Start, in this order.
func New(o Options) (*Guard, error) {
	g := &Guard{opts: o, meets: make(chan struct{}, 1)}
	if !o.Connections {
		return g, nil
	}
	g.gate = newGater(g)
	var err error
	g.scopes, err = newLimits(g.IsMember)
	return g, err
}

// HostOptions returns options for the host that is guarded.
func (g *Guard) HostOptions() []libp2p.Option {
	if g == nil || g.gate == nil {
		return nil
	}
	// libp2p looks up no names. Only names that the user gives are looked up, and not here.
	return []libp2p.Option{libp2p.ResourceManager(g.scopes), libp2p.ConnectionGater(g.gate),
		libp2p.MultiaddrResolver(noNames{})}
}

// Kademlia returns options for the Kademlia of the guarded host. They keep peers that may not be
// dialled out of its table and walks.
func (g *Guard) Kademlia() []kad.Option {
	if g.gate == nil {
		return nil
	}
	return []kad.Option{kad.AddressFilter(g.gate.sensible), kad.RoutingTableFilter(g.inReach),
		kad.QueryFilter(g.worthAsking)}
}

// Wrap starts to guard h, and returns the guarded host. Everything else must use that one.
func (g *Guard) Wrap(h host.Host) host.Host {
	g.base, g.self = h, h.ID()
	if g.gate != nil {
		g.gate.settled(g.interfaceAddrs())
	}
	g.notifiee = &network.NotifyBundle{ConnectedF: g.connected, DisconnectedF: g.disconnected}
	h.Network().Notify(g.notifiee)
	return newCareful(h, g)
}

// Start tells the Guard who is a member, and starts to answer the questions of members. h is the
// host as the protocols of the swarm see it.
func (g *Guard) Start(h host.Host, m Members) {
	g.started.Store(&started{h, m})
	h.SetStreamHandler(g.opts.Prefix+VouchSuffix, g.serveVouch)
}

// Close stops what Wrap and Start started. The host stays open, and the members stay members.
func (g *Guard) Close() {
	if s := g.started.Load(); s != nil {
		s.host.RemoveStreamHandler(g.opts.Prefix + VouchSuffix)
	}
	if g.notifiee != nil {
		g.base.Network().StopNotify(g.notifiee)
	}
}

// top returns the host as the protocols of the swarm see it. Call it only after Start.
func (g *Guard) top() host.Host { return g.started.Load().host }

// view returns the newest View. It is empty before Start.
func (g *Guard) view() partition.View {
	if s := g.started.Load(); s != nil {
		return s.members.View()
	}
	return partition.View{}
}

// IsMember reports whether p is a live member in this peer's own View.
func (g *Guard) IsMember(p peer.ID) bool {
	if g.started.Load() == nil { // the host listens before there is a View
		return false
	}
	_, ok := g.view().Find(p.String())
	return ok
}

// Trust notes addresses that the user of this peer named. They may be dialled for trustLife.
func (g *Guard) Trust(infos []peer.AddrInfo) { g.gate.each(infos, trusted) }

// Vouch notes addresses that another source vouches for. They get a few tries.
func (g *Guard) Vouch(infos []peer.AddrInfo) { g.gate.each(infos, vouched) }

// Reached notes addresses at which this peer met these peers.
func (g *Guard) Reached(infos []peer.AddrInfo) { g.gate.each(infos, reached) }

// Known reports whether p may be dialled repeatedly at one of addrs.
func (g *Guard) Known(p peer.ID, addrs []ma.Multiaddr) bool { return g.gate.known(p, addrs) }

// Met returns those of addrs at which this peer itself met p. If the creator of the host decides
// who is dialled, it returns all of them.
func (g *Guard) Met(p peer.ID, addrs []ma.Multiaddr) []ma.Multiaddr {
	if g.gate == nil {
		return addrs
	}
	return g.gate.holding(p, addrs)
}

// Connections reports whether this Guard decides who is dialled, see Options.Connections.
func (g *Guard) Connections() bool { return g.gate != nil }
