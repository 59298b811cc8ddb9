package dht

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	ds "github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/echo-node/echo-node/partition"
)

// What libp2p's resource manager allows. Limits that all peers share, of a
// protocol or of streams in negotiation, are limits that one peer can fill. So
// only those by peer are tight, and the number of outsiders is (see gater): all
// of them together stay below what the whole host may have.
const (
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
	conns, streams := rcmgr.LimitVal(2*connsHigh), rcmgr.LimitVal(hostStreams)
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

// regulars gives the members of a new View what members have: more streams, and
// connections that are not trimmed. It is called by one at a time.
func (d *DHT) regulars(v partition.View) {
	now := make(map[string]struct{}, v.Len())
	for _, m := range v.Members() {
		p, err := peer.Decode(m.ID)
		if err != nil {
			continue
		}
		now[m.ID] = struct{}{}
		if _, before := d.members[m.ID]; !before && p != d.self {
			d.host.ConnManager().Protect(p, memberTag)
			d.widen(p)
		}
	}
	for id := range d.members {
		if p, err := peer.Decode(id); err == nil {
			if _, still := now[id]; !still {
				d.host.ConnManager().Unprotect(p, memberTag)
			}
		}
	}
	d.members = now
	d.forgetInquiries(v)
	notify(d.meets)
}

const memberTag = "member"

// widen raises the limit of a member that was connected before it was one.
func (d *DHT) widen(p peer.ID) {
	if d.scopes == nil {
		return
	}
	err := d.scopes.ViewPeer(p, func(s network.PeerScope) error {
		if scope, ok := s.(rcmgr.ResourceScopeLimiter); ok {
			limit := memberLimit()
			scope.SetLimit(&limit)
		}
		return nil
	})
	if err != nil {
		d.log.Debug("limits of a member", "peer", p.String(), "err", err)
	}
}

// carefulDial is how long a TCP handshake may take with an address that nobody
// vouches for: within it the kernel sends one packet, after it a second.
const carefulDial = 900 * time.Millisecond

// dialer is tcp.DialerForAddr.
func (g *gater) dialer(a ma.Multiaddr) (tcp.ContextDialer, error) {
	if g != nil && g.careful(a) {
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

// resolveNames looks up the names in addresses that the user gave.
func resolveNames(ctx context.Context, infos []peer.AddrInfo) []peer.AddrInfo {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	for i := range infos {
		var addrs []ma.Multiaddr
		for _, a := range infos[i].Addrs {
			if !madns.Matches(a) {
				addrs = append(addrs, a)
			} else if found, err := madns.DefaultResolver.Resolve(ctx, a); err == nil {
				addrs = append(addrs, found...)
			}
		}
		infos[i].Addrs = addrs
	}
	return infos
}

// sensible are the addresses that a peer of this swarm may have.
func (g *gater) sensible(addrs []ma.Multiaddr) []ma.Multiaddr {
	g.mu.Lock()
	lan := g.dials.lan || g.noPublic
	g.mu.Unlock()
	return ma.FilterAddrs(addrs, func(a ma.Multiaddr) bool {
		at, _ := whereabouts(a)
		return at.IsValid() && (lan || !private(a))
	})
}

// inReach says whether Kademlia's table may have p.
func (d *DHT) inReach(_ any, p peer.ID) bool {
	return d.host.Network().Connectedness(p) == network.Connected || d.gate.dialable(p, d.host.Peerstore().Addrs(p))
}

// worthAsking says whether a walk through Kademlia may go to a peer.
func (d *DHT) worthAsking(_ any, info peer.AddrInfo) bool {
	return d.host.Network().Connectedness(info.ID) == network.Connected || d.isMember(info.ID) ||
		d.gate.dialable(info.ID, info.Addrs)
}

// lan says whether the swarm is one of a local network: see Options.LAN.
func (o *Options) lan() bool {
	if o.LAN || o.MDNS {
		return true
	}
	all := func(texts []string) bool {
		return len(texts) > 0 && !slices.ContainsFunc(texts, func(text string) bool {
			a, err := ma.NewMultiaddr(text)
			return err != nil || manet.IsIPUnspecified(a) || !private(a)
		})
	}
	var join []string
	for _, entry := range o.Join {
		b, err := os.ReadFile(entry)
		if err != nil || len(b) > maxJoinFile {
			join = append(join, entry)
			continue
		}
		join = append(join, strings.Fields(string(b))...)
	}
	return all(o.Listen) || all(join)
}

// MaxRecords is the most records of Kademlia that are kept for others.
const MaxRecords = 1 << 14

// records is a datastore in memory with so many entries at most. A new one takes
// the place of any: what counts is published again every republish.
type records struct {
	ds.Batching
	most    int
	refused *tally

	mu   sync.Mutex
	keys map[ds.Key]struct{}
}

func newRecords(most int, refused *tally) *records {
	return &records{Batching: dssync.MutexWrap(ds.NewMapDatastore()), most: most, refused: refused,
		keys: map[ds.Key]struct{}{}}
}

// Put is ds.Datastore's.
func (r *records) Put(ctx context.Context, key ds.Key, value []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.keys[key]; !there && len(r.keys) >= r.most {
		for other := range r.keys {
			if err := r.Batching.Delete(ctx, other); err != nil {
				return err
			}
			delete(r.keys, other)
			r.refused.add("record-displaced")
			break
		}
	}
	if err := r.Batching.Put(ctx, key, value); err != nil {
		return err
	}
	r.keys[key] = struct{}{}
	return nil
}

// Delete is ds.Datastore's.
func (r *records) Delete(ctx context.Context, key ds.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, key)
	return r.Batching.Delete(ctx, key)
}

// Batch is ds.Batching's.
func (r *records) Batch(context.Context) (ds.Batch, error) { return ds.NewBasicBatch(r), nil }
