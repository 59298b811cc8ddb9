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
