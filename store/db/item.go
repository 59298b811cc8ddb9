package db

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// KeysFrom calls fn for the Keys that have something to export: a record, posts, a list or gaps.
// The order is slice, site and Key, after from in sl (0: its hash slice), until fn returns false.
// When from is "", it starts with sl, or with the first slice if sl is 0. only is KindPost,
// KindEdges or KindGap for the Keys that have any of these, "" for all Keys.
func (s *Store) KeysFrom(sl partition.Slice, from partition.Key, only string,
	fn func(partition.Slice, partition.Key) (bool, error)) (err error) {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	tabs := map[string][]format.Table{"": {format.TabRecord, format.TabPost, format.TabWalk, format.TabGap},
		store.KindPost:  {format.TabPost},
		store.KindEdges: {format.TabRecord, format.TabWalk}, store.KindGap: {format.TabGap}}[only]
	var its []*keyIter
	for _, tab := range tabs {
		it, ierr := s.engine.DB.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(tab)},
			UpperBound: format.After([]byte{byte(tab)})})
		if ierr != nil {
			return ierr
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		k := &keyIter{it: it, table: tab}
		lower := []byte{byte(tab)}
		if from != "" {
			lower = k.behind(s.engine.IDIn(sl, from), from)
		} else if sl != 0 {
			lower = format.SlicePrefix(tab, sl)
		}
		if err := k.seek(lower); err != nil {
			return fmt.Errorf("store: keys: %w", err)
		}
		its = append(its, k)
	}
	for {
		var first *keyIter
		for _, k := range its {
			if k.key != "" && (first == nil || k.before(first)) {
				first = k
			}
		}
		if first == nil {
			return nil
		}
		id, key := first.id, first.key
		more, err := fn(id.Slice, key)
		if err != nil || !more {
			return err
		}
		for _, k := range its {
			if k.id == id && k.key == key {
				if err := k.seek(k.behind(id, key)); err != nil {
					return fmt.Errorf("store: keys: %w", err)
				}
			}
		}
	}
}

// keyIter iterates over the Keys of one table; key is "" at the end.
type keyIter struct {
	it    *pebble.Iterator
	table format.Table
	id    format.SiteID
	key   partition.Key
}

func (k *keyIter) before(o *keyIter) bool {
	return cmp.Or(k.id.Compare(o.id), cmp.Compare(k.key, o.key)) < 0
}

// behind returns the smallest row key after the rows of key.
func (k *keyIter) behind(id format.SiteID, key partition.Key) []byte {
	if format.IsItem(k.table) {
		return format.After(format.ItemKey(k.table, id, key))
	}
	return append(format.KeyRow(k.table, id, key), 0)
}

// seek moves to the first Key whose row is not below lower.
func (k *keyIter) seek(lower []byte) error {
	k.key = ""
	if !k.it.SeekGE(lower) {
		return k.it.Error()
	}
	id, rest, err := format.SplitRow(k.it.Key())
	if err != nil {
		return err
	}
	k.id, k.key = id, partition.Key(rest)
	if format.IsItem(k.table) {
		k.key, _, err = format.CutItem(rest)
	}
	return err
}
