package guard

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/partition"
)

// What libp2p's resource manager allows. One peer could fill a limit that all peers share, for
// example one of a protocol or of streams in negotiation. So only the limits per peer are tight,
// and the number of outsiders is limited (see gater). All outsiders together stay below the limits
// of the whole host.
const (
	// MaxConns is the number of connections above which the host's connection manager closes some.
	MaxConns = 600
	// Connections from one address. Many peers may share an address, for example in a laboratory or
	// behind a NAT. libp2p's own default is 8.
	connsPerAddr = 64

	outsiderIn     = 16      // streams that one outsider opened, of all protocols
	outsiderOut    = 64      // streams that this peer opened to one outsider
	outsiderMemory = 6 << 20 // bytes of the windows of its connections
	memberIn       = 256     // the same for one member
	memberOut      = 256
	memberMemory   = 128 << 20
	hostStreams    = 1 << 15
	hostMemory     = 2 << 30 // bytes to which windows may grow, which is more than the bytes in use
	// connsPerNet is the number of connections from a /24 of IPv4. A /48 of IPv6 has
	// 2*connsPerAddr.
	connsPerNet = 4 * connsPerAddr
)

// limiter gives members higher limits than outsiders.
type limiter struct {
	rcmgr.Limiter
	member   func(peer.ID) bool
	ofMember rcmgr.Limit
}

// GetPeerLimits implements rcmgr.Limiter.
func (l limiter) GetPeerLimits(p peer.ID) rcmgr.Limit {
	if l.member(p) {
		return l.ofMember
	}
	return l.Limiter.GetPeerLimits(p)
}

// memberLimit returns the limits of one member.
func memberLimit() rcmgr.BaseLimit {
	return rcmgr.BaseLimit{Streams: memberIn + memberOut, StreamsInbound: memberIn, StreamsOutbound: memberOut,
		Conns: connsPerAddr, ConnsInbound: connsPerAddr, ConnsOutbound: connsPerAddr, FD: connsPerAddr,
		Memory: memberMemory}
}

// newLimits makes the resource manager of the host. member must be safe for concurrent use.
func newLimits(member func(peer.ID) bool) (network.ResourceManager, error) {
	// The defaults for this machine are used only for file descriptors, and for single connections
	// and streams.
	scaling := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaling)
	scaled := scaling.AutoScale().ToPartialLimitConfig()
	// These limits are above MaxConns, also on small machines. Otherwise the limiter refuses
	// connections before the connection manager closes idle ones.
	conns, streams := rcmgr.LimitVal(2*MaxConns), rcmgr.LimitVal(hostStreams)
	all := rcmgr.ResourceLimits{Conns: conns, ConnsInbound: conns, ConnsOutbound: conns, FD: scaled.System.FD,
		Streams: streams, StreamsInbound: streams, StreamsOutbound: streams, Memory: hostMemory}
	config := rcmgr.PartialLimitConfig{System: all, Transient: all, Conn: scaled.Conn, Stream: scaled.Stream,
		PeerDefault: rcmgr.ResourceLimits{Streams: outsiderIn + outsiderOut, StreamsInbound: outsiderIn,
			StreamsOutbound: outsiderOut,
			Conns:           2 * outsiderConnsPeer, ConnsInbound: 2 * outsiderConnsPeer,
			ConnsOutbound: 2 * outsiderConnsPeer,
			FD:            2 * outsiderConnsPeer,
			Memory:        outsiderMemory}}
	// Everything that is not limited above has no limit, because peers would share it.
	fixed := rcmgr.NewFixedLimiter(config.Build(rcmgr.InfiniteLimits))
	limit := memberLimit()
	return rcmgr.NewResourceManager(limiter{fixed, member, &limit}, rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(pace()),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: connsPerAddr},
				{PrefixLength: netBits4, ConnCount: connsPerNet}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: connsPerAddr},
				{PrefixLength: netBits6, ConnCount: 2 * connsPerAddr}}))
}

// How often an address may connect. A handshake costs more than anything else that an outsider can
// request. In tests, many peers have loopback addresses.
const (
	connRate       = 0.5 // connections per second from one IPv4 address, or /56 of IPv6
	connBurst      = 64  // at once, because all peers behind one address may come together
	connRateNet    = 2   // from a /24 of IPv4, or /48 of IPv6
	connBurstNet   = 256
	connRateLocal  = 32
	connBurstLocal = 512
)

// pace returns the limiter for new connections.
func pace() *rate.Limiter {
	one, around := rate.Limit{RPS: connRate, Burst: connBurst}, rate.Limit{RPS: connRateNet, Burst: connBurstNet}
	local := rate.Limit{RPS: connRateLocal, Burst: connBurstLocal}
	return &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: netip.MustParsePrefix("127.0.0.0/8"), Limit: local},
			{Prefix: netip.MustParsePrefix("::1/128"), Limit: local}},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: netBits4, Limit: around},
				{PrefixLength: 32, Limit: one}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: netBits6, Limit: around},
				{PrefixLength: 56, Limit: one}},
			GracePeriod: time.Minute,
		},
	}
}

// Welcome gives the members of a new View what members get: more streams, and connections that the
// host does not close when it has too many. Calls must not overlap.
func (g *Guard) Welcome(v partition.View) {
	now := make(map[string]struct{}, v.Len())
	for _, m := range v.Members() {
		p, err := peer.Decode(m.ID)
		if err != nil {
			continue
		}
		now[m.ID] = struct{}{}
		// A protected connection is not closed when the host has too many.
		if _, before := g.members[m.ID]; !before && p != g.self {
			g.base.ConnManager().Protect(p, memberTag)
			g.widen(p)
		}
	}
	for id := range g.members {
		if p, err := peer.Decode(id); err == nil {
			if _, still := now[id]; !still {
				g.base.ConnManager().Unprotect(p, memberTag)
			}
		}
	}
	g.members = now
	g.forgetInquiries(v)
	life.Notify(g.meets)
}

// memberTag marks the connections of members in the connection manager.
const memberTag = "member"

// widen raises the limits of a member that connected before it was a member.
func (g *Guard) widen(p peer.ID) {
	if g.scopes == nil {
		return
	}
	// The scope of a connected peer keeps the limits that it got at first, so change them here.
	err := g.scopes.ViewPeer(p, func(s network.PeerScope) error {
		if scope, ok := s.(rcmgr.ResourceScopeLimiter); ok {
			limit := memberLimit()
			scope.SetLimit(&limit)
		}
		return nil
	})
	if err != nil {
		g.opts.Logger.Debug("limits of a member", "peer", p.String(), "err", err)
	}
}

// carefulDial is how long a TCP handshake may take with an address for which nobody vouches. The
// kernel sends one packet within this time, and the second one after it.
const carefulDial = 900 * time.Millisecond

// Dialer implements tcp.DialerForAddr.
func (g *Guard) Dialer(a ma.Multiaddr) (tcp.ContextDialer, error) {
	if g != nil && g.gate != nil && g.gate.careful(a) {
		return &net.Dialer{Timeout: carefulDial}, nil
	}
	return &net.Dialer{}, nil
}

// noNames looks up no DNS names, because anybody can put one into an address.
type noNames struct{}

// ResolveDNSAddr implements network.MultiaddrDNSResolver.
func (noNames) ResolveDNSAddr(context.Context, peer.ID, ma.Multiaddr, int, int) ([]ma.Multiaddr, error) {
	return nil, nil
}

// ResolveDNSComponent implements network.MultiaddrDNSResolver.
func (noNames) ResolveDNSComponent(context.Context, ma.Multiaddr, int) ([]ma.Multiaddr, error) {
	return nil, nil
}

// sensible returns those of addrs that a peer of this swarm may have: IP addresses, and private
// ones only if this host can reach them.
func (g *gater) sensible(addrs []ma.Multiaddr) []ma.Multiaddr {
	g.mu.Lock()
	lan := g.dials.lan || g.noPublic
	g.mu.Unlock()
	return ma.FilterAddrs(addrs, func(a ma.Multiaddr) bool {
		at, _ := whereabouts(a)
		return at.IsValid() && (lan || !Private(a))
	})
}

// inReach reports whether Kademlia's routing table may have p.
func (g *Guard) inReach(_ any, p peer.ID) bool {
	return g.base.Network().Connectedness(p) == network.Connected || g.gate.dialable(p, g.base.Peerstore().Addrs(p))
}

// worthAsking reports whether a walk through Kademlia may contact a peer.
func (g *Guard) worthAsking(_ any, info peer.AddrInfo) bool {
	return g.base.Network().Connectedness(info.ID) == network.Connected || g.IsMember(info.ID) ||
		g.gate.dialable(info.ID, info.Addrs)
}
