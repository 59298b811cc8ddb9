package dht

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

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
	zoneTick    = time.Second
	zoneTicks   = 3               // looks in a row that must agree on a split
	zoneSettle  = 5 * time.Second // in two lists at least
	zonePatient = time.Hour       // and at most, if somebody never comes along
	zoneMourns  = 2 * time.Minute // a vanished member is waited for
	zoneJoins   = 3               // members of the half joined a tick
)

// zonePath is nothing for the undivided zone, so that a swarm which never
// splits speaks as one that knows no zones.
func zonePath(z partition.Zone) string {
	if z.Depth() == 0 {
		return ""
	}
	return z.String()
}

// openList makes the membership of a zone; its protocols are its own.
func (d *DHT) openList(zone partition.Zone, self partition.Member, elsewhere func(peer.ID) bool) (*member.List, error) {
	at := d.prefix
	if path := zonePath(zone); path != "" {
		at += protocol.ID("/zone/" + strings.TrimPrefix(path, "hash/"))
	}
	return member.New(member.Options{Host: d.host, Key: d.opts.Key, Space: d.space, Prefix: at, Self: self,
		Logger: d.log, Elsewhere: elsewhere})
}

// Zone is the hash zone that this peer is in.
func (d *DHT) Zone() partition.Zone {
	z, _ := d.list.Zone()
	return z
}

// SetHolds says how to find out whether this peer still holds slices outside a
// zone; until it does not, it stays in the list of the zone that was split.
// Without, it holds none.
func (d *DHT) SetHolds(holds func(partition.Zone) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds = holds
}

func (d *DHT) free(zone partition.Zone) bool {
	d.mu.Lock()
	holds := d.holds
	d.mu.Unlock()
	return holds == nil || !holds(zone)
}

// signZone adds to an answer about owners what only this package knows.
func (d *DHT) signZone(a *wire.WhoOwnsAnswer) {
	if a == nil {
		return
	}
	a.Zone = uint64(d.Zone())
	if len(a.Keepers) > 0 {
		a.Sealed = d.list.Sealed(a.Keepers[0])
	}
}

// zoneLoop splits this peer's zone when it is too large, and goes through with
// it. It ends at once in a swarm of one zone.
func (d *DHT) zoneLoop(ctx context.Context) {
	rule, agreed := d.opts.Charter.ZoneRule(), 0
	if rule.Max == 0 {
		return
	}
	for sleep(ctx, zoneTick) {
		if _, wider := d.list.both(); wider != nil {
			if err := d.goThrough(ctx, wider); err != nil && ctx.Err() == nil {
				d.log.Warn("leave the zone that was split", "err", err)
			}
			continue
		}
		zone := d.Zone()
		if next := rule.Next(d.ID(), zone.Depth(), d.opts.Charter.SliceBits, d.ruleView()); next <= zone.Depth() {
			agreed = 0
		} else if agreed++; agreed == zoneTicks {
			agreed = 0
			half := partition.ZoneOfPeer(d.ID(), next)
			if err := d.moveTo(half, true); err != nil {
				d.log.Warn("enter the half of a zone", "zone", half.String(), "err", err)
			}
		}
	}
}

// ruleView is the View along with those who went ahead into a half and have left
// already: they count, or who comes late would believe the zone small.
func (d *DHT) ruleView() partition.View {
	ms := append([]partition.Member(nil), d.View().Members()...)
	for _, g := range d.Gone() {
		if g.Left && g.Member.ZoneDepth > d.Zone().Depth() {
			ms = append(ms, g.Member)
		}
	}
	return partition.NewView(ms)
}

// moveTo makes zone this peer's own.
func (d *DHT) moveTo(zone partition.Zone, keep bool) error {
	m := d.describe()
	m.ZoneDepth = zone.Depth()
	m.ZoneFree = d.free(zone)
	if err := d.list.enter(zone, m, keep); err != nil {
		return fmt.Errorf("enter zone %s: %w", zone, err)
	}
	d.log.Info("zone", "zone", d.Zone().String(), "members", d.View().Len())
	notify(d.changed)
	return nil
}

// goThrough goes on with a split: it finds those of the half, says when this
// peer holds nothing of the other, and leaves the wider list in the end.
func (d *DHT) goThrough(ctx context.Context, wider *member.List) error {
	zone, since := d.list.Zone()
	own, _ := d.list.both()
	var errs []error
	if m := d.describe(); m.ZoneFree != own.Self().ZoneFree {
		errs = append(errs, d.announce())
	}
	here, there := own.View(), wider.View()
	ready, joins := true, 0
	for _, m := range append(there.Members(), d.goneAhead(zone)...) {
		_, in := here.Find(m.ID)
		mine := zone.HasPeer(m.ID)
		if m.ZoneDepth < zone.Depth() || !m.ZoneFree || mine && !in {
			ready = ready && m.ID == d.ID() && m.ZoneFree
		}
		if !mine || in || m.ZoneDepth < zone.Depth() || joins == zoneJoins {
			continue
		}
		joins++
		if info, ok := infoOf(m); ok {
			d.joinLogged(ctx, info, "of the same half of a split zone")
		}
	}
	for _, g := range wider.Gone() {
		// Dead, or only thought to be: it may come back with what is for others.
		ready = ready && (g.Left || time.Since(g.Since) > zoneMourns)
	}
	age := time.Since(since)
	if d.free(zone) && age >= zoneSettle && (ready || age >= zonePatient) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		errs = append(errs, d.list.narrow(ctx))
	}
	return errors.Join(errs...)
}

// goneAhead are those of zone who left the wider list before we came.
func (d *DHT) goneAhead(zone partition.Zone) []partition.Member {
	var out []partition.Member
	for _, g := range d.Gone() {
		if g.Left && g.Member.ZoneDepth >= zone.Depth() && zone.HasPeer(g.Member.ID) &&
			time.Since(g.Since) < time.Minute {
			out = append(out, g.Member)
		}
	}
	return out
}

// wayIn says whom to exchange the membership with, having reached p: p itself
// when it is in this peer's zone, else somebody there. A peer that is alone
// enters the zone that the others say is its own.
func (d *DHT) wayIn(ctx context.Context, p peer.ID) (peer.ID, error) {
	if d.opts.Charter.ZoneMax == 0 {
		return p, nil
	}
	zone, err := d.askZone(ctx, p)
	if err != nil {
		return "", err
	}
	if zone.HasPeer(d.ID()) {
		return p, d.settleIn(zone)
	}
	place := partition.Slice(partition.ZoneOfPeer(d.ID(), d.opts.Charter.SliceBits))
	w, err := d.walk(ctx, place, zone.Depth())
	if err != nil {
		return "", err
	}
	for _, q := range w.found {
		if zone, err := d.askZone(ctx, q); err == nil && zone.HasPeer(d.ID()) {
			return q, d.settleIn(zone)
		}
	}
	return "", fmt.Errorf("%s is in zone %s: nobody of this peer's own zone found: %w", p, zone, ErrNoPeer)
}

func (d *DHT) settleIn(zone partition.Zone) error {
	if zone == d.Zone() || d.View().Len() > 1 {
		return nil // zoneLoop moves those who are not alone
	}
	return d.moveTo(zone, false)
}

// askZone asks p which zone it is in.
func (d *DHT) askZone(ctx context.Context, p peer.ID) (partition.Zone, error) {
	place := partition.ZoneOfPeer(d.ID(), d.opts.Charter.SliceBits)
	res, err := d.Call(ctx, p.String(),
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
