package search

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// split takes the slices of other zones out of assign and gives each to a member
// of its zone. Those of a zone that nobody could be found of until then stay with "".
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
		} else { // nobody of about that zone
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

// withinZone leaves in assign what is asked for and of this peer's own zone; lost is
// what is asked for and is not.
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

// zoneDeadline is until when the members of this zone may answer a peer of another one.
func (en *Engine) zoneDeadline(ctx context.Context) time.Time {
	until := time.Now().Add(en.o.Timeout / 2)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		return at
	}
	return until
}

// serveZoneCopies answers for a whole zone by asking the members of it, for a peer of
// another one. What is not of this peer's own zone is missing.
func (en *Engine) serveZoneCopies(ctx context.Context, w *wire.Copies) (*wire.CopiesAnswer, error) {
	h := en.newHunt(en.zoneDeadline(ctx))
	a := &wire.CopiesAnswer{Missing: call.AppendSlices(nil, en.withinZone(h.assign, partition.Zone(w.Zone)))}
	told := map[uint64]bool{}
	size := 0
	for _, f := range h.ask(ctx, w) {
		if p := f.fingerprint; len(f.Print) > 0 { // those of equal texts may be of several peers
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
