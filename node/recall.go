package node

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// An owner asks a replica where its copy stands when something is agreed, and then trusts
// its own list: a replica that lost rows while it was down would get no copy before the
// slice is written to. So it says so itself, by asking the owner for digests, as only an
// owner does of a replica.
const (
	recallEvery = 5 * time.Second
	maxRecalled = 64 // slices of one round
)

// runRecall tells the owners of slices of which this peer lost rows, until it has them.
func (n *Node) runRecall(ctx context.Context) error {
	for at := 0; call.Sleep(ctx, recallEvery, nil); {
		robbed := n.quorum.Robbed()
		for range min(len(robbed), maxRecalled) {
			s := robbed[at%len(robbed)]
			at++
			owner := n.quorum.Owner(s)
			if !n.placement.Alive(owner) {
				continue
			}
			// The answer is a refusal; what follows is a copy.
			_, err := n.call(ctx, owner,
				&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s)}}})
			n.log.Debug("the owner is told that rows were lost", "slice", s, "owner", owner, "err", err)
		}
	}
	return ctx.Err()
}

// lacking says whether from, which asks this peer to compare s, is a replica of a slice owned here.
func (n *Node) lacking(s partition.Slice, from string) bool {
	c := n.quorum.ReplicaSet(s)
	return c.Owner == n.id && from != n.id && c.Has(from)
}
