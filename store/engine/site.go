package engine

import (
	"github.com/cockroachdb/pebble/v2"
)

// Unsynced applies the batch without a sync: a crash of the machine may lose it,
// but never a part of it, nor one that a later synced batch rests on.
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
