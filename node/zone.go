package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// Zones, as far as one peer works across them. In a swarm of one zone, which is
// the default, nothing here does anything.
//
//   - Replicas of a slice are ranked among the members of its zone (placement);
//     when a zone splits, the owner outside hands the slice over by the ordinary
//     rule, and stays in the wider membership until it has.
//   - Links go to the owner that dht.FindOwner names. It is looked up beside the
//     forwarder, which leaves the rows in the outbox meanwhile (I2, I3).
//   - A query asks one member of each other zone for that zone; it asks the
//     members there and answers for each slice, or names it missing (I8).
const (
	lookupQueue   = 1024 // slices whose owner is wanted; more are asked for again
	lookupWorkers = 8
)

// foreign says whether s belongs to another zone than this peer, and is not
// still in its own hands.
func (n *Node) foreign(s partition.Slice) bool {
	if n.charter.ZoneMax == 0 {
		return false
	}
	zone := n.dht.Zone()
	return outside(s, zone) && n.quorum.Owner(s) != n.id
}

// outside says whether s is a hash slice of another zone; geo slices are in none.
func outside(s partition.Slice, zone partition.Zone) bool { return s.IsHash() && !zone.Has(s) }

// holdsOutside says whether this peer keeps slices outside zone.
func (n *Node) holdsOutside(zone partition.Zone) bool {
	for _, s := range n.slices {
		if outside(s, zone) && n.quorum.ReplicaSet(s).Has(n.id) {
			return true
		}
	}
	return false
}

// laneOf is whom links of s go to; "" while it is not known, and then it is
// being looked up. It does not wait.
func (n *Node) laneOf(s partition.Slice) string {
	if !n.foreign(s) {
		return n.quorum.Owner(s)
	}
	if o, ok := n.dht.KnownOwner(s); ok {
		return o.ID()
	}
	select {
	case n.lookups <- s:
	default: // the row stays in the outbox and asks again
	}
	return ""
}

// ownerAnywhere is the owner and the replicas of s, as laneOf, but it waits. Of
// another zone's slice that nobody is found for, they are those last heard of.
func (n *Node) ownerAnywhere(ctx context.Context, s partition.Slice) (string, []string) {
	if n.foreign(s) {
		if o, err := n.dht.FindOwner(ctx, s); err == nil {
			return o.ID(), o.Replicas
		}
	}
	return n.quorum.Owner(s), n.replicas(s)
}

// runZones looks up owners in other zones.
func (n *Node) runZones(ctx context.Context) error {
	done := make(chan struct{})
	for range lookupWorkers {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-ctx.Done():
					return
				case s := <-n.lookups:
					if _, err := n.dht.FindOwner(ctx, s); err == nil {
						n.forward.notify()
					} else if ctx.Err() == nil {
						n.log.Debug("owner in another zone", "slice", s.String(), "err", err)
					}
				}
			}
		}()
	}
	for range lookupWorkers {
		<-done
	}
	return ctx.Err()
}

// doubt forgets owner for the slices of batch that it did not answer for, or
// said that it does not own. answers are nil when there was none.
func (n *Node) doubt(owner string, batch []store.OutboxRow, answers []wire.ForwardAck_Answer) {
	for i, r := range batch {
		if n.foreign(r.To) && (i >= len(answers) || answers[i] == wire.ForwardAck_ANSWER_NOT_OWNER) {
			n.dht.ForgetOwner(r.To, owner)
		}
	}
}

// whose is the slice that a peer asks about.
func (n *Node) whose(w *wire.WhoOwns) (partition.Slice, error) {
	if w.Slice != 0 {
		return partition.Slice(w.Slice), nil
	}
	k, err := partition.KeyFromWire(w.Key)
	if err != nil {
		return 0, err
	}
	return n.store.SliceOf(k), nil
}

// split takes the slices of other zones out of assign and gives each to a member
// of its zone. Those of a zone that nobody could be found of stay with "".
func (n *Node) split(ctx context.Context, assign map[string][]partition.Slice) map[string]partition.Zone {
	zone := n.dht.Zone()
	if n.charter.ZoneMax == 0 || zone.Depth() == 0 {
		return nil
	}
	var rest []partition.Slice
	for id, ss := range assign {
		var near []partition.Slice
		for _, s := range ss {
			if n.foreign(s) {
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
		o, err := n.dht.FindOwner(ctx, rest[0])
		id := ""
		if err == nil {
			id = o.ID()
			zones[id] = o.Zone
		} else { // nobody of about that zone
			o.Zone = partition.ZoneOfSlice(rest[0], zone.Depth())
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

// splitUntil is split for as long as a query can wait for it.
func (n *Node) splitUntil(ctx context.Context, assign map[string][]partition.Slice,
	until time.Time) map[string]partition.Zone {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return n.split(ctx, assign)
}

func wireStats(st index.Stats) (*wire.TermStats, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("query: statistics: %w", err)
	}
	return &wire.TermStats{Docs: st.Docs, Opaque: b}, nil
}

// serveZoneQuery answers for a whole zone by asking the members of it, for a
// peer of another one. What is not of this peer's own zone is missing.
func (n *Node) serveZoneQuery(ctx context.Context, q *wire.Query) (*wire.QueryAnswer, error) {
	sc := &scatter{n: n, q: q, assign: n.assignment(), failed: map[string]api.Missing{},
		unscored: map[partition.Slice]bool{}, given: q.Stats}
	sc.lost = n.withinZone(sc.assign, partition.Zone(q.Zone))
	until := time.Now().Add(n.o.QueryTimeout / 2)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	sc.round(ctx, q.StatsOnly, until)
	a := &wire.QueryAnswer{Total: sc.total, Stale: sc.stale, Faceted: q.Facets != nil}
	for peer := range sc.failed {
		sc.lost = append(sc.lost, sc.assign[peer]...)
	}
	for _, s := range sc.lost {
		a.Missing = append(a.Missing, uint64(s))
	}
	if q.StatsOnly {
		var err error
		a.Stats, err = wireStats(sc.stats)
		return a, err
	}
	for _, h := range mergeHits(sc.hits, 0, int(min(q.Limit, MaxQueryHits))) {
		a.Hits = append(a.Hits, wireHit(h))
	}
	return a, nil
}

// withinZone leaves in assign what is asked for and of this peer's own zone; lost is
// what is asked for and is not.
func (n *Node) withinZone(assign map[string][]partition.Slice, asked partition.Zone) (lost []partition.Slice) {
	own := n.dht.Zone()
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

// wireHit is a hit on its way on: the inverse of hitOf.
func wireHit(h api.Hit) *wire.Hit {
	w := &wire.Hit{Key: string(h.Key), Post: h.Post, Score: h.Score, Kind: h.Kind, Title: h.Title, Snippet: h.Snippet,
		Lang: h.Lang, Place: h.Place,
		Peer: h.Peer, FetchedMs: h.FetchedAt.UnixMilli(), Period: h.Period, Verdict: h.Verdict, Print: h.Print}
	if h.Time != nil {
		w.TimeMs = h.Time.UnixMilli()
	}
	if math.IsNaN(w.Score) || math.IsInf(w.Score, 0) {
		w.Score = 0
	}
	return w
}
