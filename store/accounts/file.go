package accounts

import (
	"bytes"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Names notes that r replaces old in this batch, for the files of their account. Either may be nil.
func (t *Batch) Names(old, r *store.Record) {
	if old != nil && len(old.Media) > 0 {
		if t.Left == nil {
			t.Left = map[partition.Key]bool{}
		}
		old.Files(func(k partition.Key) { t.Left[k] = true })
	}
	r.Files(func(k partition.Key) {
		if t.Named == nil {
			t.Named = map[partition.Key]bool{}
		}
		t.Named[k] = true
	})
}

// PostsOf calls fn for the posts of k that may name files, as this batch leaves them, until fn
// returns false.
func (t *Batch) PostsOf(id format.SiteID, k partition.Key, fn func(format.PostRow) (bool, error)) error {
	prefix := format.ItemKey(format.TabPost, id, k)
	more := true
	visit := func(state []byte) error {
		if !bytes.Contains(state, []byte(`"media":[`)) {
			return nil
		}
		p, err := format.ParsePost(state)
		if err == nil {
			more, err = fn(p)
		}
		return err
	}
	for row, state := range t.items {
		if more && bytes.HasPrefix([]byte(row), prefix) {
			if err := visit(state); err != nil {
				return err
			}
		}
	}
	if !more {
		return nil
	}
	return t.s.engine.Scan(prefix, format.After(prefix), func(key, value []byte) (bool, error) {
		if _, written := t.items[string(key)]; written {
			return true, nil
		}
		state, err := t.s.engine.Packer.OpenItem(format.TabPost, value)
		if err == nil {
			err = visit(state)
		}
		return more, err
	})
}
