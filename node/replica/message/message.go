// Package message converts ReplicaSets and rows to messages between peers, and back.
package message

import (
	"context"
	"slices"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Peers sends requests to other peers. A refusal is returned as an error (package call). A call to
// a member that has vanished does not wait.
type Peers interface {
	Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error)
}

// BallotTimeout is how long one peer may take to answer a ballot, or a message of ReplicaSets.
const BallotTimeout = 2 * time.Second

// Tell sends ReplicaSets to a peer, which may ignore them.
func Tell(ctx context.Context, p Peers, peer string, all []quorum.SliceReplicas) error {
	ctx, cancel := context.WithTimeout(ctx, BallotTimeout)
	defer cancel()
	for page := range slices.Chunk(all, wire.MaxConfigs) {
		req := &wire.Configs{Decided: Sets(page)}
		if _, err := p.Call(ctx, peer, &wire.Request{Body: &wire.Request_Configs{Configs: req}}); err != nil {
			return err
		}
	}
	return nil
}

// OfSlice reports whether c is nil or a ReplicaSet of s. An answer about one slice must not report
// another slice, which the sender may not keep.
func OfSlice(c *wire.Config, s partition.Slice) bool { return c == nil || c.Slice == uint64(s) }

// SetOf converts a ReplicaSet from its form in a message.
func SetOf(c *wire.Config) quorum.SliceReplicas {
	out := quorum.SliceReplicas{Slice: partition.Slice(c.GetSlice()), ReplicaSet: quorum.ReplicaSet{Epoch: c.GetEpoch(),
		Fork: c.GetFork(), Gen: c.GetGen(),
		Owner: c.GetOwner(), Replicas: c.GetKeepers(), Hearsay: c.GetHeard()}}
	for _, s := range c.GetStarts() {
		out.Starts = append(out.Starts, quorum.Start{Gen: s.Gen, Pos: s.Pos})
	}
	return out
}

// Set converts the ReplicaSet of s to its form in a message.
func Set(s partition.Slice, c quorum.ReplicaSet) *wire.Config {
	out := &wire.Config{Slice: uint64(s), Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Owner: c.Owner, Keepers: c.Replicas,
		Heard: c.Hearsay}
	for _, x := range c.Starts {
		out.Starts = append(out.Starts, &wire.Start{Gen: x.Gen, Pos: x.Pos})
	}
	return out
}

// SetsOf converts each ReplicaSet with SetOf.
func SetsOf(all []*wire.Config) []quorum.SliceReplicas {
	out := make([]quorum.SliceReplicas, len(all))
	for i, c := range all {
		out[i] = SetOf(c)
	}
	return out
}

// Sets converts each ReplicaSet with Set.
func Sets(all []quorum.SliceReplicas) []*wire.Config {
	out := make([]*wire.Config, len(all))
	for i, c := range all {
		out[i] = Set(c.Slice, c.ReplicaSet)
	}
	return out
}

// Rows converts rows to their form in a message.
func Rows(rows []store.Row) []*wire.Row {
	out := make([]*wire.Row, len(rows))
	for i, r := range rows {
		out[i] = &wire.Row{Key: r.Key, Value: r.Value}
	}
	return out
}

// RowsOf converts rows from their form in a message.
func RowsOf(rows []*wire.Row) []store.Row {
	out := make([]store.Row, len(rows))
	for i, r := range rows {
		out[i] = store.Row{Key: r.Key, Value: r.Value}
	}
	return out
}
