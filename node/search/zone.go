package search

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// split removes the slices of other zones from assign and gives each to a member of its zone. If no
// member of a zone is found in time, its slices go to "".
func (en *Engine) split(ctx context.Context, assign map[string][]partition.Slice,
	until time.Time) map[string]partition.Zone {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	here := en.swarm.Zone()
	if en.o.Charter.ZoneMax == 0 || here.Depth() == 0 {
		return nil
	}
	var rest []partition.Slice
	for id, ss := range assign {
		var near []partition.Slice
		for _, s := range ss {
			if en.swarm.Foreign(s) {
				rest = append(rest, s)
			} else {
				near = append(near, s)
			}
		}
		if assign[id] = near; len(near) == 0 {
			delete(assign, id)
		}
	}
	zones := map[string]partition.Zone{}
	for len(rest) > 0 {
		o, err := en.swarm.FindOwner(ctx, rest[0])
		id := ""
		if err == nil {
			id = o.ID()
			zones[id] = o.Zone
		} else { // no peer of that zone, or near it, was found
			o = zone.Owner{Zone: partition.ZoneOfSlice(rest[0], here.Depth())}
		}
		var left []partition.Slice
		for _, s := range rest {
			if o.Zone.Has(s) {
				assign[id] = append(assign[id], s)
			} else {
				left = append(left, s)
			}
		}
		rest = left
	}
	return zones
}

// withinZone leaves in assign only slices of the requested zone that are also in this peer's own
// zone. lost are the requested slices outside this peer's zone.
func (en *Engine) withinZone(assign map[string][]partition.Slice, asked partition.Zone) (lost []partition.Slice) {
	own := en.swarm.Zone()
	for id, ss := range assign {
		var in []partition.Slice
		for _, s := range ss {
			switch {
			case !asked.Has(s):
			case own.Has(s):
				in = append(in, s)
			default:
				lost = append(lost, s)
			}
		}
		if assign[id] = in; len(in) == 0 {
			delete(assign, id)
		}
	}
	return lost
}

// zoneDeadline is the time until which members of this zone may respond to a peer of another zone.
func (en *Engine) zoneDeadline(ctx context.Context) time.Time {
	until := time.Now().Add(en.o.Timeout / 2)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		return at
	}
	return until
}

// serveZoneCopies answers for a whole zone by asking its members, for a peer of another zone.
// Slices that are not in this peer's own zone are missing.
func (en *Engine) serveZoneCopies(ctx context.Context, w *wire.Copies) (*wire.CopiesAnswer, error) {
	h := en.newHunt(en.zoneDeadline(ctx))
	a := &wire.CopiesAnswer{Missing: call.AppendSlices(nil, en.withinZone(h.assign, partition.Zone(w.Zone)))}
	told := map[uint64]bool{}
	size := 0
	for _, f := range h.ask(ctx, w) {
		if p := f.fingerprint; len(f.Print) > 0 { // several peers may have equal texts
			if told[p.Content] {
				p.Units = nil
			}
			told[p.Content] = true
			p.ID = ""
			f.Print = p.Append(nil)
		}
		if size += len(f.Print); size > maxFoundText || len(a.Found) == wire.MaxCopies {
			a.More = true
			break
		}
		a.Found = append(a.Found, f.Copy)
	}
	a.More, a.Stale = a.More || h.more, h.stale
	a.Missing = append(a.Missing, h.missing()...)
	return a, nil
}
