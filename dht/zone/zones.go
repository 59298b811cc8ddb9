// Package zone is a peer's place among the zones of its swarm: it keeps the
// membership of the peer's zone, splits a zone that is too large, and finds who
// owns a slice of another zone.
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

// How a zone splits (partition.ZoneRule says when). A member enters the list of
// its half beside the one it is in, says so in its descriptor, and ranks replicas
// by halves from then on. It leaves the wider list when everybody in it has
// split, those of its half are in the new list, and everybody has handed over
// what belongs to the other half (Member.ZoneFree). A crash in between loses
// nothing: who starts again asks a peer which zone it is in and goes there, with
// what it holds.
//
// Zones do not grow together again yet: one that shrinks below what its rule
// asks for stays as it is.
const (
	// Settle is how long a peer stays in two lists at least.
	Settle      = 5 * time.Second
	zoneTick    = time.Second
	zoneTicks   = 3                // looks in a row that must agree on a split
	zonePatient = time.Hour        // and at most, if somebody never comes along
	zoneMourns  = 2 * time.Minute  // a vanished member is waited for
	zoneJoins   = 3                // members of the half joined a tick
	zoneLeave   = 20 * time.Second // the longest good-bye to the zone that was split
)

// errNobody is of a way into a zone that was not found.
var errNobody = errors.New("peer cannot be reached")

// Caller calls other peers, and this peer itself.
type Caller interface {
	// Call sends req to the peer and returns its answer, which may be a refusal.
	Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error)
}

// Joiner connects to peers and exchanges the membership with them.
type Joiner interface {
	// Join says whether info let this peer in; why is for the log.
	Join(ctx context.Context, info peer.AddrInfo, why string) bool
}

// Options of Zones. All fields are required.
type Options struct {
	Host     host.Host // as the protocols of the swarm see it
	Kademlia *kad.IpfsDHT
	Key      crypto.PrivKey
	Charter  partition.Charter
	Prefix   protocol.ID // of the swarm's protocols
	Calls    Caller
	Self     func() partition.Member // what this peer says of itself, but for its zone
	Follow   func(partition.View)    // told of each new View, one at a time, before Views has it
	Life     *life.Life
	Logger   *slog.Logger
}

// Zones are the membership of this peer's zone, and what it knows of the others.
// All methods are safe for concurrent use.
type Zones struct {
	*lists
	opts    Options
	self    peer.ID
	space   string        // the charter's digest
	changed chan struct{} // cap 1: what this peer says of itself changed
	owners  *ownerFinder

	holding sync.Mutex
	holds   func(partition.Zone) bool // nil = nothing is held outside any zone
}

// New opens the membership of the undivided zone, which knows nobody yet. The
// caller closes the Zones.
func New(o Options) (*Zones, error) {
	z := &Zones{opts: o, self: o.Host.ID(), space: o.Charter.Digest(), changed: make(chan struct{}, 1),
		owners: newOwnerFinder()}
	var err error
	if z.lists, err = newLists(o.Self(), z.openList, o.Follow); err != nil {
		return nil, err
	}
	return z, nil
}

// Self is what this peer says of itself.
func (z *Zones) Self() partition.Member {
	m := z.opts.Self()
	zone := z.Zone()
	m.ZoneDepth = zone.Depth()
	m.ZoneFree = m.ZoneDepth > 0 && z.free(zone)
	return m
}

// Announce gossips what this peer says of itself now.
func (z *Zones) Announce() error {
	if err := z.Update(z.Self()); err != nil {
		return err
	}
	life.Notify(z.changed)
	return nil
}

// Changed has a token when what this peer says of itself changed. It has one reader.
func (z *Zones) Changed() <-chan struct{} { return z.changed }

// Between says whether this peer has left one zone and is not yet in another alone.
func (z *Zones) Between() bool {
	_, wider := z.both()
	return wider != nil
}

// Stats count how owners in other zones were found.
func (z *Zones) Stats() Stats { return z.owners.count.stats() }

// MemberStats are those of the membership of this peer's zone.
func (z *Zones) MemberStats() member.Stats { return z.lists.Stats() }

// Path is the name of a zone among protocols and keys: nothing for the undivided zone, so that a swarm which never
// splits speaks as one that knows no zones.
func Path(z partition.Zone) string {
	if z.Depth() == 0 {
		return ""
	}
	return z.String()
}

// openList makes the membership of a zone; its protocols are its own.
func (z *Zones) openList(zone partition.Zone, self partition.Member, elsewhere func(peer.ID) bool) (*member.List,
	error) {
	at := z.opts.Prefix
	if path := Path(zone); path != "" {
		at += protocol.ID("/zone/" + strings.TrimPrefix(path, "hash/"))
	}
	return member.New(member.Options{Host: z.opts.Host, Key: z.opts.Key, Space: z.space, Prefix: at, Self: self,
		Logger: z.opts.Logger, Elsewhere: elsewhere})
}

// Zone is the hash zone that this peer is in.
func (z *Zones) Zone() partition.Zone {
	zone, _ := z.at()
	return zone
}

// SetHolds says how to find out whether this peer still holds slices outside a
// zone; until it does not, it stays in the list of the zone that was split.
// Without, it holds none.
func (z *Zones) SetHolds(holds func(partition.Zone) bool) {
	z.holding.Lock()
	defer z.holding.Unlock()
	z.holds = holds
}

func (z *Zones) free(zone partition.Zone) bool {
	z.holding.Lock()
	holds := z.holds
	z.holding.Unlock()
	return holds == nil || !holds(zone)
}

// Sign adds to an answer about owners what only this package knows.
func (z *Zones) Sign(a *wire.WhoOwnsAnswer) {
	if a == nil {
		return
	}
	a.Zone = uint64(z.Zone())
	if len(a.Keepers) > 0 {
		a.Sealed = z.Sealed(a.Keepers[0])
	}
}

// Run splits this peer's zone when it is too large, and goes through with
// it. It ends at once in a swarm of one zone.
func (z *Zones) Run(ctx context.Context, joiner Joiner) {
	rule, agreed := z.opts.Charter.ZoneRule(), 0
	if rule.Max == 0 {
		return
	}
	for life.Sleep(ctx, zoneTick) {
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
		} else if agreed++; agreed == zoneTicks {
			agreed = 0
			half := partition.ZoneOfPeer(z.self.String(), next)
			if err := z.moveTo(half, true); err != nil {
				z.opts.Logger.Warn("enter the half of a zone", "zone", half.String(), "err", err)
			}
		}
	}
}

// ruleView is the View along with those who went ahead into a half and have left
// already: they count, or who comes late would believe the zone small.
func (z *Zones) ruleView() partition.View {
	ms := append([]partition.Member(nil), z.View().Members()...)
	for _, g := range z.Gone() {
		if g.Left && g.Member.ZoneDepth > z.Zone().Depth() {
			ms = append(ms, g.Member)
		}
	}
	return partition.NewView(ms)
}

// moveTo makes zone this peer's own.
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

// goThrough goes on with a split: it finds those of the half, says when this
// peer holds nothing of the other, and leaves the wider list in the end.
func (z *Zones) goThrough(ctx context.Context, wider *member.List, joiner Joiner) error {
	zone, since := z.at()
	own, _ := z.lists.both()
	var errs []error
	if m := z.Self(); m.ZoneFree != own.Self().ZoneFree {
		errs = append(errs, z.Announce())
	}
	here, there := own.View(), wider.View()
	ready, joins := true, 0
	for _, m := range append(there.Members(), z.goneAhead(zone)...) {
		_, in := here.Find(m.ID)
		mine := zone.HasPeer(m.ID)
		if m.ZoneDepth < zone.Depth() || !m.ZoneFree || mine && !in {
			ready = ready && m.ID == z.self.String() && m.ZoneFree
		}
		if !mine || in || m.ZoneDepth < zone.Depth() || joins == zoneJoins {
			continue
		}
		joins++
		if info, ok := member.AddrInfo(m); ok {
			joiner.Join(ctx, info, "of the same half of a split zone")
		}
	}
	for _, g := range wider.Gone() {
		// Dead, or only thought to be: it may come back with what is for others.
		ready = ready && (g.Left || time.Since(g.Since) > zoneMourns)
	}
	age := time.Since(since)
	if z.free(zone) && age >= Settle && (ready || age >= zonePatient) {
		ctx, cancel := context.WithTimeout(ctx, zoneLeave)
		defer cancel()
		errs = append(errs, z.lists.narrow(ctx))
	}
	return errors.Join(errs...)
}

// goneAhead are those of zone who left the wider list before we came.
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

// WayIn says whom to exchange the membership with, having reached p: p itself
// when it is in this peer's zone, else somebody there. A peer that is alone
// enters the zone that the others say is its own.
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

func (z *Zones) settleIn(zone partition.Zone) error {
	if zone == z.Zone() || z.View().Len() > 1 {
		return nil // Run moves those who are not alone
	}
	return z.moveTo(zone, false)
}

// askZone asks p which zone it is in.
func (z *Zones) askZone(ctx context.Context, p peer.ID) (partition.Zone, error) {
	place := partition.ZoneOfPeer(z.self.String(), z.opts.Charter.SliceBits)
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
