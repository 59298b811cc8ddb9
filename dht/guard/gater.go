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

// Limits of connections that outsiders open. rcmgr counts all connections by
// address, those in their handshake included: see newLimits.
const (
	outsiderConns     = 192
	outsiderConnsNet  = 128
	outsiderConnsAddr = 64
	outsiderConnsPeer = 4
)

// gater is libp2p's connmgr.ConnectionGater: it sees every dial and every
// connection that comes in, whatever part of libp2p it is for.
type gater struct {
	outsiders *Pool // connections they opened
	shunned   *shunned
	noDial    *Tally
	refused   *Tally

	mu       sync.Mutex
	dials    *dials
	conns    map[network.Conn]*Place
	awaited  map[peer.ID]chan struct{} // closed when that peer is connected
	noPublic bool                      // none of this host's interfaces has a public address
}

var _ connmgr.ConnectionGater = (*gater)(nil)

func newGater(g *Guard) *gater {
	limits := Limits{All: outsiderConns, Net: outsiderConnsNet, Addr: outsiderConnsAddr, Peer: outsiderConnsPeer,
		Members: 2 * MaxConns, Member: connsPerAddr}
	if g.opts.Zones {
		limits.All *= 2
	}
	return &gater{outsiders: g.NewPool("conn", limits), shunned: &g.shunned, noDial: &g.Count.NotDialled,
		refused: &g.Count.NoPlace, dials: newDials(g.opts.LAN, g.opts.Zones, g.IsMember, g.drawn),
		conns: map[network.Conn]*Place{}, awaited: map[peer.ID]chan struct{}{}}
}

// InterceptPeerDial is connmgr.ConnectionGater's; the addresses decide.
func (g *gater) InterceptPeerDial(peer.ID) bool { return true }

// InterceptAddrDial is connmgr.ConnectionGater's: see dials.
func (g *gater) InterceptAddrDial(p peer.ID, a ma.Multiaddr) bool {
	g.mu.Lock()
	reason := g.dials.may(p, a, time.Now())
	g.mu.Unlock()
	if reason != "" {
		g.noDial.Add(reason)
	}
	return reason == ""
}

// InterceptAccept is connmgr.ConnectionGater's. From a private address comes who
// is of the same network; a host with a public address is in none, unless the
// swarm is.
func (g *gater) InterceptAccept(c network.ConnMultiaddrs) bool {
	g.mu.Lock()
	ok := g.dials.lan || g.noPublic || !Private(c.RemoteMultiaddr())
	g.mu.Unlock()
	if !ok {
		g.refused.Add("conn-private")
	}
	return ok
}

// InterceptSecured is connmgr.ConnectionGater's, when the identity is proven.
func (g *gater) InterceptSecured(dir network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
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
	pl.Leave() // connected takes it for good
	return true
}

// InterceptUpgraded is connmgr.ConnectionGater's.
func (g *gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// settled looks again where this host is.
func (g *gater) settled(addrs []ma.Multiaddr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noPublic = !slices.ContainsFunc(addrs, manet.IsPublicAddr)
}

// connected notes where a peer was met; false when the connection has no place.
func (g *gater) connected(c network.Conn) bool {
	p, a, now := c.RemotePeer(), c.RemoteMultiaddr(), time.Now()
	var pl *Place
	if c.Stat().Direction == network.DirInbound {
		if pl = g.outsiders.Take(p, a); pl == nil {
			return false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if pl == nil {
		g.dials.reached(p, a, now)
	} else {
		g.dials.came(p, a, now)
		g.conns[c] = pl
	}
	if done := g.awaited[p]; done != nil {
		close(done)
		delete(g.awaited, p)
	}
	return true
}

func (g *gater) disconnected(c network.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pl := g.conns[c]; pl != nil {
		pl.Leave()
		delete(g.conns, c)
	}
}

// await gives a channel that is closed when p is connected, from now on.
func (g *gater) await(p peer.ID) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.awaited[p] == nil {
		g.awaited[p] = make(chan struct{})
	}
	return g.awaited[p]
}

// giveUp forgets that p was awaited.
func (g *gater) giveUp(p peer.ID, since <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.awaited[p] == since {
		delete(g.awaited, p)
	}
}

// dialable says whether p may be dialled now at one of addrs. It is asked before
// a dial; the dial is counted by InterceptAddrDial. Without a gater, whoever made the
// host decides.
func (g *gater) dialable(p peer.ID, addrs []ma.Multiaddr) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return g.dials.would(p, a, now) })
}

// known says whether p may be dialled again and again at one of addrs; anybody may
// without a gater.
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

// holding are those of addrs at which p was met, by this peer itself.
func (g *gater) holding(p peer.ID, addrs []ma.Multiaddr) []ma.Multiaddr {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	return ma.FilterAddrs(addrs, func(a ma.Multiaddr) bool { return g.dials.holds(p, a, now) })
}

// each has do say something of every address of the peers.
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

func trusted(d *dials, p peer.ID, a ma.Multiaddr, now time.Time) { d.trust(p, a, now) }
func vouched(d *dials, p peer.ID, a ma.Multiaddr, now time.Time) { d.vouch(p, a, now) }
func reached(d *dials, p peer.ID, a ma.Multiaddr, now time.Time) { d.reached(p, a, now) }

// careful says whether one packet to a has to do.
func (g *gater) careful(a ma.Multiaddr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dials.careful(a, time.Now())
}

// learn bans addresses where a dial met another identity than it should have.
func (g *gater) learn(err error) {
	var all *swarm.DialError
	if !errors.As(err, &all) {
		return
	}
	for i := range all.DialErrors {
		var other sec.ErrPeerIDMismatch
		if errors.As(all.DialErrors[i].Cause, &other) {
			g.mu.Lock()
			g.dials.ban(all.DialErrors[i].Address, time.Now())
			g.mu.Unlock()
			g.noDial.Add("met-other-identity")
		}
	}
}

// drawn says whether this peer may try, now, an address where nobody was met.
func (g *Guard) drawn(at netip.Prefix, now time.Time) bool {
	if g.started.Load() == nil {
		return false
	}
	return drawnOf(g.opts.Space, g.view().Members(), at, now) == g.self.String()
}

// drawnOf is the member that may try at, where nobody was met: one in the first
// minute of every four and another one in the third, so that no two tries of
// members whose clocks agree are less than a minute apart. Each of the two is the
// first in an order of its own. A member that comes, goes, or is seen by some only
// can take a place, but cannot move another one into it: whatever liars join and
// leave, at most one honest member is drawn in a minute.
func drawnOf(space string, members []partition.Member, at netip.Prefix, now time.Time) string {
	if len(members) == 1 {
		return members[0].ID
	}
	minute := now.Unix() / 60 % (2 * drawnMembers)
	if minute%2 != 0 {
		return ""
	}
	var drawn string
	var most uint64
	for _, m := range members {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s", space, at, minute, m.ID) // never fails
		sum := h.Sum64()
		sum = (sum ^ sum>>32) * 0x9e3779b97f4a7c15 // the last bytes hardly reach FNV's high bits
		if drawn == "" || sum > most {
			drawn, most = m.ID, sum
		}
	}
	return drawn
}
