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

// What libp2p's resource manager allows. Limits that all peers share, of a
// protocol or of streams in negotiation, are limits that one peer can fill. So
// only those by peer are tight, and the number of outsiders is (see gater): all
// of them together stay below what the whole host may have.
const (
	// MaxConns is how many connections a host has; the manager of connections trims it down to fewer.
	MaxConns = 600
	// Many volunteers may share one address (a lab, a NAT); libp2p's own
	// default is 8.
	connsPerAddr = 64

	outsiderIn     = 16 // streams that one outsider opened, of whatever protocol
	outsiderOut    = 64
	outsiderMemory = 6 << 20 // of its connections' windows
	memberIn       = 256
	memberOut      = 256
	memberMemory   = 128 << 20
	hostStreams    = 1 << 15
	hostMemory     = 2 << 30 // bytes that windows may grow to, not what is in use
	// connsPerNet is how many connections a /24 of IPv4 has, or a /48 of IPv6.
	connsPerNet = 4 * connsPerAddr
)

// limiter gives members more than others.
type limiter struct {
	rcmgr.Limiter
	member   func(peer.ID) bool
	ofMember rcmgr.Limit
}

// GetPeerLimits is rcmgr.Limiter's.
func (l limiter) GetPeerLimits(p peer.ID) rcmgr.Limit {
	if l.member(p) {
		return l.ofMember
	}
	return l.Limiter.GetPeerLimits(p)
}

func memberLimit() rcmgr.BaseLimit {
	return rcmgr.BaseLimit{Streams: memberIn + memberOut, StreamsInbound: memberIn, StreamsOutbound: memberOut,
		Conns: connsPerAddr, ConnsInbound: connsPerAddr, ConnsOutbound: connsPerAddr, FD: connsPerAddr,
		Memory: memberMemory}
}

func newLimits(member func(peer.ID) bool) (network.ResourceManager, error) {
	scaling := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaling)
	scaled := scaling.AutoScale().ToPartialLimitConfig()
	// Above what the connection manager trims to, on small machines as well: or
	// the limiter refuses connections before the manager closes idle ones.
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

// How often an address may connect: a handshake costs more than anything else
// that a stranger can ask for. Loopback stands for many peers, in tests.
const (
	connRate       = 0.5 // connections a second of one IPv4 address, or /56 of IPv6
	connBurst      = 64  // at once: the peers behind one address may all come together
	connRateNet    = 2   // of a /24 or /48
	connBurstNet   = 256
	connRateLocal  = 32
	connBurstLocal = 512
)

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

// Welcome gives the members of a new View what members have: more streams, and
// connections that are not trimmed. It is called by one at a time.
func (g *Guard) Welcome(v partition.View) {
	now := make(map[string]struct{}, v.Len())
	for _, m := range v.Members() {
		p, err := peer.Decode(m.ID)
		if err != nil {
			continue
		}
		now[m.ID] = struct{}{}
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

const memberTag = "member"

// widen raises the limit of a member that was connected before it was one.
func (g *Guard) widen(p peer.ID) {
	if g.scopes == nil {
		return
	}
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

// carefulDial is how long a TCP handshake may take with an address that nobody
// vouches for: within it the kernel sends one packet, after it a second.
const carefulDial = 900 * time.Millisecond

// Dialer is tcp.DialerForAddr.
func (g *Guard) Dialer(a ma.Multiaddr) (tcp.ContextDialer, error) {
	if g != nil && g.gate != nil && g.gate.careful(a) {
		return &net.Dialer{Timeout: carefulDial}, nil
	}
	return &net.Dialer{}, nil
}

// noNames looks up no DNS names: anybody can put one into an address.
type noNames struct{}

// ResolveDNSAddr is network.MultiaddrDNSResolver's.
func (noNames) ResolveDNSAddr(context.Context, peer.ID, ma.Multiaddr, int, int) ([]ma.Multiaddr, error) {
	return nil, nil
}

// ResolveDNSComponent is network.MultiaddrDNSResolver's.
func (noNames) ResolveDNSComponent(context.Context, ma.Multiaddr, int) ([]ma.Multiaddr, error) {
	return nil, nil
}

// sensible are the addresses that a peer of this swarm may have.
func (g *gater) sensible(addrs []ma.Multiaddr) []ma.Multiaddr {
	g.mu.Lock()
	lan := g.dials.lan || g.noPublic
	g.mu.Unlock()
	return ma.FilterAddrs(addrs, func(a ma.Multiaddr) bool {
		at, _ := whereabouts(a)
		return at.IsValid() && (lan || !Private(a))
	})
}

// inReach says whether Kademlia's table may have p.
func (g *Guard) inReach(_ any, p peer.ID) bool {
	return g.base.Network().Connectedness(p) == network.Connected || g.gate.dialable(p, g.base.Peerstore().Addrs(p))
}

// worthAsking says whether a walk through Kademlia may go to a peer.
func (g *Guard) worthAsking(_ any, info peer.AddrInfo) bool {
	return g.base.Network().Connectedness(info.ID) == network.Connected || g.IsMember(info.ID) ||
		g.gate.dialable(info.ID, info.Addrs)
}
