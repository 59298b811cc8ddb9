package zone

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/routing"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// How a stranger finds the owner of a slice. The place of a peer among the
// zones is its place in Kademlia, so a walk to the place of the slice meets
// members of the slice's zone after O(log n) hops, how deep ever that zone was
// split. They are asked, and an answer counts when the answerer and the owner it
// names belong to the zone by their ids, and the owner's own descriptor, signed
// and saying that it is in that zone, comes along. Members can still name the
// wrong one of them; so two have to agree, and who is asked for what it does not
// own says so (I5).
const (
	ownerLife    = 5 * time.Minute  // of an owner in the cache
	disputedLife = 10 * time.Second // of one on whom the members do not agree
	noOwnerLife  = 5 * time.Second  // of the knowledge that there is none
	findTimeout  = 25 * time.Second // of one search
	askTimeout   = 5 * time.Second  // of one question in it

	witnesses = 2 // members that have to name the same owner, if there are two
	maxAsked  = 6 // members asked in one search
	walkFinds = 4 // members of the zone that end a walk
	walkBits  = 12
	zoneSkew  = 2 // halvings by which a believable zone may be wider than our own

	// MaxOwners is the most slices whose owner is remembered, MaxZones the most
	// zones, MaxZoneContacts the most members of each.
	MaxOwners       = 1 << 16
	MaxZones        = 1 << 12
	MaxZoneContacts = 8
)

// errElsewhere is of who honestly is no help: busy, or of another zone.
var errElsewhere = errors.New("not to be asked")

// ErrNoOwner says that nobody owns a slice, as far as could be found out.
var ErrNoOwner = errors.New("no owner of the slice was found")

// Owner is who owns a slice of another zone, as members of that zone say.
type Owner struct {
	Slice    partition.Slice
	Zone     partition.Zone
	Replicas []string // the owner first; all of that zone by their ids
	Found    time.Time
	life     time.Duration
}

// ID is the owner's.
func (o Owner) ID() string { return o.Replicas[0] }

// Stats count how owners in other zones were found.
type Stats struct {
	Asked     uint64 // searches for an owner, those that the cache answered included
	Cached    uint64 // of them, answered by the cache
	Walks     uint64 // through Kademlia
	Queries   uint64 // messages of those walks
	Hops      uint64 // lengths of their ways to the first peer that close, in sum
	Calls     uint64 // questions to members
	Forged    uint64 // answers without a good descriptor of the owner
	Foreign   uint64 // answers that name who is not of the zone, or are about another
	Disputed  uint64 // searches in which members named different owners
	NotFound  uint64
	Forgotten uint64 // owners that turned out to be none
}

type zoneCounters struct {
	asked, cached, walks, queries, hops, calls, forged, foreign, disputed, notFound, forgotten atomic.Uint64
}

func (c *zoneCounters) stats() Stats {
	return Stats{Asked: c.asked.Load(), Cached: c.cached.Load(), Walks: c.walks.Load(), Queries: c.queries.Load(),
		Hops:  c.hops.Load(),
		Calls: c.calls.Load(), Forged: c.forged.Load(), Foreign: c.foreign.Load(), Disputed: c.disputed.Load(),
		NotFound: c.notFound.Load(), Forgotten: c.forgotten.Load()}
}

// ownerFinder is what is known of other zones. Everything in it expires or is
// dropped when it proves wrong; a crash loses nothing of worth.
type ownerFinder struct {
	count zoneCounters

	mu       sync.Mutex
	owners   map[partition.Slice]Owner // one without replicas: there is none
	contacts map[partition.Zone][]peer.ID
	flights  map[partition.Slice]*flight
}

// flight is a search under way; done is closed at its end.
type flight struct {
	done  chan struct{}
	owner Owner
	err   error
}

func newOwnerFinder() *ownerFinder {
	return &ownerFinder{owners: map[partition.Slice]Owner{}, contacts: map[partition.Zone][]peer.ID{},
		flights: map[partition.Slice]*flight{}}
}

// Meet remembers members of a zone, which are asked who owns a slice of it.
func (z *Zones) Meet(zone partition.Zone, ps ...peer.ID) { z.owners.meet(zone, ps...) }

// KnownOwner is the owner of s if the cache has it; it never waits.
func (z *Zones) KnownOwner(s partition.Slice) (Owner, bool) {
	o, ok := z.owners.known(s)
	return o, ok && len(o.Replicas) > 0
}

func (f *ownerFinder) known(s partition.Slice) (Owner, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.owners[s]
	if ok && time.Since(o.Found) >= o.life {
		delete(f.owners, s)
		return Owner{}, false
	}
	return o, ok
}

// ForgetOwner drops id as the owner of s: it could not be reached, or says that
// it is not. The next FindOwner asks again.
func (z *Zones) ForgetOwner(s partition.Slice, id string) {
	f := z.owners
	f.mu.Lock()
	defer f.mu.Unlock()
	if o, ok := f.owners[s]; ok && len(o.Replicas) > 0 && o.ID() == id {
		delete(f.owners, s)
		f.count.forgotten.Add(1)
	}
}

// FindOwner says who owns s, a hash slice of any zone: from the own View, from
// the cache, from members of its zone that are known, or after a walk through
// Kademlia. Searches for one slice are one search. The error wraps ErrNoOwner
// when members of the zone say that there is none, or none could be found.
func (z *Zones) FindOwner(ctx context.Context, s partition.Slice) (Owner, error) {
	if !s.IsHash() {
		return Owner{}, fmt.Errorf("find the owner of %s: %w: not a hash slice", s, ErrNoOwner)
	}
	f := z.owners
	f.count.asked.Add(1)
	if o, ok := f.known(s); ok {
		f.count.cached.Add(1)
		if len(o.Replicas) == 0 {
			return Owner{}, fmt.Errorf("find the owner of %s: %w", s, ErrNoOwner)
		}
		return o, nil
	}
	f.mu.Lock()
	one, flying := f.flights[s]
	if !flying {
		if !z.opts.Life.Begin() {
			f.mu.Unlock()
			return Owner{}, fmt.Errorf("find owner: %w", life.ErrClosed)
		}
		one = &flight{done: make(chan struct{})}
		f.flights[s] = one
		go z.fly(one, s)
	}
	f.mu.Unlock()
	select {
	case <-one.done:
		return one.owner, one.err
	case <-ctx.Done():
		return Owner{}, fmt.Errorf("find the owner of %s: %w", s, ctx.Err())
	}
}

// fly does one search, whoever still waits for it.
func (z *Zones) fly(one *flight, s partition.Slice) {
	defer z.opts.Life.End()
	ctx, cancel := context.WithTimeout(z.opts.Life.Context(), findTimeout)
	defer cancel()
	one.owner, one.err = z.search(ctx, s)
	f := z.owners
	if one.err != nil {
		f.count.notFound.Add(1)
		one.err = fmt.Errorf("find the owner of %s: %w", s, one.err)
	}
	f.mu.Lock()
	delete(f.flights, s)
	switch {
	case one.err == nil:
		f.keep(one.owner)
	case errors.Is(one.err, ErrNoOwner) && z.opts.Life.Context().Err() == nil:
		f.keep(Owner{Slice: s, Found: time.Now(), life: noOwnerLife})
	}
	f.mu.Unlock()
	close(one.done)
}

// keep remembers an owner, instead of any when there is no room. f.mu is held.
func (f *ownerFinder) keep(o Owner) {
	if _, there := f.owners[o.Slice]; !there && len(f.owners) >= MaxOwners {
		for s := range f.owners {
			delete(f.owners, s)
			break
		}
	}
	f.owners[o.Slice] = o
}

func (z *Zones) search(ctx context.Context, s partition.Slice) (Owner, error) {
	v := &votes{z: z, slice: s, asked: map[peer.ID]bool{}, named: map[string]*vote{}}
	if z.Zone().Has(s) {
		if err := v.ask(ctx, z.self); err != nil {
			return Owner{}, err
		}
		return v.owner()
	}
	for _, p := range z.owners.contactsFor(s) {
		if v.enough() {
			break
		}
		if err := v.ask(ctx, p); err != nil {
			z.owners.drop(s, p)
		}
	}
	if !v.enough() && len(v.asked) < maxAsked {
		w, err := z.walk(ctx, s, z.Zone().Depth())
		if err != nil && len(v.named) == 0 {
			return Owner{}, fmt.Errorf("%w: %w", ErrNoOwner, err)
		}
		for _, p := range w.found {
			if v.enough() || len(v.asked) >= maxAsked {
				break
			}
			if err := v.ask(ctx, p); err != nil {
				z.opts.Logger.Debug("who owns", "slice", s.String(), "peer", p.String(), "err", err)
			}
		}
	}
	return v.owner()
}

// contactsFor are members known of the deepest zone that has s.
func (f *ownerFinder) contactsFor(s partition.Slice) []peer.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	for depth := s.Bits(); depth >= 0; depth-- {
		if ps := f.contacts[partition.ZoneOfSlice(s, depth)]; len(ps) > 0 {
			ps = slices.Clone(ps) // in another order each time: no two members are everybody's witnesses
			rand.Shuffle(len(ps), func(i, j int) { ps[i], ps[j] = ps[j], ps[i] })
			return ps
		}
	}
	return nil
}

// drop forgets p as a member of the zone of s.
func (f *ownerFinder) drop(s partition.Slice, p peer.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for depth := range s.Bits() + 1 {
		z := partition.ZoneOfSlice(s, depth)
		if ps, ok := f.contacts[z]; ok {
			if ps = slices.DeleteFunc(ps, func(q peer.ID) bool { return q == p }); len(ps) == 0 {
				delete(f.contacts, z)
			} else {
				f.contacts[z] = ps
			}
		}
	}
}

// meet remembers a member of a zone; the newest stand first.
func (f *ownerFinder) meet(z partition.Zone, ps ...peer.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, there := f.contacts[z]
	if !there && len(f.contacts) >= MaxZones {
		for other := range f.contacts {
			delete(f.contacts, other)
			break
		}
	}
	for _, p := range ps {
		if !slices.Contains(known, p) {
			known = slices.Insert(known, 0, p)
		}
	}
	f.contacts[z] = known[:min(len(known), MaxZoneContacts)]
}

// votes are the answers to one search.
type votes struct {
	z     *Zones
	slice partition.Slice
	asked map[peer.ID]bool
	named map[string]*vote // by owner; "" says that there is none
	order []*vote          // as they were first named
}

type vote struct {
	owner Owner
	count int
}

// enough says whether an owner has its witnesses.
func (v *votes) enough() bool {
	return slices.ContainsFunc(v.order, func(o *vote) bool { return o.count >= witnesses })
}

// owner is who most named; of equals, whom those closest to the slice did, since
// they were asked first.
func (v *votes) owner() (Owner, error) {
	if len(v.order) == 0 {
		return Owner{}, ErrNoOwner
	}
	best := v.order[0]
	for _, o := range v.order[1:] {
		if o.count > best.count {
			best = o
		}
	}
	if len(v.order) > 1 {
		v.z.owners.count.disputed.Add(1)
		best.owner.life = disputedLife
	}
	if len(best.owner.Replicas) == 0 {
		return Owner{}, ErrNoOwner
	}
	return best.owner, nil
}

// ask asks one member. An error says that its answer does not count.
func (v *votes) ask(ctx context.Context, p peer.ID) error {
	if v.asked[p] {
		return nil
	}
	v.asked[p] = true
	f := v.z.owners
	if p != v.z.self {
		f.count.calls.Add(1)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	res, err := v.z.opts.Calls.Call(ctx, p.String(),
		&wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Slice: uint64(v.slice)}}})
	if err != nil {
		return err
	}
	o, desc, err := v.z.judge(p, v.slice, res)
	switch {
	case errors.Is(err, errElsewhere):
		return err
	case errors.Is(err, wire.ErrSignature), errors.Is(err, wire.ErrMalformed):
		f.count.forged.Add(1)
		return err
	case err != nil:
		f.count.foreign.Add(1)
		return err
	}
	name := ""
	ps := []peer.ID{p}
	if len(o.Replicas) > 0 {
		name = o.ID()
		v.z.learnAddrs(desc)
		for _, id := range o.Replicas {
			if q, err := peer.Decode(id); err == nil && q != p {
				ps = append(ps, q)
			}
		}
	}
	if p != v.z.self {
		f.meet(o.Zone, ps...)
	}
	if v.named[name] == nil {
		v.named[name] = &vote{owner: o}
		v.order = append(v.order, v.named[name])
	}
	v.named[name].count++
	return nil
}

// judge checks what p says of a slice: see above. A good answer may be that
// there is no owner.
func (z *Zones) judge(p peer.ID, s partition.Slice, res *wire.Response) (Owner, wire.Descriptor, error) {
	a := res.GetWhoOwns()
	if a == nil {
		return Owner{}, wire.Descriptor{}, fmt.Errorf("%w: %s", errElsewhere, res.GetRefusal().GetReason())
	}
	zone := partition.Zone(a.Zone)
	switch {
	case partition.Slice(a.Slice) != s:
		return Owner{}, wire.Descriptor{}, errors.New("the answer is about another slice")
	case !zone.IsHash() || !zone.HasPeer(p.String()):
		return Owner{}, wire.Descriptor{}, fmt.Errorf("it says that it is in zone %s, which its id is not", zone)
	case !zone.Has(s):
		return Owner{}, wire.Descriptor{}, fmt.Errorf("%w: it is in zone %s", errElsewhere, zone)
	case zone.Depth() < z.Zone().Depth()-zoneSkew:
		return Owner{}, wire.Descriptor{}, fmt.Errorf("it says that its zone is %s, ours is %s", zone, z.Zone())
	}
	o := Owner{Slice: s, Zone: zone, Replicas: a.Keepers, Found: time.Now(), life: ownerLife}
	if len(a.Keepers) == 0 {
		return o, wire.Descriptor{}, nil
	}
	for _, id := range a.Keepers {
		if q, err := peer.Decode(id); err != nil || q.String() != id || !zone.HasPeer(id) {
			return Owner{}, wire.Descriptor{}, fmt.Errorf("it names %.64q, which is not of zone %s", id, zone)
		}
	}
	desc, err := wire.OpenDescriptor(o.ID(), z.space, a.Sealed, time.Now())
	if err != nil {
		return Owner{}, wire.Descriptor{}, err
	}
	if off := desc.Member.ZoneDepth - zone.Depth(); off < -1 || off > 1 || desc.Leaving {
		return Owner{}, wire.Descriptor{},
			fmt.Errorf("the owner it names says that its own zone is %d halvings deep, not %d", desc.Member.ZoneDepth,
				zone.Depth())
	}
	return o, desc, nil
}

// learnAddrs notes where an owner can be reached, by its own word.
func (z *Zones) learnAddrs(desc wire.Descriptor) {
	p, err := peer.Decode(desc.Member.ID)
	if err != nil || p == z.self {
		return
	}
	for _, text := range desc.Member.Addrs {
		if a, err := ma.NewMultiaddr(text); err == nil {
			z.opts.Host.Peerstore().AddAddr(p, a, peerstore.TempAddrTTL)
		}
	}
}

// A walked way: the members met, those closest to the slice first.
type walked struct {
	found   []peer.ID
	queries int
	hops    int // to the first that ends a walk; 0 = from the own routing table
}

// shared is how many bits the place of a peer shares with a slice.
func shared(p peer.ID, s partition.Slice) int {
	zone := uint64(partition.ZoneOfPeer(p.String(), s.Bits()))
	return min(s.Bits(), bits.LeadingZeros64(zone^uint64(s))-2)
}

// walk goes through Kademlia to the place of s. It ends early when it has met
// several peers that are at least one halving closer to s than a zone of that
// depth is wide.
func (z *Zones) walk(ctx context.Context, s partition.Slice, depth int) (walked, error) {
	f := z.owners
	f.count.walks.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, events := routing.RegisterForQueryEvents(ctx)
	type result struct {
		closest []peer.ID
		err     error
	}
	done := make(chan result, 1)
	go func() {
		closest, err := z.opts.Kademlia.GetClosestPeers(ctx, placeKey(s))
		done <- result{closest, err}
	}()
	var w walked
	close, far := 0, map[peer.ID]int{} // hops to whom we have heard of
	hear := func(p peer.ID, hops int) {
		if _, known := far[p]; known || p == z.self {
			return
		}
		far[p] = hops
		if n := shared(p, s); n >= max(1, depth-zoneSkew) {
			w.found = append(w.found, p)
			if n > min(depth, s.Bits()-1) {
				if close++; close == 1 {
					w.hops = hops
				}
			}
		}
	}
	var res result
	for open := true; open; {
		select {
		case e, more := <-events:
			if !more {
				events = nil
				continue
			}
			switch e.Type {
			case routing.SendingQuery:
				w.queries++
				hear(e.ID, 0)
			case routing.PeerResponse:
				for _, info := range e.Responses {
					hear(info.ID, far[e.ID]+1)
				}
			}
			if close >= walkFinds {
				cancel()
			}
		case res = <-done:
			open = false
		}
	}
	for _, p := range res.closest {
		hear(p, 1)
	}
	slices.SortStableFunc(w.found, func(a, b peer.ID) int { return shared(b, s) - shared(a, s) })
	f.count.queries.Add(uint64(w.queries))
	f.count.hops.Add(uint64(w.hops))
	if len(w.found) == 0 && res.err != nil {
		return w, fmt.Errorf("walk to %s: %w", s, res.err)
	}
	return w, nil
}

// placeKey is a text whose place in Kademlia begins as s does, for as many bits
// as any zone is deep in practice: found by trying, 2^walkBits at most on average.
func placeKey(s partition.Slice) string {
	n := min(s.Bits(), walkBits)
	want := s.Prefix() >> (s.Bits() - n)
	for i := 0; ; i++ {
		key := "echo-node place " + strconv.Itoa(i)
		sum := sha256.Sum256([]byte(key))
		if binary.BigEndian.Uint64(sum[:])>>(64-n) == want {
			return key
		}
	}
}
