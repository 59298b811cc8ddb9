package accounts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// State returns the state of an item as this batch leaves it so far, or nil.
func (t *Batch) State(id format.ItemID) ([]byte, error) {
	row := id.Row()
	if now, ok := t.items[string(row)]; ok {
		return now, nil
	}
	v, err := t.s.engine.Get(row)
	if err != nil {
		return nil, engine.IgnoreAbsent(err)
	}
	return t.s.engine.Packer.OpenItem(id.Table, v)
}

// Item joins the state now to the state that exists. It writes the result if that has changed.
func (t *Batch) Item(id format.ItemID, now []byte) error {
	old, err := t.State(id)
	if err != nil {
		return fmt.Errorf("row %q: %w", id.Row(), err)
	}
	if old != nil {
		if now, err = format.JoinItem(id, old, now); err != nil {
			return fmt.Errorf("row %q: %w", id.Row(), err)
		}
		if bytes.Equal(old, now) {
			return nil
		}
	}
	row := id.Row()
	_, again := t.items[string(row)]
	if t.items == nil {
		t.items = map[string][]byte{}
	}
	t.items[string(row)] = now
	value := t.s.engine.Packer.CloseItem(id.Table, now)
	t.Name(id.Slice, byte(id.Table), row[9:], len(value), time.Time{})
	if err := t.Rows.Set(row, value, nil); err != nil || again {
		return err
	}
	switch id.Table {
	case format.TabPost:
		if old == nil {
			n, err := t.Count(id.SiteID)
			if err != nil {
				return err
			}
			n.Posts++
		}
		if err := t.Where(id.Slice, id.Key); err != nil {
			return err
		}
		return t.ChangePost(id.Key, id.Part)
	case format.TabWalk:
		return t.Where(id.Slice, id.Key)
	}
	return nil
}

// TrimItems keeps the keep greatest items of k and deletes the others.
func (t *Batch) TrimItems(tab format.Table, id format.SiteID, k partition.Key, keep int) error {
	prefix := format.ItemKey(tab, id, k)
	var rows [][]byte
	err := t.s.engine.Scan(prefix, format.After(prefix), func(key, _ []byte) (bool, error) {
		rows = append(rows, bytes.Clone(key))
		return true, nil
	})
	if err != nil || len(rows)+len(t.items) <= keep {
		return err
	}
	there := make(map[string]bool, len(rows))
	for _, r := range rows {
		there[string(r)] = true
	}
	for row := range t.items {
		if bytes.HasPrefix([]byte(row), prefix) && !there[row] {
			rows = append(rows, []byte(row))
		}
	}
	slices.SortFunc(rows, bytes.Compare)
	for _, row := range rows[:max(len(rows)-keep, 0)] {
		if err := t.Rows.Delete(row, nil); err != nil {
			return err
		}
	}
	return nil
}

// DropItems deletes the items of k and of its lists, because k is placed in another slice and
// fetched there. A list stays when it is itself a Key with a row here.
func (t *Batch) DropItems(id format.SiteID, k partition.Key) error {
	keys := []partition.Key{k}
	if k.Kind() == partition.KindAccount {
		for _, l := range []partition.Key{k + "/followers", k + "/following"} {
			_, err := t.s.engine.Get(format.KeyRow(format.TabKey, id, l))
			if errors.Is(err, store.ErrNotExist) {
				keys = append(keys, l)
			} else if err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		for _, tab := range format.ItemTables() {
			if err := t.dropTable(tab, id, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Batch) dropTable(tab format.Table, id format.SiteID, k partition.Key) error {
	prefix := format.ItemKey(tab, id, k)
	rows := map[string]bool{} // true = on disk
	err := t.s.engine.Scan(prefix, format.After(prefix), func(key, _ []byte) (bool, error) {
		rows[string(key)] = true
		return true, nil
	})
	if err != nil {
		return err
	}
	for row := range t.items {
		if bytes.HasPrefix([]byte(row), prefix) {
			rows[row] = rows[row] || false
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if tab == format.TabPost {
		n, err := t.Count(id)
		if err != nil {
			return err
		}
		n.Posts -= int64(len(rows)) // Item counted those that are not on disk yet
		for row := range rows {
			if err := t.ChangePost(k, row[len(prefix):]); err != nil {
				return err
			}
		}
	}
	for row := range rows {
		delete(t.items, row)
		if err := t.Rows.Delete([]byte(row), nil); err != nil {
			return err
		}
	}
	if tab == format.TabAttempt {
		return nil
	}
	return t.Nowhere(id.Slice, k)
}

// ItemsGone prepares the deletion of all of sl. It logs the posts as changes, so that the index
// deletes them, and it deletes the rows that say where the Keys are.
func (t *Batch) ItemsGone(sl partition.Slice) error {
	for _, tab := range []format.Table{format.TabPost, format.TabWalk} {
		p := format.SlicePrefix(tab, sl)
		var of partition.Key
		err := t.s.engine.Scan(p, format.After(p), func(key, _ []byte) (bool, error) {
			id, err := format.SplitItem(tab, key)
			if err == nil && id.Key != of {
				err = t.Nowhere(sl, id.Key)
				of = id.Key
			}
			if err == nil && tab == format.TabPost {
				err = t.ChangePost(id.Key, id.Part)
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
