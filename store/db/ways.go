package db

import (
	"maps"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// withdrawBrought withdraws files of other accounts than c's that nothing names any more, because c
// changed the posts of those accounts.
func (t *batch) withdrawBrought(id format.SiteID, c store.Commit) error {
	of := map[partition.Key]bool{}
	for k := range t.Left {
		if a := k.Account(); a != c.Key {
			of[a] = true
		}
	}
	for _, account := range slices.Sorted(maps.Keys(of)) {
		profile, err := t.RecordOf(format.SiteID{Slice: id.Slice, Site: account.Site()}, account)
		if err != nil {
			return err
		}
		if err := t.withdrawUnnamed(format.SiteID{Slice: id.Slice, Site: account.Site()}, account, profile, false,
			c.Now); err != nil {
			return err
		}
	}
	return nil
}
