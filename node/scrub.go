package node

import (
	"context"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/node/call"
)

// A table that is not read may be damaged for months, and its copies may be lost meanwhile. So all
// tables are read now and then, slowly.
const (
	metaScrubbed = "scrubbed" // when all tables were last read, or when the first period started
	scrubRate    = 8 << 20    // bytes a second
)

// runScrub reads all tables of the store every Options.Scrub. Damage that it finds ends Run. The
// next start repairs the store.
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

// scrubbed returns when the time to the next scrub started.
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

// noteScrub stores at as the start of the time to the next scrub.
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
