package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

// whyMissing says in words why a peer that responded has no answer for some of the slices. It
// returns one entry for each reason.
func (en *Engine) whyMissing(peer string, missing []partition.Slice) []api.Missing {
	count := map[string]int{}
	for _, sl := range missing {
		c, gone := en.o.Quorum.ReplicaSet(sl), 0
		for _, k := range c.Replicas {
			if k != en.o.ID && !en.swarm.Alive(k) {
				gone++
			}
		}
		switch {
		case peer == en.o.ID && en.o.Quorum.Has(sl): // independent of the other replicas
			count["being read into its index"]++
		case gone == 0:
			count["still being copied to it, or read into its index"]++
		case len(c.Replicas)-gone < c.Quorum():
			why := fmt.Sprintf("%d of the %d peers that keep these slices are gone; they are waited for (--orphan-after %s)",
				gone, len(c.Replicas), en.o.OrphanAfter)
			count[why]++
		default:
			count[fmt.Sprintf("%d of the %d peers that keep these slices are gone; another is taking over", gone,
				len(c.Replicas))]++
		}
	}
	out := make([]api.Missing, 0, len(count))
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		out = append(out, api.Missing{Peer: peer, Reason: reason, Slices: count[reason]})
	}
	return out
}

// Reason says in words why a peer is missing from an answer.
func (en *Engine) Reason(ctx context.Context, peer string, err error) string {
	if peer == "" {
		return "no member was found that owns these slices"
	}
	if since, gone := en.swarm.Vanished(peer); gone {
		return fmt.Sprintf("vanished %s ago; its slices are kept for it for %s",
			time.Since(since).Round(time.Second), en.o.OrphanAfter)
	}
	// The peer has been gone since before this peer started. For other zones, this peer does not
	// know which peers are alive.
	if !en.swarm.Alive(peer) && en.swarm.Zone().HasPeer(peer) && slices.Contains(en.o.Quorum.Replicas(), peer) {
		return fmt.Sprintf("is not here; it is waited for (--orphan-after %s), then others take its slices",
			en.o.OrphanAfter)
	}
	switch {
	case ctx.Err() != nil:
		return "did not answer in time"
	case errors.Is(err, dht.ErrNoPeer):
		return "cannot be reached; it is not known yet whether it is gone"
	case errors.Is(err, errBroken):
		return "gave no answer, its connection broke; it is not known yet whether it is gone"
	}
	return err.Error()
}

// errBroken means that a call ended without a response before its deadline.
var errBroken = errors.New("no answer")
