package node

import (
	"context"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// maxQuarantine is the most Keys in quarantine that one answer names. Status counts all.
const maxQuarantine = 1000

// release ends the quarantine of a Key. On return this is durable at a majority of the replicas.
func (n *Node) release(ctx context.Context, k partition.Key, by string) error {
	return n.wake(ctx, k, store.VerdictRelease, by)
}

// again makes the owner visit a known Key now. It works like release.
func (n *Node) again(ctx context.Context, k partition.Key) error {
	return n.wake(ctx, k, store.VerdictAgain, store.VerdictAgain)
}

// wake sends a person's request to visit a Key to the Key's owner.
func (n *Node) wake(ctx context.Context, k partition.Key, word, by string) error {
	o := store.Override{V: store.OverrideVersion, Key: k, Verdict: word, By: by, At: time.Now().UTC(), Peer: n.id}
	sl := n.store.SliceOf(k)
	for hop := 0; hop <= maxPlaced; hop++ {
		known, placed, err := n.overruleAt(ctx, sl, o)
		switch {
		case err != nil:
			return err
		case known:
			return nil
		case placed == 0:
			return fmt.Errorf("%w: %s is not known", api.ErrNotFound, k)
		}
		if sl, err = n.swarm.SliceFrom(uint64(placed), k); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return fmt.Errorf("%w: %s moves", api.ErrUnavailable, k)
}

// quarantined returns the Keys in quarantine of the slices owned here, at most maxQuarantine.
func (n *Node) quarantined(ctx context.Context) (api.Quarantine, error) {
	out := api.Quarantine{Keys: []api.Quarantined{}}
	for _, sl := range n.quorum.Owned() {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if n.store.SliceStats(sl).Quarantined == 0 {
			continue
		}
		err := n.store.Queue.Quarantined(sl, func(k partition.Key, reason string) (bool, error) {
			if len(out.Keys) >= maxQuarantine {
				out.More = true
				return false, nil
			}
			out.Keys = append(out.Keys, api.Quarantined{Key: k, Reason: reason})
			return true, nil
		})
		if err != nil || out.More {
			return out, err
		}
	}
	return out, nil
}
