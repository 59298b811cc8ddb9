package node

import (
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// Agreed returns the newest ReplicaSet of s that this peer knows.
func (n *Node) Agreed(s partition.Slice) quorum.ReplicaSet { return n.quorum.ReplicaSet(s) }

// Acting returns the slices in which this peer may start a fetch now.
func (n *Node) Acting() []partition.Slice { return n.quorum.Acting(time.Now()) }

// Slices returns all slices of the swarm, in order. The caller must not change it.
func (n *Node) Slices() []partition.Slice { return n.slices }

// replicas returns the replicas of s that this peer knows, the owner first.
func (n *Node) replicas(s partition.Slice) []string {
	c := n.quorum.ReplicaSet(s)
	out := []string{c.Owner}
	for _, k := range c.Replicas {
		if k != c.Owner {
			out = append(out, k)
		}
	}
	return out
}

// assignment maps live peers to slices. Each slice is assigned to its owner, or, if the owner is
// not alive, to another live replica (I8).
func (n *Node) assignment() map[string][]partition.Slice {
	out := n.quorum.Assignment()
	for id, ss := range out {
		if n.placement.Alive(id) || id == n.id {
			continue
		}
		var left []partition.Slice
		for _, s := range ss {
			other := ""
			for _, k := range n.quorum.ReplicaSet(s).Replicas {
				if other == "" && n.placement.Alive(k) {
					other = k
				}
			}
			if other == "" {
				left = append(left, s)
			} else {
				out[other] = append(out[other], s)
			}
		}
		if out[id] = left; len(left) == 0 {
			delete(out, id)
		}
	}
	return out
}
