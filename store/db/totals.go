package db

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// SliceStats are the counts of one slice, DiskBytes excepted. Fetches are this
// peer's own, since it has the slice.
func (s *Store) SliceStats(sl partition.Slice) store.Stats {
	return s.engine.Totals.Slice(sl)
}

// StatsOf is the sum of SliceStats over the slices that are in. Cost: one call
// of in for each slice there ever was, about a millisecond for 2^17.
func (s *Store) StatsOf(in func(partition.Slice) bool) store.Stats {
	return s.engine.Totals.Sum(in)
}
