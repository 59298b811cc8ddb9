package node

import (
	"context"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/node/call"
)

// A table that nobody reads may be damaged for months, and its copies may go meanwhile. So
// all of them are read now and then, slowly.
const (
	metaScrubbed = "scrubbed" // when all tables were read last, or the first time is counted from
	scrubRate    = 8 << 20    // bytes a second
)

// runScrub reads all tables of the store every Options.Scrub. What it finds ends Run: the
// store is mended when it is opened again.
func (n *Node) runScrub(ctx context.Context) error {
	for {
		last, err := n.scrubbed()
		if err != nil {
			return err
		}
		if !call.Sleep(ctx, time.Until(last.Add(n.o.Scrub)), nil) {
			return ctx.Err()
		}
		begun := time.Now()
		if err := n.store.Scrub(ctx, scrubRate); err != nil {
			return err
		}
		n.log.Info("all tables of the store were read", "took", time.Since(begun))
		if err := n.noteScrub(begun); err != nil {
			return err
		}
	}
}

// scrubbed is when the time to the next scrub began.
func (n *Node) scrubbed() (at time.Time, err error) {
	b, err := n.store.Meta(metaScrubbed)
	if err == nil && at.UnmarshalText(b) == nil && !at.After(time.Now()) {
		return at, nil
	}
	if err != nil && !isNotExist(err) {
		return at, err
	}
	at = time.Now()
	return at, n.noteScrub(at)
}

func (n *Node) noteScrub(at time.Time) error {
	b, err := at.UTC().MarshalText()
	if err == nil {
		err = n.store.SetMeta(metaScrubbed, b)
	}
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	return nil
}
