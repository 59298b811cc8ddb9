package db

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// SliceStats returns the counts of one slice, without DiskBytes. Fetches are those of this peer
// since it got the slice.
func (s *Store) SliceStats(sl partition.Slice) store.Stats {
	return s.engine.Totals.Slice(sl)
}

// StatsOf returns the sum of SliceStats over the slices for which in returns true. It calls in once
// for each slice that ever existed here: about a millisecond for 2^17 slices.
func (s *Store) StatsOf(in func(partition.Slice) bool) store.Stats {
	return s.engine.Totals.Sum(in)
}
