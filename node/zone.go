package node

import (
	"context"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
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
//
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
