package store

import (
	"bytes"
	"cmp"
)

// Newer reports whether r replaces old. The order is total, so replicas keep the same one.
func (r Robots) Newer(old Robots) bool {
	return cmp.Or(r.Fetched.Compare(old.Fetched), r.Expires.Compare(old.Expires), cmp.Compare(r.Status, old.Status),
		bytes.Compare(r.Body, old.Body)) > 0
}
