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

// An outsider is a peer that is no live member in this peer's own View. A new identity costs it
// nothing. So outsiders are also limited by address and by network. Outsiders never hold what
// members need: each kind of stream has a pool with separate places for outsiders and for members.

// Limits are the largest numbers of places of one kind that are held at once. 0 = no place.
type Limits struct {
	All     int // of outsiders
	Net     int // of these, in one network: /24 of IPv4, /48 of IPv6
	Addr    int // of these, at one address: IPv4, or /64 of IPv6
	Peer    int // of these, of one peer
	Members int // of members
	Member  int // of these, of one peer
}

// poolKey says what is counted, for example all outsiders, one network, or one peer.
type poolKey struct {
	kind byte // one of the constants below
	of   string
}

// The kinds of poolKey.
const (
	countOutsiders = 'o'
	countNet       = 'n'
	countAddr      = 'a'
	countPeer      = 'p'
	countMembers   = 'M'
	countMember    = 'm'
)

// Pool gives places to members and outsiders. A member always gets at least one place, even if
// other members hold all places of members. All methods are safe for concurrent use.
type Pool struct {
	// name of the metric; refusals count as name-all, name-net, name-addr, name-peer, name-members,
	// name-member
	name    string
	limits  Limits
	member  func(peer.ID) bool
	refused *Tally
	insists func(peer.ID) // called for each refused outsider whose peer or addr limit is reached; may be nil

	mu    sync.Mutex
	held  map[*Place]struct{}
	count map[poolKey]int
}

// Place is held until Leave. Leave is safe for concurrent use.
type Place struct {
	pool *Pool
	peer peer.ID
	keys []poolKey // nil = left
}

// NewPool makes a pool. It counts its refusals in Count.NoPlace, by name and limit.
func (g *Guard) NewPool(name string, l Limits) *Pool {
	return &Pool{name: name, limits: l, member: g.IsMember, refused: &g.Count.NoPlace, insists: g.insists,
		held: map[*Place]struct{}{}, count: map[poolKey]int{}}
}

// Take returns a place for p, which is at addr, or nil if there is none. The caller gives the place
// back with Leave.
func (o *Pool) Take(p peer.ID, addr ma.Multiaddr) *Place {
	// member may take other locks, so call it before mu.
	inside := o.member(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if inside {
		// The first place of a member is free of the limit Members. So no member is shut out by the
		// others.
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
	// Some of the outsiders may be members by now.
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

// full returns the name of the limit of outsiders that is reached, or "". The caller holds o.mu.
func (o *Pool) full(keys []poolKey) string {
	limits := [...]int{o.limits.All, o.limits.Net, o.limits.Addr, o.limits.Peer}
	for i, name := range [...]string{"all", "net", "addr", "peer"} {
		if o.count[keys[i]] >= limits[i] {
			return name
		}
	}
	return ""
}

// sweep moves the places of peers that became members to the places of members. Every member is an
// outsider at first, and some streams are long. The caller holds o.mu.
func (o *Pool) sweep() {
	for pl := range o.held {
		if pl.keys[0].kind == countOutsiders && o.member(pl.peer) {
			o.drop(pl)
			pl.keys = []poolKey{{kind: countMembers}, {countMember, string(pl.peer)}}
			o.add(pl)
		}
	}
}

// refuse counts a refusal and returns nil.
func (o *Pool) refuse(why string) *Place {
	o.refused.Add(o.name + "-" + why)
	return nil
}

// hold makes a place that counts for keys. The caller holds o.mu.
func (o *Pool) hold(p peer.ID, keys ...poolKey) *Place {
	pl := &Place{pool: o, peer: p, keys: keys}
	o.add(pl)
	return pl
}

// add counts a place for its keys. The caller holds o.mu.
func (o *Pool) add(pl *Place) {
	o.held[pl] = struct{}{}
	for _, k := range pl.keys {
		o.count[k]++
	}
}

// drop is the opposite of add. Counters that reach 0 are removed. The caller holds o.mu.
func (o *Pool) drop(pl *Place) {
	delete(o.held, pl)
	for _, k := range pl.keys {
		if o.count[k]--; o.count[k] == 0 {
			delete(o.count, k)
		}
	}
	pl.keys = nil
}

// Leave gives the place back. Further calls do nothing.
func (pl *Place) Leave() {
	pl.pool.mu.Lock()
	defer pl.pool.mu.Unlock()
	if pl.keys != nil {
		pl.pool.drop(pl)
	}
}

// Taken returns how many places outsiders and members hold.
func (o *Pool) Taken() (outsiders, members int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[poolKey{kind: countOutsiders}], o.count[poolKey{kind: countMembers}]
}

// Lengths in bits of the prefixes by which addresses are counted.
const (
	netBits4  = 24
	netBits6  = 48
	addrBits6 = 64 // a customer has at least a /64, so it counts as one address
)

// whereabouts returns the address and the network for which a multiaddr counts. It returns zero
// prefixes if the multiaddr has no IP address.
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
	if err != nil { // the address has an IPv6 zone
		return netip.Prefix{}, netip.Prefix{}
	}
	around, err = addr.Prefix(bitsNet)
	if err != nil {
		return netip.Prefix{}, netip.Prefix{}
	}
	return one, around
}

// An outsider that repeatedly asks for more than its share is shunned for a while.
const (
	insistMost   = 64               // this many refusals within insistWithin are too many
	insistWithin = 10 * time.Second // see above
	shunFor      = time.Minute      // no connection from the outsider is accepted for this time
	MaxInsisting = 1 << 12          // outsiders whose refusals are counted
)

// shunned has the refusals of outsiders, and who is shunned. Safe for concurrent use.
type shunned struct {
	mu sync.Mutex
	of map[peer.ID]*insistence
}

// insistence is the state of one outsider: refusals n since a time.
type insistence struct {
	since time.Time
	n     int
	until time.Time // zero = not shunned
}

// refused counts one refusal. It returns true if this is the one that makes p shunned.
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
	// A new interval begins. The shunning from an earlier one goes on until its end.
	if now.Sub(one.since) >= insistWithin {
		one.since, one.n = now, 0
	}
	if one.n++; one.n != insistMost {
		return false
	}
	// Only the refusal with exactly this number starts it, so that it is counted once in an
	// interval.
	one.until = now.Add(shunFor)
	return true
}

// forget makes room for a new entry. It removes expired entries first, then arbitrary ones. The
// caller holds s.mu.
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

// is reports whether p is shunned at the time now.
func (s *shunned) is(p peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[p]
	return one != nil && now.Before(one.until)
}

// insists counts a refusal of p, and closes its connections if it has too many.
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

// Close implements network.Stream.
func (s *placedStream) Close() error {
	s.place.Leave()
	return s.Stream.Close()
}

// Reset implements network.Stream.
func (s *placedStream) Reset() error {
	s.place.Leave()
	return s.Stream.Reset()
}

// ResetWithError implements network.Stream.
func (s *placedStream) ResetWithError(code network.StreamErrorCode) error {
	s.place.Leave()
	return s.Stream.ResetWithError(code)
}
