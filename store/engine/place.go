package engine

import (
	"encoding/binary"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Where notes in which geo slice the record of k is; nowhere forgets it when
// that slice goes. The row is this store's own and not handed over.
func (t *Batch) Where(sl partition.Slice, k partition.Key) error {
	if sl.IsHash() {
		return nil
	}
	return t.Rows.Set(format.WhereKey(k), binary.BigEndian.AppendUint64(nil, uint64(sl)), nil)
}

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
