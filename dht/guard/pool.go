package guard

import (
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// An outsider is a peer that is no live member by this peer's own View. Its
// identity costs nothing, so outsiders are limited by address and by network,
// too. What an outsider can hold is never what a member needs: each kind of
// stream has a pool with a share for outsiders and one for members.

// Limits bound how many places of one kind are held at once. 0 = none.
type Limits struct {
	All     int // of outsiders
	Net     int // of them, in one network: /24 of IPv4, /48 of IPv6
	Addr    int // of them, at one address: IPv4, or /64 of IPv6
	Peer    int // of them, of one identity
	Members int // of members
	Member  int // of them, of one identity
}

// poolKey names what is counted: all outsiders, a network, an identity, ...
type poolKey struct {
	kind byte // one of the constants below
	of   string
}

const (
	countOutsiders = 'o'
	countNet       = 'n'
	countAddr      = 'a'
	countPeer      = 'p'
	countMembers   = 'M'
	countMember    = 'm'
)

// Pool shares out places between members and outsiders. A member always gets
// one place, even when other members hold all of theirs.
type Pool struct {
	// of the metric: refusals count as name-all, name-net, name-addr, name-peer, name-members, name-member
	name    string
	limits  Limits
	member  func(peer.ID) bool
	refused *Tally
	insists func(peer.ID) // told of each refusal of an outsider that has, or whose address has, its share; nil = nobody

	mu    sync.Mutex
	held  map[*Place]struct{}
	count map[poolKey]int
}

// Place is held until Leave.
type Place struct {
	pool *Pool
	peer peer.ID
	keys []poolKey // nil = left
}

// NewPool makes a pool, which counts its refusals by name and limit in Count.NoPlace.
func (g *Guard) NewPool(name string, l Limits) *Pool {
	return &Pool{name: name, limits: l, member: g.IsMember, refused: &g.Count.NoPlace, insists: g.insists,
		held: map[*Place]struct{}{}, count: map[poolKey]int{}}
}

// Take gives a place to p, who is at addr; nil when there is none.
func (o *Pool) Take(p peer.ID, addr ma.Multiaddr) *Place {
	inside := o.member(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if inside {
		if n := o.count[poolKey{countMember, string(p)}]; n >= o.limits.Member {
			return o.refuse("member")
		} else if n > 0 && o.count[poolKey{kind: countMembers}] >= o.limits.Members {
			return o.refuse("members")
		}
		return o.hold(p, poolKey{kind: countMembers}, poolKey{countMember, string(p)})
	}
	one, around := whereabouts(addr)
	keys := []poolKey{{kind: countOutsiders}, {countNet, around.String()}, {countAddr, one.String()},
		{countPeer, string(p)}}
	full := o.full(keys)
	if full != "" {
		o.sweep()
		full = o.full(keys)
	}
	if full != "" {
		if o.insists != nil && (full == "peer" || full == "addr") {
			o.insists(p)
		}
		return o.refuse(full)
	}
	return o.hold(p, keys...)
}

// full says which limit of outsiders is reached; "" = none. o.mu is held.
func (o *Pool) full(keys []poolKey) string {
	limits := [...]int{o.limits.All, o.limits.Net, o.limits.Addr, o.limits.Peer}
	for i, name := range [...]string{"all", "net", "addr", "peer"} {
		if o.count[keys[i]] >= limits[i] {
			return name
		}
	}
	return ""
}

// sweep counts those as members who came as outsiders and are members by now:
// every member was an outsider once, and some streams are long. o.mu is held.
func (o *Pool) sweep() {
	for pl := range o.held {
		if pl.keys[0].kind == countOutsiders && o.member(pl.peer) {
			o.drop(pl)
			pl.keys = []poolKey{{kind: countMembers}, {countMember, string(pl.peer)}}
			o.add(pl)
		}
	}
}

func (o *Pool) refuse(why string) *Place {
	o.refused.Add(o.name + "-" + why)
	return nil
}

func (o *Pool) hold(p peer.ID, keys ...poolKey) *Place {
	pl := &Place{pool: o, peer: p, keys: keys}
	o.add(pl)
	return pl
}

func (o *Pool) add(pl *Place) {
	o.held[pl] = struct{}{}
	for _, k := range pl.keys {
		o.count[k]++
	}
}

func (o *Pool) drop(pl *Place) {
	delete(o.held, pl)
	for _, k := range pl.keys {
		if o.count[k]--; o.count[k] == 0 {
			delete(o.count, k)
		}
	}
	pl.keys = nil
}

// Leave gives the place back; more than once is the same as once.
func (pl *Place) Leave() {
	pl.pool.mu.Lock()
	defer pl.pool.mu.Unlock()
	if pl.keys != nil {
		pl.pool.drop(pl)
	}
}

// Taken are the places held by outsiders and by members.
func (o *Pool) Taken() (outsiders, members int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[poolKey{kind: countOutsiders}], o.count[poolKey{kind: countMembers}]
}

// Lengths of the prefixes by which addresses are counted.
const (
	netBits4  = 24
	netBits6  = 48
	addrBits6 = 64 // a customer has that many at least, so it counts as one address
)

// whereabouts are the address and the network that a multiaddr counts for; the
// zero prefixes when it names no IP address.
func whereabouts(a ma.Multiaddr) (one, around netip.Prefix) {
	if a == nil {
		return netip.Prefix{}, netip.Prefix{}
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Prefix{}, netip.Prefix{}
	}
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return netip.Prefix{}, netip.Prefix{}
	}
	addr = addr.Unmap()
	bitsAddr, bitsNet := addrBits6, netBits6
	if addr.Is4() {
		bitsAddr, bitsNet = addr.BitLen(), netBits4
	}
	one, err = addr.Prefix(bitsAddr)
	if err != nil { // an address with a zone
		return netip.Prefix{}, netip.Prefix{}
	}
	around, err = addr.Prefix(bitsNet)
	if err != nil {
		return netip.Prefix{}, netip.Prefix{}
	}
	return one, around
}

// Outsiders that go on asking for more than their share are cut off for a while.
const (
	insistMost   = 64               // refusals within insistWithin
	insistWithin = 10 * time.Second // that are too many
	shunFor      = time.Minute
	MaxInsisting = 1 << 12 // outsiders whose refusals are counted
)

// shunned are the outsiders that are cut off.
type shunned struct {
	mu sync.Mutex
	of map[peer.ID]*insistence
}

type insistence struct {
	since time.Time
	n     int
	until time.Time // zero = not shunned
}

// refused counts one refusal and says whether it is the one too many.
func (s *shunned) refused(p peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[peer.ID]*insistence{}
	}
	one := s.of[p]
	if one == nil {
		if len(s.of) >= MaxInsisting {
			s.forget(now)
		}
		one = &insistence{since: now}
		s.of[p] = one
	}
	if now.Sub(one.since) >= insistWithin {
		one.since, one.n = now, 0
	}
	if one.n++; one.n != insistMost {
		return false
	}
	one.until = now.Add(shunFor)
	return true
}

// forget makes room: of what is over first, else of any.
func (s *shunned) forget(now time.Time) {
	for p, one := range s.of {
		if now.Sub(one.since) >= insistWithin && now.After(one.until) {
			delete(s.of, p)
		}
	}
	for p := range s.of {
		if len(s.of) < MaxInsisting {
			return
		}
		delete(s.of, p)
	}
}

func (s *shunned) is(p peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[p]
	return one != nil && now.Before(one.until)
}

// insists counts a refusal, and cuts off who has too many.
func (g *Guard) insists(p peer.ID) {
	if g.gate == nil || !g.shunned.refused(p, time.Now()) || !g.opts.Life.Begin() {
		return
	}
	go func() {
		defer g.opts.Life.End()
		g.Count.NoPlace.Add("shunned")
		_ = g.base.Network().ClosePeer(p)
	}()
}

// placedStream gives its place back when it is closed or reset.
type placedStream struct {
	network.Stream
	place *Place
}

// Close is network.Stream's.
func (s *placedStream) Close() error {
	s.place.Leave()
	return s.Stream.Close()
}

// Reset is network.Stream's.
func (s *placedStream) Reset() error {
	s.place.Leave()
	return s.Stream.Reset()
}

// ResetWithError is network.Stream's.
func (s *placedStream) ResetWithError(code network.StreamErrorCode) error {
	s.place.Leave()
	return s.Stream.ResetWithError(code)
}
