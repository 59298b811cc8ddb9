package node

import (
	"cmp"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
)

// openPlacer opens the gazetteer if the swarm is in geo mode, and returns all slices. Peers with
// another gazetteer would put units into other slices, so that is an error.
func (n *Node) openPlacer() ([]partition.Slice, error) {
	if n.charter.Mode != partition.ModeGeo {
		return n.charter.AllSlices(nil)
	}
	g, err := n.gazetteer()
	if err != nil {
		return nil, err
	}
	if own := g.Digest(); own != n.charter.Gazetteer {
		return nil, fmt.Errorf("the swarm %s uses gazetteer %s, this program %s", n.charter.Name, n.charter.Gazetteer,
			own)
	}
	n.placer = geoplace.New(geoplace.Options{Charter: n.charter, Store: n.store, Logger: n.log,
		Judge: geo.NewJudge(g, n.charter.CellLevel)})
	return n.charter.AllSlices(n.placer.Slices())
}

// withGazetteer returns c. In geo mode it adds this program's gazetteer and the cell level (0: the
// default).
func withGazetteer(c partition.Charter, level int) (partition.Charter, error) {
	if c.Mode != partition.ModeGeo {
		return c, nil
	}
	g, err := geo.Open()
	if err != nil {
		return c, err
	}
	c.CellLevel, c.Gazetteer = cmp.Or(level, geo.CellLevel), g.Digest()
	return c, nil
}

// target returns the slice of an item: the one in which it was placed, or its hash slice.
func (n *Node) target(it store.Admission) partition.Slice {
	if it.In != 0 {
		return it.In
	}
	return n.store.SliceOf(it.Key)
}

// moved returns where the unit of an item of a geo slice has moved to, or nil if it is still here.
func (n *Node) moved(it store.Admission) *store.Placement {
	if n.placer == nil || it.In == 0 {
		return nil
	}
	p, err := n.store.Queue.PlacementOf(it.In, it.Key)
	if err != nil || p.To == it.In || p.Gen <= it.Gen {
		return nil // if unknown now, the next link finds it
	}
	return &p
}

// learn records that r's unit has moved on from r.To, as the owner of r.To reports. A false report
// harms only that owner's own units.
func (n *Node) learn(r store.OutboxRow, to partition.Slice, gen uint64) {
	if n.placer == nil || r.To.IsHash() || !n.placer.Has(to) {
		return
	}
	had, err := n.store.Queue.PlacementOf(r.Slice, r.Key)
	if err != nil || had.To != r.To || gen <= had.Gen {
		return
	}
	had.To, had.Gen = to, gen
	if err := n.store.Queue.Learn(r.Slice, r.Key, had); err != nil {
		n.log.Warn("placement not learnt", "key", r.Key, "err", err)
	}
}

// paceOf converts a Pace from its form in a message.
func paceOf(p *wire.Pace) (pace store.Pace, gen uint64) {
	ms := func(v uint64) time.Duration {
		return time.Duration(min(v, uint64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	pace = store.Pace{Wait: ms(p.GetWaitMs()), BackOff: ms(p.GetBackOffMs()),
		Fetched: int64(min(p.GetFetched(), 1<<40))}
	if p.GetNextMs() > 0 {
		pace.Next = time.UnixMilli(p.GetNextMs()).UTC()
	}
	return pace, min(p.GetGen(), store.MaxGen)
}

// wirePace converts the Pace of an item to its form in a message, or returns nil for a hash slice.
func wirePace(a store.Admission) *wire.Pace {
	if a.In == 0 {
		return nil
	}
	w := &wire.Pace{Gen: a.Gen, WaitMs: uint64(a.Pace.Wait / time.Millisecond),
		BackOffMs: uint64(a.Pace.BackOff / time.Millisecond), Fetched: uint64(max(a.Pace.Fetched, 0))}
	if !a.Pace.Next.IsZero() {
		w.NextMs = a.Pace.Next.UnixMilli()
	}
	return w
}
