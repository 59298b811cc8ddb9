package replica

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// An owner asks a replica for its progress when something is agreed, and then trusts its own list.
// A replica that lost rows while it was down would get no copy before the next write to the slice.
// So the replica reports it: it sends the owner a request for digests, which normally only an owner
// sends to a replica.
const (
	recallEvery = 5 * time.Second
	maxRecalled = 64 // slices in one round
)

// RunRecall tells the owners about slices of which this peer lost rows, until it has them again.
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
			// The response is a refusal. A copy follows.
			_, err := r.o.Peers.Call(ctx, owner,
				&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s)}}})
			r.o.Logger.Debug("the owner is told that rows were lost", "slice", s, "owner", owner, "err", err)
		}
	}
	return ctx.Err()
}

// Lacking reports whether this peer owns s and from is another replica of s. Such a replica asks
// for a comparison only when it lacks rows.
func (r *Repairs) Lacking(s partition.Slice, from string) bool {
	c := r.o.Quorum.ReplicaSet(s)
	return c.Owner == r.o.Self && from != r.o.Self && c.Has(from)
}
