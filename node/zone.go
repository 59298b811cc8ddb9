package node

import (
	"context"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// How one peer works across zones. In a swarm of one zone, which is the default, nothing here has
// an effect.
//
//   - Replicas of a slice are ranked among the members of its zone (placement). When a zone splits,
//     an owner outside hands the slice over by the ordinary rule. Until then it stays in the wider
//     membership.
//   - Links go to the owner that dht.FindOwner returns. The lookup runs beside the forwarder, which
//     leaves the rows in the outbox meanwhile (I2, I3).
//   - A query asks one member of each other zone for that zone. That member asks the members there
//     and answers for each slice, or reports it missing (I8).
const (
	lookupQueue   = 1024 // slices whose owner is wanted; further ones are requested again
	lookupWorkers = 8
)

// outside reports whether s is a hash slice of another zone. Geo slices are in no zone.
func outside(s partition.Slice, zone partition.Zone) bool { return s.IsHash() && !zone.Has(s) }

// holdsOutside reports whether this peer keeps slices outside zone.
func (n *Node) holdsOutside(zone partition.Zone) bool {
	for _, s := range n.slices {
		if outside(s, zone) && n.quorum.ReplicaSet(s).Has(n.id) {
			return true
		}
	}
	return false
}

// laneOf returns the peer to which links of s go. It returns "" while the peer is not known, and
// starts a lookup. It does not wait.
func (n *Node) laneOf(s partition.Slice) string {
	if !n.swarm.Foreign(s) {
		return n.quorum.Owner(s)
	}
	if o, ok := n.dht.KnownOwner(s); ok {
		return o.ID()
	}
	select {
	case n.lookups <- s:
	default: // the row stays in the outbox and requests it again
	}
	return ""
}

// ownerAnywhere returns the owner and the replicas of s. Unlike laneOf, it waits. If it finds no
// peer for a slice of another zone, it returns the last ones known.
func (n *Node) ownerAnywhere(ctx context.Context, s partition.Slice) (string, []string) {
	if n.swarm.Foreign(s) {
		if o, err := n.dht.FindOwner(ctx, s); err == nil {
			return o.ID(), o.Replicas
		}
	}
	return n.quorum.Owner(s), n.replicas(s)
}

// runZones looks up owners in other zones until ctx ends.
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

// doubt forgets owner as the owner of the slices of batch that it did not answer for, or answered
// with not-owner. answers is nil if there was no response.
func (n *Node) doubt(owner string, batch []store.OutboxRow, answers []wire.ForwardAck_Answer) {
	for i, r := range batch {
		if n.swarm.Foreign(r.To) && (i >= len(answers) || answers[i] == wire.ForwardAck_ANSWER_NOT_OWNER) {
			n.dht.ForgetOwner(r.To, owner)
		}
	}
}

// whose returns the slice that a peer asks about.
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
