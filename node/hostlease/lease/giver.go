package lease

import (
	"net/netip"
	"slices"
	"time"
)

// The names of the limits in Answer.Over and GiverStats.Over.
const (
	OverAddrs   = "addresses"           // MaxAddrs
	OverPeer    = "addresses-of-a-peer" // MaxPeerAddrs
	OverWaiting = "peers-waiting"       // MaxWaiting
)

const (
	leastPoll = 20 * time.Millisecond // no waiting peer is told to ask again sooner
	ahead     = time.Second           // a host lease is given at most this long before it begins
	fullWait  = 5 * time.Second       // the wait for a peer that a limit keeps out
	keepIdle  = time.Minute           // how long an unused address is remembered
)

// GiverOptions are the options of NewGiver. Zero fields take the default of the same name.
type GiverOptions struct{ MaxAddrs, MaxPeerAddrs, MaxWaiting int }

// Giver gives the host leases of the addresses whose Keys a peer owns. It is not safe for
// concurrent use.
type Giver struct {
	o     GiverOptions
	addrs map[netip.Addr]*address
	peers map[string]int // at how many addresses each peer has a host lease or a place
	swept time.Time
	stats GiverStats
}

// GiverStats are the statistics of a Giver. Counts are since NewGiver.
type GiverStats struct {
	Addrs, Waiting int              // addresses known now; places of waiting peers
	Given          int64            // host leases
	Over           map[string]int64 // requests that a limit refused, by the limit's name
}

// address is the state of one address and its host leases.
type address struct {
	floor     time.Time // no other giver has given a host lease that lasts longer
	base, gap time.Duration
	// used is the latest time when a request may have been made in a past host lease.
	used time.Time
	// The present host lease, or the last one if it was not given back.
	holder       string
	id           uint64
	lasts        bool
	begun, until time.Time
	usedBefore   time.Time // the value of used without this host lease
	queue        []place
	seen         time.Time
}

// place is a peer's place in the queue of an address.
type place struct {
	peer string
	told time.Time // when the peer was told to ask again
}

// NewGiver returns a Giver that has given nothing.
func NewGiver(o GiverOptions) *Giver {
	def := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	def(&o.MaxAddrs, MaxAddrs)
	def(&o.MaxPeerAddrs, MaxPeerAddrs)
	def(&o.MaxWaiting, MaxWaiting)
	return &Giver{o: o, addrs: map[netip.Addr]*address{}, peers: map[string]int{},
		stats: GiverStats{Over: map[string]int64{}}}
}

// Stats returns a snapshot.
func (g *Giver) Stats() GiverStats {
	s := g.stats
	s.Addrs, s.Over = len(g.addrs), map[string]int64{}
	for why, n := range g.stats.Over {
		s.Over[why] = n
	}
	for _, at := range g.addrs {
		s.Waiting += len(at.queue)
	}
	return s
}

// Ask responds to peer at now. base is the smallest gap of the giver itself. floor is the
// latest time when a request may be made at the address in a host lease of another Giver. When
// floor moves, Ask forgets what this Giver gave before.
func (g *Giver) Ask(peer string, ask Ask, base time.Duration, floor, now time.Time) Answer {
	at := g.address(ask, base, floor, now)
	if at == nil {
		return g.over(OverAddrs, ask, max(base, ask.Gap))
	}
	at.seen = now
	g.expire(ask.Addr, at, now)
	g.drop(at, peer, now)
	g.back(peer, at, ask, now)
	if !ask.Want {
		g.leave(peer, at)
		return Answer{Gap: at.gap}
	}
	t := timesOf(ask.Addr, at.base, at.gap)
	if at.lasts && at.holder == peer && at.id == ask.Turn { // the peer extends its lease
		at.pace(ask)
		shared := len(at.queue) > 0
		if !shared {
			at.until = later(at.until, now.Add(t.longest))
		}
		return Answer{Given: true, Wait: max(0, at.begun.Sub(now)), Term: at.until.Sub(now), Gap: at.gap,
			Shared: shared}
	}
	begin := later(now, at.used.Add(at.gap))
	if !at.lasts && begin.Sub(now) <= ahead && at.first(peer) {
		g.leave(peer, at)
		if g.full(peer, now) {
			return g.over(OverPeer, ask, at.gap)
		}
		g.peers[peer]++
		g.stats.Given++
		at.holder, at.id, at.lasts, at.begun, at.usedBefore = peer, ask.Turn, true, begin, at.used
		at.until = begin.Add(min(t.short, t.longest-begin.Sub(now)))
		return Answer{Given: true, Wait: begin.Sub(now), Term: at.until.Sub(now), Gap: at.gap,
			Shared: len(at.queue) > 0}
	}
	return g.enqueue(peer, at, ask, t, begin, now)
}

// address returns the address of ask, or nil when there are too many addresses.
func (g *Giver) address(ask Ask, base time.Duration, floor, now time.Time) *address {
	at := g.addrs[ask.Addr]
	switch {
	case at == nil:
		if len(g.addrs) >= g.o.MaxAddrs && (!g.sweep(now) || len(g.addrs) >= g.o.MaxAddrs) {
			return nil
		}
		at = &address{floor: floor, used: floor}
		g.addrs[ask.Addr] = at
	case !at.floor.Equal(floor):
		g.forget(at)
		*at = address{floor: floor, used: later(floor, at.used), base: at.base, gap: at.gap}
	}
	if want := min(max(base, ask.Gap), MaxGap); want > at.base {
		at.base = want
		at.gap = max(at.gap, want)
	}
	if at.holder == "" { // the askers' memory is the only knowledge of its gap
		at.gap = max(at.gap, min(ask.Pace, MaxGap))
	}
	return at
}

// pace takes over the gap that a visitor of the address reports.
func (at *address) pace(ask Ask) { at.gap = min(max(at.base, ask.Pace), MaxGap) }

// expire ends a host lease whose time is over.
func (g *Giver) expire(a netip.Addr, at *address, now time.Time) {
	if at.lasts && !now.Before(at.until) {
		at.used = later(at.used, at.until.Add(timesOf(a, at.base, at.gap).hold))
		g.end(at)
	}
}

func (g *Giver) end(at *address) {
	at.lasts = false
	g.less(at.holder)
}

// back takes back a host lease. What a peer reports about a lease that has run out counts until
// the next lease is given.
func (g *Giver) back(peer string, at *address, ask Ask, now time.Time) {
	if ask.Back == 0 || at.holder != peer || at.id != ask.Back {
		return
	}
	at.used = at.usedBefore
	if !ask.Unused {
		at.used = later(at.used, later(at.begun, now.Add(-max(0, ask.Quiet))))
	}
	at.pace(ask)
	if at.lasts {
		g.end(at)
	}
	at.id = 0
}

// first reports whether no other peer has a place before peer.
func (at *address) first(peer string) bool { return len(at.queue) == 0 || at.queue[0].peer == peer }

// drop removes the places of peers that did not ask again when they were told to.
func (g *Giver) drop(at *address, but string, now time.Time) {
	at.queue = slices.DeleteFunc(at.queue, func(p place) bool {
		gone := p.peer != but && !now.Before(p.told.Add(at.patience()))
		if gone {
			g.less(p.peer)
		}
		return gone
	})
}

// patience returns how long a place is kept for a peer that does not ask again when it was told
// to.
func (at *address) patience() time.Duration {
	return min(max(at.gap, 250*time.Millisecond), 2*time.Second)
}

// enqueue gives peer a place, or keeps its place, and tells it when to ask again. The first
// peers ask often, because a host lease may be given back at any time.
func (g *Giver) enqueue(peer string, at *address, ask Ask, t times, begin, now time.Time) Answer {
	i := slices.IndexFunc(at.queue, func(p place) bool { return p.peer == peer })
	if i < 0 {
		switch {
		case len(at.queue) >= g.o.MaxWaiting:
			return g.over(OverWaiting, ask, at.gap)
		case g.full(peer, now):
			return g.over(OverPeer, ask, at.gap)
		}
		g.peers[peer]++
		i = len(at.queue)
		at.queue = append(at.queue, place{peer: peer})
	}
	expect := begin.Sub(now) - ahead
	if at.lasts {
		expect = at.until.Sub(now)
	}
	expect += time.Duration(i) * (t.short + at.gap)
	wait := max(leastPoll, min(expect, time.Duration(i+1)*at.gap/2))
	at.queue[i].told = now.Add(wait)
	return Answer{Wait: wait, Gap: at.gap}
}

// leave removes peer's place.
func (g *Giver) leave(peer string, at *address) {
	if i := slices.IndexFunc(at.queue, func(p place) bool { return p.peer == peer }); i >= 0 {
		at.queue = slices.Delete(at.queue, i, i+1)
		g.less(peer)
	}
}

// full reports whether peer has as many host leases and places as it may have.
func (g *Giver) full(peer string, now time.Time) bool {
	return g.peers[peer] >= g.o.MaxPeerAddrs && (!g.sweep(now) || g.peers[peer] >= g.o.MaxPeerAddrs)
}

func (g *Giver) less(peer string) {
	if g.peers[peer]--; g.peers[peer] <= 0 {
		delete(g.peers, peer)
	}
}

// forget removes an address's host lease and places from the peers' counts.
func (g *Giver) forget(at *address) {
	if at.lasts {
		g.less(at.holder)
	}
	for _, p := range at.queue {
		g.less(p.peer)
	}
}

func (g *Giver) over(limit string, ask Ask, gap time.Duration) Answer {
	g.stats.Over[limit]++
	return Answer{Wait: fullWait, Gap: max(gap, ask.Gap), Over: limit}
}

// sweep ends leases and places that have run out, and forgets addresses that no peer wants. It
// works at most once a second, and reports whether it did.
func (g *Giver) sweep(now time.Time) bool {
	if now.Sub(g.swept) < time.Second {
		return false
	}
	g.swept = now
	for a, at := range g.addrs {
		g.expire(a, at, now)
		g.drop(at, "", now)
		if !at.lasts && len(at.queue) == 0 && now.After(at.used.Add(at.gap)) && now.Sub(at.seen) > keepIdle {
			delete(g.addrs, a)
		}
	}
	return true
}
