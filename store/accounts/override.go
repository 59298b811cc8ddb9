package accounts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Overrides returns what persons decided about k in sl (0: its hash slice), in order of time.
func (s *Accounts) Overrides(sl partition.Slice, k partition.Key) ([]store.Override, error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	defer s.engine.Leave()
	all, err := s.OverridesOf(s.engine.IDIn(sl, k), k)
	if err != nil {
		return nil, fmt.Errorf("store: overrides: %w", err)
	}
	return all, nil
}

// OverridesOf returns the overrides of k in order of time.
func (s *Accounts) OverridesOf(id format.SiteID, k partition.Key) (all []store.Override, err error) {
	p := format.ItemKey(format.TabOverride, id, k)
	err = s.engine.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
		v, err := s.engine.Packer.OpenItem(format.TabOverride, value)
		if err != nil {
			return false, err
		}
		o, err := format.ParseOverride(v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		all = append(all, o)
		return true, nil
	})
	slices.SortStableFunc(all,
		func(a, b store.Override) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Part(), b.Part())) })
	return all, err
}
