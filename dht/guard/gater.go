package guard

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/echo-node/echo-node/partition"
)

// Limits of connections that outsiders open. libp2p's resource manager also limits all connections
// by address, with those that are still in their handshake; see newLimits.
const (
	outsiderConns     = 192 // all together; twice as many in a swarm of several zones
	outsiderConnsNet  = 128 // from one network
	outsiderConnsAddr = 64  // from one address
	outsiderConnsPeer = 4   // of one peer
)

// gater implements libp2p's connmgr.ConnectionGater. It sees every dial and every incoming
// connection, for whatever part of libp2p. Safe for concurrent use. A nil gater allows every dial.
type gater struct {
	outsiders *Pool // places for the connections that they opened
	shunned   *shunned
	noDial    *Tally
	refused   *Tally

	mu       sync.Mutex
	dials    *dials
	conns    map[network.Conn]*Place // place of each incoming connection
	awaited  map[peer.ID]*arrival
	noPublic bool // no interface of this host has a public address
}

var _ connmgr.ConnectionGater = (*gater)(nil)

// newGater makes the gater of g. Until Start, every peer is an outsider.
func newGater(g *Guard) *gater {
	limits := Limits{All: outsiderConns, Net: outsiderConnsNet, Addr: outsiderConnsAddr, Peer: outsiderConnsPeer,
		Members: 2 * MaxConns, Member: connsPerAddr}
	if g.opts.Zones {
		limits.All *= 2
	}
	return &gater{outsiders: g.NewPool("conn", limits), shunned: &g.shunned, noDial: &g.Count.NotDialled,
		refused: &g.Count.NoPlace, dials: newDials(g.opts.LAN, g.opts.Zones, g.IsMember, g.drawn),
		conns: map[network.Conn]*Place{}, awaited: map[peer.ID]*arrival{}}
}

// InterceptPeerDial implements connmgr.ConnectionGater. It allows every peer, because
// InterceptAddrDial decides by address.
func (g *gater) InterceptPeerDial(peer.ID) bool { return true }

// InterceptAddrDial implements connmgr.ConnectionGater. It decides with dials, and counts the dial.
func (g *gater) InterceptAddrDial(p peer.ID, a ma.Multiaddr) bool {
	g.mu.Lock()
	reason := g.dials.may(p, a, time.Now())
	g.mu.Unlock()
	if reason != "" {
		g.noDial.Add(reason)
	}
	return reason == ""
}

// InterceptAccept implements connmgr.ConnectionGater. It refuses connections from private addresses
// if this host has a public address and the swarm is not on a local network. An honest peer of
// another network cannot have such an address.
func (g *gater) InterceptAccept(c network.ConnMultiaddrs) bool {
	g.mu.Lock()
	ok := g.dials.lan || g.noPublic || !Private(c.RemoteMultiaddr())
	g.mu.Unlock()
	if !ok {
		g.refused.Add("conn-private")
	}
	return ok
}

// InterceptSecured implements connmgr.ConnectionGater. It refuses an incoming connection, now that
// its identity is proven, if the peer is shunned or there is no place for it.
func (g *gater) InterceptSecured(dir network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	// This peer dialled, so InterceptAddrDial has decided.
	if dir == network.DirOutbound {
		return true
	}
	if g.shunned.is(p, time.Now()) {
		g.refused.Add("conn-shunned")
		return false
	}
	pl := g.outsiders.Take(p, c.RemoteMultiaddr())
	if pl == nil {
		return false
	}
	pl.Leave() // connected takes it again and keeps it
	return true
}

// InterceptUpgraded implements connmgr.ConnectionGater. It allows every connection.
func (g *gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// settled notes whether this host has a public address among addrs.
func (g *gater) settled(addrs []ma.Multiaddr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noPublic = !slices.ContainsFunc(addrs, manet.IsPublicAddr)
}

// connected notes where a peer was met. It returns false if there is no place for the connection.
func (g *gater) connected(c network.Conn) bool {
	p, a, now := c.RemotePeer(), c.RemoteMultiaddr(), time.Now()
	var pl *Place
	// Only incoming connections need a place: this peer limits its own dials itself.
	if c.Stat().Direction == network.DirInbound {
		if pl = g.outsiders.Take(p, a); pl == nil {
			return false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// The remote address of an incoming connection has a port on which the peer does not listen.
	if pl == nil {
		g.dials.reached(p, a, now)
	} else {
		g.dials.came(p, a, now)
		g.conns[c] = pl
	}
	// approach waits for this peer.
	if w := g.awaited[p]; w != nil {
		close(w.came)
		delete(g.awaited, p)
	}
	return true
}

// disconnected gives the place of a connection back.
func (g *gater) disconnected(c network.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pl := g.conns[c]; pl != nil {
		pl.Leave()
		delete(g.conns, c)
	}
}

// arrival is a peer that somebody waits for.
type arrival struct {
	came chan struct{} // closed when the peer connects
	wait int           // how many wait
}

// await returns a channel that is closed when p connects the next time. The caller must call end when
// it does not wait any more. Several may wait for the same peer.
func (g *gater) await(p peer.ID) (came <-chan struct{}, end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.awaited[p]
	if w == nil {
		w = &arrival{came: make(chan struct{})}
		g.awaited[p] = w
	}
	w.wait++
	return w.came, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if w.wait--; w.wait == 0 && g.awaited[p] == w {
			delete(g.awaited, p)
		}
	}
}

// dialable reports whether p may be dialled now at one of addrs. It does not count as a dial:
// InterceptAddrDial counts that.
func (g *gater) dialable(p peer.ID, addrs []ma.Multiaddr) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return g.dials.would(p, a, now) })
}

// known reports whether p may be dialled repeatedly at one of addrs.
func (g *gater) known(p peer.ID, addrs []ma.Multiaddr) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool {
		return g.dials.holds(p, a, now) || g.dials.trusts(p, a, now)
	})
}

// holding returns those of addrs at which this peer itself met p.
func (g *gater) holding(p peer.ID, addrs []ma.Multiaddr) []ma.Multiaddr {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	return ma.FilterAddrs(addrs, func(a ma.Multiaddr) bool { return g.dials.holds(p, a, now) })
}

// each calls do for every address of the peers.
func (g *gater) each(infos []peer.AddrInfo, do func(*dials, peer.ID, ma.Multiaddr, time.Time)) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for _, info := range infos {
		for _, a := range info.Addrs {
			do(g.dials, info.ID, a, now)
		}
	}
}

// The kinds of notes that each can make.
func trusted(d *dials, p peer.ID, a ma.Multiaddr, now time.Time) { d.trust(p, a, now) }
func vouched(d *dials, p peer.ID, a ma.Multiaddr, now time.Time) { d.vouch(p, a, now) }
func reached(d *dials, p peer.ID, a ma.Multiaddr, now time.Time) { d.reached(p, a, now) }

// careful reports whether a dial of a may send only one packet.
func (g *gater) careful(a ma.Multiaddr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dials.careful(a, time.Now())
}

// learn bans each address at which a dial met another peer than expected.
func (g *gater) learn(err error) {
	var all *swarm.DialError
	if !errors.As(err, &all) {
		return
	}
	for i := range all.DialErrors {
		var other sec.ErrPeerIDMismatch
		// The security handshake proved another identity than the expected one.
		if errors.As(all.DialErrors[i].Cause, &other) {
			g.mu.Lock()
			g.dials.ban(all.DialErrors[i].Address, time.Now())
			g.mu.Unlock()
			g.noDial.Add("met-other-identity")
		}
	}
}

// drawn reports whether this peer may now try an address at which no peer was met.
func (g *Guard) drawn(at netip.Prefix, now time.Time) bool {
	if g.started.Load() == nil {
		return false
	}
	return drawnOf(g.opts.Space, g.view().Members(), at, now) == g.self.String()
}

// drawnOf returns the id of the member that may try at now, where no peer was met. "" = none may.
// One member is drawn in the first minute of every four, and one in the third minute. So two tries
// of members with equal clocks are at least a minute apart. Each of the two draws ranks the members
// by its own hash. A member that comes or goes, or that only some see, can take the first rank. It
// cannot bring another member to the first rank. So at most one honest member is drawn in a minute,
// whatever hostile members join and leave.
func drawnOf(space string, members []partition.Member, at netip.Prefix, now time.Time) string {
	// A peer that is alone must be able to try an address at any time.
	if len(members) == 1 {
		return members[0].ID
	}
	minute := now.Unix() / 60 % (2 * drawnMembers)
	// Between two draws there is a minute in which no member tries.
	if minute%2 != 0 {
		return ""
	}
	var drawn string
	var most uint64
	for _, m := range members {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s", space, at, minute, m.ID) // never fails
		sum := h.Sum64()
		sum = (sum ^ sum>>32) * 0x9e3779b97f4a7c15 // the last bytes hardly change the high bits of FNV
		if drawn == "" || sum > most {
			drawn, most = m.ID, sum
		}
	}
	return drawn
}
