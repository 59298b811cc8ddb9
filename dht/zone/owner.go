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

// How a peer finds the owner of a slice in another zone. A peer has the same place among the zones
// and in Kademlia. So a walk to the place of the slice meets members of the slice's zone after
// O(log n) hops, however often that zone was split. This peer asks these members. Three conditions
// must hold for an answer:
//
//   - The member that answers and the owner that it names belong to the zone by their ids.
//   - The answer has the owner's own descriptor, with a valid signature.
//   - That descriptor says that the owner is in this zone, or in one that is a halving wider or
//     narrower.
//
// Members can still name a wrong owner among themselves. So the search ends only when two members
// agree, or when there is nobody left to ask. A wrong owner of the slice says itself that it is not
// the owner (I5).
const (
	ownerLife    = 5 * time.Minute  // of an owner in the cache
	disputedLife = 10 * time.Second // the same, if members named different owners
	noOwnerLife  = 5 * time.Second  // how long the cache knows that there is no owner
	findTimeout  = 25 * time.Second // for one search
	askTimeout   = 5 * time.Second  // for one question in it

	witnesses = 2  // a search ends when so many members named the same owner
	maxAsked  = 6  // with so many members asked, a search starts no walk and asks none that a walk found
	walkFinds = 4  // a walk ends when it has found so many peers close to the slice
	walkBits  = 12 // bits of the slice that the key of a walk shares with it
	zoneSkew  = 2  // a zone is believable if it is at most so many halvings wider than this peer's

	// MaxOwners is the largest number of slices whose owner is remembered. MaxZones is that of
	// zones, and MaxZoneContacts that of members of each zone.
	MaxOwners       = 1 << 16
	MaxZones        = 1 << 12
	MaxZoneContacts = 8
)

// errElsewhere is the error of an honest answer that does not help: a refusal, or a member of
// another zone.
var errElsewhere = errors.New("not to be asked")

// ErrNoOwner says that members of the zone name no owner of the slice, or that no member was found.
var ErrNoOwner = errors.New("no owner of the slice was found")

// Owner is the owner of a slice, as members of its zone report it.
type Owner struct {
	Slice    partition.Slice
	Zone     partition.Zone
	Replicas []string // ids; the owner first, all of that zone by their ids
	Found    time.Time
	life     time.Duration // how long the cache keeps it
}

// ID returns the id of the owner.
func (o Owner) ID() string { return o.Replicas[0] }

// Stats has counters of the searches for owners. All count since New.
type Stats struct {
	Asked     uint64 // searches for an owner, with those that the cache answered
	Cached    uint64 // of these, answered by the cache
	Walks     uint64 // walks through Kademlia
	Queries   uint64 // messages of these walks
	Hops      uint64 // sum over the walks of the hops to the first peer close to the slice
	Calls     uint64 // questions to members
	Forged    uint64 // answers without a valid descriptor of the owner
	Foreign   uint64 // answers about another slice, or that name a peer outside the zone
	Disputed  uint64 // searches in which members named different owners
	NotFound  uint64 // searches without a result
	Forgotten uint64 // owners removed by ForgetOwner
}

// zoneCounters has the counters of Stats.
type zoneCounters struct {
	asked, cached, walks, queries, hops, calls, forged, foreign, disputed, notFound, forgotten atomic.Uint64
}

func (c *zoneCounters) stats() Stats {
	return Stats{Asked: c.asked.Load(), Cached: c.cached.Load(), Walks: c.walks.Load(), Queries: c.queries.Load(),
		Hops:  c.hops.Load(),
		Calls: c.calls.Load(), Forged: c.forged.Load(), Foreign: c.foreign.Load(), Disputed: c.disputed.Load(),
		NotFound: c.notFound.Load(), Forgotten: c.forgotten.Load()}
}

// ownerFinder has what this peer knows of other zones. Entries expire, or are removed when they
// prove wrong. A crash loses only a cache. Safe for concurrent use.
type ownerFinder struct {
	count zoneCounters

	mu       sync.Mutex
	owners   map[partition.Slice]Owner // an entry without replicas: there is no owner
	contacts map[partition.Zone][]peer.ID
	flights  map[partition.Slice]*flight
}

// flight is a search in progress. done is closed at its end, and owner and err are set before that.
type flight struct {
	done  chan struct{}
	owner Owner
	err   error
}

func newOwnerFinder() *ownerFinder {
	return &ownerFinder{owners: map[partition.Slice]Owner{}, contacts: map[partition.Zone][]peer.ID{},
		flights: map[partition.Slice]*flight{}}
}

// Meet remembers ps as members of a zone. Later searches ask them for owners of its slices.
func (z *Zones) Meet(zone partition.Zone, ps ...peer.ID) { z.owners.meet(zone, ps...) }

// KnownOwner returns the owner of s if the cache has it. It never waits.
func (z *Zones) KnownOwner(s partition.Slice) (Owner, bool) {
	o, ok := z.owners.known(s)
	return o, ok && len(o.Replicas) > 0
}

// known returns the entry of s, unless it expired. An entry without replicas says that there is no
// owner.
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

// ForgetOwner removes id from the cache as the owner of s. Call it if that peer could not be
// reached, or says that it is not the owner. The next FindOwner asks again.
func (z *Zones) ForgetOwner(s partition.Slice, id string) {
	f := z.owners
	f.mu.Lock()
	defer f.mu.Unlock()
	if o, ok := f.owners[s]; ok && len(o.Replicas) > 0 && o.ID() == id {
		delete(f.owners, s)
		f.count.forgotten.Add(1)
	}
}

// FindOwner returns the owner of s, a hash slice of any zone. It looks in its own View, in the
// cache, and asks known members of the slice's zone. If these do not help, it walks through
// Kademlia. Concurrent searches for one slice share one search, which goes on if ctx ends. The
// error wraps ErrNoOwner if members of the zone say that there is no owner, or if no member could
// be found. It wraps life.ErrClosed after Close.
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
		// The search runs in its own goroutine, so that it survives the caller that started it.
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

// fly makes one search, of at most findTimeout, even if nobody waits for it any more.
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
	// Remember for a few seconds that there is no owner. Other errors, such as a time-out, are not
	// remembered.
	case errors.Is(one.err, ErrNoOwner) && z.opts.Life.Context().Err() == nil:
		f.keep(Owner{Slice: s, Found: time.Now(), life: noOwnerLife})
	}
	f.mu.Unlock()
	close(one.done)
}

// keep remembers an owner. If there is no room, it replaces an arbitrary other one. The caller
// holds f.mu.
func (f *ownerFinder) keep(o Owner) {
	if _, there := f.owners[o.Slice]; !there && len(f.owners) >= MaxOwners {
		for s := range f.owners {
			delete(f.owners, s)
			break
		}
	}
	f.owners[o.Slice] = o
}

// search asks members of the zone of s for its owner. In this peer's own zone it asks only this
// peer's Handler.
func (z *Zones) search(ctx context.Context, s partition.Slice) (Owner, error) {
	v := &votes{z: z, slice: s, asked: map[peer.ID]bool{}, named: map[string]*vote{}}
	// This peer's own View has all members of the zone, so no vote is needed.
	if z.Zone().Has(s) {
		if err := v.ask(ctx, z.self); err != nil {
			return Owner{}, err
		}
		return v.owner()
	}
	// Known members are asked first, because that needs no walk.
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

// contactsFor returns the known members of the deepest zone that has s, in random order.
func (f *ownerFinder) contactsFor(s partition.Slice) []peer.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A deeper zone is more recent: the wider one has probably split since.
	for depth := s.Bits(); depth >= 0; depth-- {
		if ps := f.contacts[partition.ZoneOfSlice(s, depth)]; len(ps) > 0 {
			ps = slices.Clone(ps) // shuffled, so that no two members answer all questions
			rand.Shuffle(len(ps), func(i, j int) { ps[i], ps[j] = ps[j], ps[i] })
			return ps
		}
	}
	return nil
}

// drop forgets p as a member of each zone that has s.
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

// meet remembers members of a zone, the newest first. If there is no room, it forgets an arbitrary
// other zone.
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

// votes has the answers to one search. It is used by one goroutine.
type votes struct {
	z     *Zones
	slice partition.Slice
	asked map[peer.ID]bool
	named map[string]*vote // by the owner's id; "" = there is no owner
	order []*vote          // in the order in which they were first named
}

// vote is one named owner, and how many members named it.
type vote struct {
	owner Owner
	count int
}

// enough reports whether enough members named the same owner.
func (v *votes) enough() bool {
	return slices.ContainsFunc(v.order, func(o *vote) bool { return o.count >= witnesses })
}

// owner returns the owner that most members named. Of equals it returns the one named first. After
// a walk, that comes from the members closest to the slice.
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
	// Some members named another owner. Ask again soon.
	if len(v.order) > 1 {
		v.z.owners.count.disputed.Add(1)
		best.owner.life = disputedLife
	}
	if len(best.owner.Replicas) == 0 {
		return Owner{}, ErrNoOwner
	}
	return best.owner, nil
}

// ask asks one member, once. After an error its answer does not count.
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
	// A lie is counted by its kind. An honest answer that does not help is not counted.
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

// judge checks what p says of a slice, with the conditions above. A valid answer may also be that
// there is no owner: then Owner has no replicas.
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
	// All zones of a swarm split at about the same size, so a much wider one is not believable.
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
	// During a split, the owner and the member that answers may differ by one halving.
	if off := desc.Member.ZoneDepth - zone.Depth(); off < -1 || off > 1 || desc.Leaving {
		return Owner{}, wire.Descriptor{},
			fmt.Errorf("the owner it names says that its own zone is %d halvings deep, not %d", desc.Member.ZoneDepth,
				zone.Depth())
	}
	return o, desc, nil
}

// learnAddrs gives the host the addresses in an owner's descriptor, for a few minutes.
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

// walked is the result of a walk.
type walked struct {
	// peers met near the slice, the closest first
	found   []peer.ID
	queries int
	hops    int // to the first peer close to the slice; 0 = it was in the own routing table
}

// shared returns how many leading bits the place of a peer has in common with a slice.
func shared(p peer.ID, s partition.Slice) int {
	zone := uint64(partition.ZoneOfPeer(p.String(), s.Bits()))
	return min(s.Bits(), bits.LeadingZeros64(zone^uint64(s))-2)
}

// walk goes through Kademlia to the place of s. depth is the expected depth of the slice's zone.
// The walk ends early when it has met walkFinds peers that share more than depth bits with s. Those
// are in the zone even if it has split once more.
func (z *Zones) walk(ctx context.Context, s partition.Slice, depth int) (walked, error) {
	f := z.owners
	f.count.walks.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The events tell which peers the walk meets, before GetClosestPeers returns.
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
	close, far := 0, map[peer.ID]int{} // far has the hops to each known peer
	hear := func(p peer.ID, hops int) {
		if _, known := far[p]; known || p == z.self {
			return
		}
		far[p] = hops
		// p shares enough bits to be in the zone of s, if that zone is about as deep as expected.
		if n := shared(p, s); n >= max(1, depth-zoneSkew) {
			w.found = append(w.found, p)
			// It shares more bits than a zone of that depth needs.
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
				// A nil channel is never ready, so only done can end the loop now.
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
			// The rest of the walk would only find peers that are even closer.
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
	// Of peers that share as many bits, the one met first stays first.
	slices.SortStableFunc(w.found, func(a, b peer.ID) int { return shared(b, s) - shared(a, s) })
	f.count.queries.Add(uint64(w.queries))
	f.count.hops.Add(uint64(w.hops))
	if len(w.found) == 0 && res.err != nil {
		return w, fmt.Errorf("walk to %s: %w", s, res.err)
	}
	return w, nil
}

// placeKey returns a text whose place in Kademlia begins with the same bits as s, up to walkBits of
// them. In practice no zone is deeper. It tries texts, on average up to 2^walkBits = 4096.
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
