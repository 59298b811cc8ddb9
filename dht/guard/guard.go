// Package guard decides to whom a peer connects and what strangers can hold of it.
//
// A peer that is not in the View is an outsider: what it can hold of streams and
// connections is little, and never what members need (Pool, gater). What a peer
// says of its addresses is a claim, and is dialled only as far as it was seen to
// hold (dials); members vouch for each other (vouch).
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

// Members are the live members by this peer's own View.
type Members interface {
	View() partition.View
}

// Options of a Guard.
type Options struct {
	// Connections has the Guard decide who is dialled and who may connect, of a
	// host that is made with HostOptions. Else the creator of the host decides.
	Connections bool
	LAN         bool          // private addresses are dialled as well
	Zones       bool          // the swarm has several zones: members of the others are outsiders
	Space       string        // the charter's digest
	Prefix      protocol.ID   // of the swarm's protocols
	Calls       []protocol.ID // protocols with pools of their own, see NewPool
	Questions   []protocol.ID // protocols outside Prefix that anybody may ask a little of
	Life        *life.Life
	Logger      *slog.Logger
}

// Counts are what was refused since New.
type Counts struct {
	NoPlace, NotDialled Tally
	StaleConns          atomic.Uint64 // connections closed because they did not answer a ping
}

// Guard guards one host. All methods are safe for concurrent use. Nobody is a
// member before Start. A nil Guard adds nothing to a host: see HostOptions and Dialer.
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
	meets     chan struct{}       // cap 1: the members changed
	members   map[string]struct{} // of the View before; used by Welcome only
}

// started is what a Guard has from Start on.
type started struct {
	host    host.Host
	members Members
}

// New makes a Guard; the next is HostOptions, then Wrap, then Start.
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

// HostOptions are for the host that is guarded.
func (g *Guard) HostOptions() []libp2p.Option {
	if g == nil || g.gate == nil {
		return nil
	}
	// Names are looked up for the user only, so not by libp2p.
	return []libp2p.Option{libp2p.ResourceManager(g.scopes), libp2p.ConnectionGater(g.gate),
		libp2p.MultiaddrResolver(noNames{})}
}

// Kademlia are options for the Kademlia of the host that is guarded.
func (g *Guard) Kademlia() []kad.Option {
	if g.gate == nil {
		return nil
	}
	return []kad.Option{kad.AddressFilter(g.gate.sensible), kad.RoutingTableFilter(g.inReach),
		kad.QueryFilter(g.worthAsking)}
}

// Wrap begins to guard h. Everything else uses the host that it returns.
func (g *Guard) Wrap(h host.Host) host.Host {
	g.base, g.self = h, h.ID()
	if g.gate != nil {
		g.gate.settled(g.interfaceAddrs())
	}
	g.notifiee = &network.NotifyBundle{ConnectedF: g.connected, DisconnectedF: g.disconnected}
	h.Network().Notify(g.notifiee)
	return newCareful(h, g)
}

// Start tells who is a member, and begins to answer members. h is the host as
// the protocols of the swarm see it.
func (g *Guard) Start(h host.Host, m Members) {
	g.started.Store(&started{h, m})
	h.SetStreamHandler(g.opts.Prefix+VouchSuffix, g.serveVouch)
}

// Close stops what Wrap and Start began; the host stays. Who is a member does not change.
func (g *Guard) Close() {
	if s := g.started.Load(); s != nil {
		s.host.RemoveStreamHandler(g.opts.Prefix + VouchSuffix)
	}
	if g.notifiee != nil {
		g.base.Network().StopNotify(g.notifiee)
	}
}

func (g *Guard) top() host.Host { return g.started.Load().host }

// view is the newest View; empty before Start.
func (g *Guard) view() partition.View {
	if s := g.started.Load(); s != nil {
		return s.members.View()
	}
	return partition.View{}
}

// IsMember says whether p is a live member by this peer's own View.
func (g *Guard) IsMember(p peer.ID) bool {
	if g.started.Load() == nil { // the host listens before there is a View
		return false
	}
	_, ok := g.view().Find(p.String())
	return ok
}

// Trust takes note of addresses that the user of this peer named.
func (g *Guard) Trust(infos []peer.AddrInfo) { g.gate.each(infos, trusted) }

// Vouch takes note of addresses that somebody vouches for: a few tries.
func (g *Guard) Vouch(infos []peer.AddrInfo) { g.gate.each(infos, vouched) }

// Reached takes note of addresses where this peer met that identity.
func (g *Guard) Reached(infos []peer.AddrInfo) { g.gate.each(infos, reached) }

// Known says whether p may be dialled again and again at one of addrs.
func (g *Guard) Known(p peer.ID, addrs []ma.Multiaddr) bool { return g.gate.known(p, addrs) }

// Met are those of addrs at which p was met, by this peer itself; all of them
// when the creator of the host decides who is dialled.
func (g *Guard) Met(p peer.ID, addrs []ma.Multiaddr) []ma.Multiaddr {
	if g.gate == nil {
		return addrs
	}
	return g.gate.holding(p, addrs)
}

// Connections says whether this Guard decides who is dialled.
func (g *Guard) Connections() bool { return g.gate != nil }
