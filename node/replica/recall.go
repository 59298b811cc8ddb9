package replica

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

// RunRecall tells the owners of slices of which this peer lost rows, until it has them.
func (r *Repairs) RunRecall(ctx context.Context) error {
	for at := 0; call.Sleep(ctx, recallEvery, nil); {
		robbed := r.o.Quorum.Robbed()
		for range min(len(robbed), maxRecalled) {
			s := robbed[at%len(robbed)]
			at++
			owner := r.o.Quorum.Owner(s)
			if !r.o.Placement.Alive(owner) {
				continue
			}
			// The answer is a refusal; what follows is a copy.
			_, err := r.o.Peers.Call(ctx, owner,
				&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s)}}})
			r.o.Logger.Debug("the owner is told that rows were lost", "slice", s, "owner", owner, "err", err)
		}
	}
	return ctx.Err()
}

// Lacking says whether from, which asks this peer to compare s, is a replica of a slice owned here.
func (r *Repairs) Lacking(s partition.Slice, from string) bool {
	c := r.o.Quorum.ReplicaSet(s)
	return c.Owner == r.o.Self && from != r.o.Self && c.Has(from)
}
