package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Writer returns the Key of the account that wrote r.
func (r *Record) Writer() partition.Key { return cmp.Or(r.By, r.Key) }

// Says reports whether o, a later fetch, shows readers nothing that r, the stored post, does not
// show. Then there is no need to store o. It changes neither.
func (r *Record) Says(o *Record) bool {
	switch {
	case r.Deleted || o.Deleted:
		return r.Deleted == o.Deleted
	case r.Archived() != o.Archived() || r.NoIndex != o.NoIndex:
		return false
	}
	var at, other time.Time
	if r.EditedAt != nil {
		at = *r.EditedAt
	}
	if o.EditedAt != nil {
		other = *o.EditedAt
	}
	if at.After(other) {
		return true // o is from before the edit
	}
	return r.Text == o.Text && r.Warning == o.Warning && at.Equal(other) &&
		slices.EqualFunc(r.Media, o.Media, func(a, b Media) bool { return a.URL == b.URL && a.Alt == b.Alt })
}
