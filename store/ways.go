package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Writer is the Key of the account that wrote r.
func (r *Record) Writer() partition.Key { return cmp.Or(r.By, r.Key) }

// Says reports whether r, which is kept of a post, says what o, which was fetched later, says, as far as readers see:
// there is no need to keep o. Neither is changed.
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
		return true // o is of before the edit
	}
	return r.Text == o.Text && r.Warning == o.Warning && at.Equal(other) &&
		slices.EqualFunc(r.Media, o.Media, func(a, b Media) bool { return a.URL == b.URL && a.Alt == b.Alt })
}
