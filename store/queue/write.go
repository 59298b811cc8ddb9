package queue

import (
	"bytes"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/format"
)

// KeyState returns the row of k on disk. It does not see what this batch has written: the caller
// must keep track of that.
func (t *Batch) KeyState(id format.SiteID, k partition.Key) (format.KeyState, error) {
	v, err := t.s.engine.Get(format.KeyRow(format.TabKey, id, k))
	if err != nil {
		return format.KeyState{}, err
	}
	return format.DecodeKeyState(v)
}

// Put writes the row of k and its row in the due index, and counts it. old is nil for a new Key.
func (t *Batch) Put(id format.SiteID, k partition.Key, old *format.KeyState, now format.KeyState) error {
	c, err := t.Count(id)
	if err != nil {
		return err
	}
	if old != nil {
		c.State[old.State]--
		if !old.At.IsZero() {
			c.Due--
			_ = t.Rows.Delete(format.DueKey(id, *old), nil)
		}
	}
	c.State[now.State]++
	if !now.At.IsZero() {
		c.Due++
		row := format.DueKey(id, now)
		_ = t.Rows.Set(row, []byte(k), nil)
		if first := t.due[id]; first == nil || bytes.Compare(row, first) < 0 {
			t.due[id] = row
		}
	}
	row := format.KeyRow(format.TabKey, id, k)
	value := now.Encode()
	t.Name(id.Slice, format.NameKey, row[9:], len(value), now.Fetched)
	return t.Rows.Set(row, value, nil)
}
