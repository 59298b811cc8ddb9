package archive

import (
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Records is RecordsFrom without the slices.
func (s *Archive) Records(from partition.Key, fn func(store.Record) (bool, error)) error {
	return s.RecordsFrom(0, from, func(_ partition.Slice, r store.Record) (bool, error) { return fn(r) })
}

// RecordsFrom calls fn for the latest record of each Key after from, in store order (slice, site,
// Key), until fn returns false. from is in sl (0: its hash slice). When from is "", it starts with
// sl, or with the first slice if sl is 0. It may or may not see records that are committed during
// the call. fn may call the Store.
func (s *Archive) RecordsFrom(sl partition.Slice, from partition.Key,
	fn func(partition.Slice, store.Record) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	lower := []byte{byte(format.TabRecord)}
	if from != "" {
		lower = append(format.KeyRow(format.TabRecord, s.engine.IDIn(sl, from), from), 0)
	} else if sl != 0 {
		lower = format.SlicePrefix(format.TabRecord, sl)
	}
	return s.records(lower, format.After([]byte{byte(format.TabRecord)}), fn)
}

// SliceRecords is RecordsFrom for the records of sl only.
func (s *Archive) SliceRecords(sl partition.Slice, from partition.Key, fn func(store.Record) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.SlicePrefix(format.TabRecord, sl)
	lower := p
	if from != "" {
		lower = append(format.KeyRow(format.TabRecord, s.engine.IDIn(sl, from), from), 0)
	}
	return s.records(lower, format.After(p), func(_ partition.Slice, r store.Record) (bool, error) { return fn(r) })
}

func (s *Archive) records(lower, upper []byte, fn func(partition.Slice, store.Record) (bool, error)) error {
	return s.engine.Scan(lower, upper, func(key, value []byte) (bool, error) {
		id, _, err := format.SplitRow(key)
		if err != nil {
			return false, err
		}
		r, err := s.engine.Packer.DecodeRecord(value)
		if err != nil {
			return false, fmt.Errorf("store: row %x: %w", key, err)
		}
		return fn(id.Slice, r)
	})
}
