package engine

import (
	"github.com/cockroachdb/pebble/v2"
)

// Unsynced applies the batch without a sync. A crash of the machine may lose the batch, but never
// only a part of it. It also cannot lose a batch on which a later synced batch is based.
func (t *Batch) Unsynced() error {
	if err := t.finish(); err != nil {
		return err
	}
	if t.Rows.Empty() {
		return nil
	}
	if err := t.s.DB.Apply(t.Rows, pebble.NoSync); err != nil {
		return err
	}
	t.visible()
	return nil
}
