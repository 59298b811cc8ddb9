package node

import (
	"context"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
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
	if !n.swarm.Foreign(s) {
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
	if n.swarm.Foreign(s) {
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
		if n.swarm.Foreign(r.To) && (i >= len(answers) || answers[i] == wire.ForwardAck_ANSWER_NOT_OWNER) {
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
