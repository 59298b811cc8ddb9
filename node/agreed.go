package node

import (
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// Agreed is who keeps and owns s by the newest ReplicaSet that this peer knows.
func (n *Node) Agreed(s partition.Slice) quorum.ReplicaSet { return n.quorum.ReplicaSet(s) }

// Acting lists the slices in which this peer may begin a fetch now.
func (n *Node) Acting() []partition.Slice { return n.quorum.Acting(time.Now()) }

// Slices lists all slices of the swarm, in order. It must not be changed.
func (n *Node) Slices() []partition.Slice { return n.slices }

// replicas are the replicas of s as known here, the owner first.
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

// assignment gives every slice to one live peer that keeps it, the owner when it
// lives (I8).
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
