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
