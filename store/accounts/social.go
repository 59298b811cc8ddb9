package accounts

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Social writes what c contains in addition to its record. at is the Key's new time of fetch, which
// grows from one commit to the next.
func (t *Batch) Social(id format.SiteID, c store.Commit, at time.Time) error {
	if err := t.posts(id, c); err != nil {
		return err
	}
	for _, p := range c.Lists {
		if err := t.list(id, p, c.Now); err != nil {
			return fmt.Errorf("list %.100q: %w", p.List, err)
		}
		if err := t.TrimItems(format.TabWalk, id, p.List, store.MaxWalks); err != nil {
			return err
		}
	}
	for _, g := range c.Gaps {
		if err := t.gap(id, c.Key, g, c.Now); err != nil {
			return err
		}
	}
	if len(c.Gaps) > 0 {
		if err := t.TrimItems(format.TabGap, id, c.Key, store.MaxKeyGaps); err != nil {
			return err
		}
	}
	if c.Checkpoint != nil {
		return t.Item(format.ItemID{SiteID: id, Table: format.TabCheckpoint, Key: c.Key}, format.Checkpoint{At: at,
			Bytes: c.Checkpoint}.Encode())
	}
	return nil
}
