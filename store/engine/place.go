package engine

import (
	"encoding/binary"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Where notes the geo slice sl in which the record and the items of k are stored. Nowhere deletes
// this row when they leave that slice. The row belongs to this store only and is not handed over.
func (t *Batch) Where(sl partition.Slice, k partition.Key) error {
	if sl.IsHash() {
		return nil
	}
	return t.Rows.Set(format.WhereKey(k), binary.BigEndian.AppendUint64(nil, uint64(sl)), nil)
}

// Nowhere deletes the row that Where wrote, unless it names another slice than sl by now.
func (t *Batch) Nowhere(sl partition.Slice, k partition.Key) error {
	if sl.IsHash() {
		return nil
	}
	at, err := t.s.WhereIs(k)
	if err != nil || at != sl {
		return IgnoreAbsent(err)
	}
	return t.Rows.Delete(format.WhereKey(k), nil)
}

// WhereIs returns the geo slice in which the record of k is stored. It returns ErrNotExist when
// there is none, and always outside geo mode.
func (s *Engine) WhereIs(k partition.Key) (partition.Slice, error) {
	if s.charter.Mode != partition.ModeGeo {
		return 0, store.ErrNotExist
	}
	v, err := s.Get(format.WhereKey(k))
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, format.ErrBadRow
	}
	return partition.Slice(binary.BigEndian.Uint64(v)), nil
}
