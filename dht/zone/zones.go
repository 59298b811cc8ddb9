// Package zone keeps a peer's place among the zones of its swarm. It keeps the membership of the
// peer's zone, splits a zone that is too large, and finds the owner of a slice in another zone.
package zone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// A zone splits into two halves, when partition.ZoneRule says so. Each member then does the
// following steps.
//
//  1. It enters the list of its half, and stays in the list that it has, the wider one.
//  2. It publishes this in its descriptor. From then on it ranks replicas by halves.
//  3. It leaves the wider list when all three conditions hold: every member of it has split; the members of
//     its own half are in the new list; and every member has handed over the slices of the other
//     half (Member.ZoneFree).
//
// A crash in between loses nothing. After its start the peer asks another one for its zone, and
// goes there with the slices that it holds.
//
// Zones do not merge yet. A zone that becomes smaller than its rule requires stays as it is.
const (
	// Settle is the shortest time for which a peer stays in two lists.
	Settle = 5 * time.Second
	// time between two checks of the rule
	zoneTick    = time.Second
	zoneTicks   = 3                // number of checks in a row that must agree on a split
	zonePatient = time.Hour        // the longest time in two lists, if some member never splits
	zoneMourns  = 2 * time.Minute  // a member that vanished blocks step 3 for this time
	zoneJoins   = 3                // members of the half that are joined in one tick
	zoneLeave   = 20 * time.Second // the longest goodbye to the wider list
)

// errNobody is the error of WayIn if it finds no member of this peer's zone.
var errNobody = errors.New("peer cannot be reached")

// Caller calls other peers, and also this peer itself.
type Caller interface {
	// Call sends req to the peer and returns its answer, which may be a refusal. It must be safe
	// for concurrent use.
	Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error)
}

// Joiner connects to peers and exchanges the membership with them.
type Joiner interface {
	// Join reports whether info let this peer in. why is text for the log.
	Join(ctx context.Context, info peer.AddrInfo, why string) bool
}

// Options configure Zones. All fields are required.
type Options struct {
	Host     host.Host // as the protocols of the swarm see it
	Kademlia *kad.IpfsDHT
	Key      crypto.PrivKey
	Charter  partition.Charter
	Prefix   protocol.ID // of the swarm's protocols
	Calls    Caller
	Self     func() partition.Member // what this peer declares about itself, without its zone; safe for concurrent use
	Follow   func(partition.View)    // called with each new View, one at a time, before Views delivers it
	Life     *life.Life
	Logger   *slog.Logger
}

// Zones has the membership of this peer's zone, and what this peer knows of other zones. All
// methods are safe for concurrent use.
type Zones struct {
	*lists
	opts    Options
	self    peer.ID
	space   string        // the charter's digest
	changed chan struct{} // capacity 1: this peer's descriptor changed
	owners  *ownerFinder

	holding sync.Mutex
	holds   func(partition.Zone) bool // nil = this peer holds no slice outside its zone
}

// New opens the membership of the undivided zone, which has no other member yet. The caller closes
// the Zones.
func New(o Options) (*Zones, error) {
	z := &Zones{opts: o, self: o.Host.ID(), space: o.Charter.Digest(), changed: make(chan struct{}, 1),
		owners: newOwnerFinder()}
	var err error
	if z.lists, err = newLists(o.Self(), z.openList, o.Follow); err != nil {
		return nil, err
	}
	return z, nil
}

// Self returns what this peer declares about itself now, with its zone.
func (z *Zones) Self() partition.Member {
	m := z.opts.Self()
	zone := z.Zone()
	m.ZoneDepth = zone.Depth()
	m.ZoneFree = m.ZoneDepth > 0 && z.free(zone)
	return m
}

// Announce gossips what this peer declares about itself now.
func (z *Zones) Announce() error {
	if err := z.Update(z.Self()); err != nil {
		return err
	}
	life.Notify(z.changed)
	return nil
}

// Changed has a token if this peer's descriptor changed. It has one reader.
func (z *Zones) Changed() <-chan struct{} { return z.changed }

// Between reports whether this peer is in two lists, because its zone is splitting.
func (z *Zones) Between() bool {
	_, wider := z.both()
	return wider != nil
}

// Stats returns counters of the searches for owners in other zones.
func (z *Zones) Stats() Stats { return z.owners.count.stats() }

// MemberStats returns the counters of the list of this peer's zone.
func (z *Zones) MemberStats() member.Stats { return z.lists.Stats() }

// Path returns the name of a zone as a part of protocol names and Kademlia keys. It is empty for
// the undivided zone. So a swarm that never splits uses the same names as one without zones.
func Path(z partition.Zone) string {
	if z.Depth() == 0 {
		return ""
	}
	return z.String()
}

// openList opens the membership of a zone. Each zone has its own protocols.
func (z *Zones) openList(zone partition.Zone, self partition.Member, elsewhere func(peer.ID) bool) (*member.List,
	error) {
	at := z.opts.Prefix
	if path := Path(zone); path != "" {
		at += protocol.ID("/zone/" + strings.TrimPrefix(path, "hash/"))
	}
	return member.New(member.Options{Host: z.opts.Host, Key: z.opts.Key, Space: z.space, Prefix: at, Self: self,
		Logger: z.opts.Logger, Elsewhere: elsewhere})
}

// Zone returns the hash zone of this peer.
func (z *Zones) Zone() partition.Zone {
	zone, _ := z.at()
	return zone
}

// SetHolds sets the function that reports whether this peer still holds slices outside a zone.
// While it does, this peer stays in the list of the zone that was split. Without such a function,
// it holds none.
func (z *Zones) SetHolds(holds func(partition.Zone) bool) {
	z.holding.Lock()
	defer z.holding.Unlock()
	z.holds = holds
}

// free reports whether this peer holds no slices outside zone.
func (z *Zones) free(zone partition.Zone) bool {
	z.holding.Lock()
	holds := z.holds
	z.holding.Unlock()
	return holds == nil || !holds(zone)
}

// Sign adds to an answer about owners this peer's zone, and the owner's descriptor as the owner
// sealed it. a may be nil.
func (z *Zones) Sign(a *wire.WhoOwnsAnswer) {
	if a == nil {
		return
	}
	a.Zone = uint64(z.Zone())
	if len(a.Keepers) > 0 {
		a.Sealed = z.Sealed(a.Keepers[0])
	}
}

// Run splits this peer's zone when it is too large, and completes the split. It ends with ctx, or
// at once in a swarm that has only one zone.
func (z *Zones) Run(ctx context.Context, joiner Joiner) {
	rule, agreed := z.opts.Charter.ZoneRule(), 0
	if rule.Max == 0 {
		return
	}
	for life.Sleep(ctx, zoneTick) {
		// A split is in progress. The next one can only begin after it.
		if _, wider := z.lists.both(); wider != nil {
			if err := z.goThrough(ctx, wider, joiner); err != nil && ctx.Err() == nil {
				z.opts.Logger.Warn("leave the zone that was split", "err", err)
			}
			continue
		}
		zone := z.Zone()
		next := rule.Next(z.self.String(), zone.Depth(), z.opts.Charter.SliceBits, z.ruleView())
		if next <= zone.Depth() {
			agreed = 0
			// One look may see a View in which members are missing for a moment.
		} else if agreed++; agreed == zoneTicks {
			agreed = 0
			half := partition.ZoneOfPeer(z.self.String(), next)
			if err := z.moveTo(half, true); err != nil {
				z.opts.Logger.Warn("enter the half of a zone", "zone", half.String(), "err", err)
			}
		}
	}
}

// ruleView returns the View together with the members that have already left it for a half. They
// count too. Otherwise a late member would believe that its zone is small, and would not split.
func (z *Zones) ruleView() partition.View {
	ms := append([]partition.Member(nil), z.View().Members()...)
	for _, g := range z.Gone() {
		// It left this list for a half, and not the swarm.
		if g.Left && g.Member.ZoneDepth > z.Zone().Depth() {
			ms = append(ms, g.Member)
		}
	}
	return partition.NewView(ms)
}

// moveTo makes zone the zone of this peer. With keep, it stays in the list of the zone before.
func (z *Zones) moveTo(zone partition.Zone, keep bool) error {
	m := z.Self()
	m.ZoneDepth = zone.Depth()
	m.ZoneFree = z.free(zone)
	if err := z.lists.enter(zone, m, keep); err != nil {
		return fmt.Errorf("enter zone %s: %w", zone, err)
	}
	z.opts.Logger.Info("zone", "zone", z.Zone().String(), "members", z.View().Len())
	life.Notify(z.changed)
	return nil
}

// goThrough continues a split: it joins members of this peer's half, and announces when this peer
// holds nothing of the other half. When all is done, it leaves the wider list.
func (z *Zones) goThrough(ctx context.Context, wider *member.List, joiner Joiner) error {
	zone, since := z.at()
	own, _ := z.lists.both()
	var errs []error
	// The others wait for this peer to say that it has handed over everything.
	if m := z.Self(); m.ZoneFree != own.Self().ZoneFree {
		errs = append(errs, z.Announce())
	}
	here, there := own.View(), wider.View()
	ready, joins := true, 0
	for _, m := range append(there.Members(), z.goneAhead(zone)...) {
		_, in := here.Find(m.ID)
		mine := zone.HasPeer(m.ID)
		// This member has not split, still holds slices of the other half, or is missing in the new
		// list. Only this peer itself may be such a member.
		if m.ZoneDepth < zone.Depth() || !m.ZoneFree || mine && !in {
			ready = ready && m.ID == z.self.String() && m.ZoneFree
		}
		// Join only members of this peer's half that have split and are still missing here.
		if !mine || in || m.ZoneDepth < zone.Depth() || joins == zoneJoins {
			continue
		}
		joins++
		if info, ok := member.AddrInfo(m); ok {
			joiner.Join(ctx, info, "of the same half of a split zone")
		}
	}
	for _, g := range wider.Gone() {
		// It is dead, or only seems to be. It may come back with rows of slices of the other half.
		ready = ready && (g.Left || time.Since(g.Since) > zoneMourns)
	}
	age := time.Since(since)
	// After zonePatient this peer leaves, even if others are not ready. But it never leaves with
	// slices of the other half.
	if z.free(zone) && age >= Settle && (ready || age >= zonePatient) {
		ctx, cancel := context.WithTimeout(ctx, zoneLeave)
		defer cancel()
		errs = append(errs, z.lists.narrow(ctx))
	}
	return errors.Join(errs...)
}

// goneAhead returns the members of zone that left the wider list within the last minute.
func (z *Zones) goneAhead(zone partition.Zone) []partition.Member {
	var out []partition.Member
	for _, g := range z.Gone() {
		if g.Left && g.Member.ZoneDepth >= zone.Depth() && zone.HasPeer(g.Member.ID) &&
			time.Since(g.Since) < time.Minute {
			out = append(out, g.Member)
		}
	}
	return out
}

// WayIn returns the peer with which to exchange the membership, once p is connected. That is p
// itself if it is in this peer's zone. Otherwise it is a member of that zone, found by a walk. A
// peer that is alone enters the zone that the others report as its own.
func (z *Zones) WayIn(ctx context.Context, p peer.ID) (peer.ID, error) {
	if z.opts.Charter.ZoneMax == 0 {
		return p, nil
	}
	zone, err := z.askZone(ctx, p)
	if err != nil {
		return "", err
	}
	if zone.HasPeer(z.self.String()) {
		return p, z.settleIn(zone)
	}
	// Members of this peer's zone are near its own place in Kademlia.
	place := partition.Slice(partition.ZoneOfPeer(z.self.String(), z.opts.Charter.SliceBits))
	w, err := z.walk(ctx, place, zone.Depth())
	if err != nil {
		return "", err
	}
	for _, q := range w.found {
		if zone, err := z.askZone(ctx, q); err == nil && zone.HasPeer(z.self.String()) {
			return q, z.settleIn(zone)
		}
	}
	return "", fmt.Errorf("%s is in zone %s: nobody of this peer's own zone found: %w", p, zone, errNobody)
}

// settleIn makes zone the zone of this peer, if this peer is alone.
func (z *Zones) settleIn(zone partition.Zone) error {
	if zone == z.Zone() || z.View().Len() > 1 {
		return nil // Run moves peers that are not alone
	}
	return z.moveTo(zone, false)
}

// askZone asks p for its zone. It believes only a zone to which p belongs by its id.
func (z *Zones) askZone(ctx context.Context, p peer.ID) (partition.Zone, error) {
	place := partition.ZoneOfPeer(z.self.String(), z.opts.Charter.SliceBits)
	// An answer to who-owns has the zone of the member that answers. The question may be about any
	// slice.
	res, err := z.opts.Calls.Call(ctx, p.String(),
		&wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Slice: uint64(place)}}})
	if err != nil {
		return 0, err
	}
	a := res.GetWhoOwns()
	zone := partition.Zone(a.GetZone())
	if a == nil || !zone.IsHash() || !zone.HasPeer(p.String()) {
		return 0, fmt.Errorf("%s does not say which zone it is in: %s", p, res.GetRefusal().GetReason())
	}
	return zone, nil
}
