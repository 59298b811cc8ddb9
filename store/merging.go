package store

import (
	"bytes"
	"cmp"
)

func (r Robots) Newer(old Robots) bool {
	return cmp.Or(r.Fetched.Compare(old.Fetched), r.Expires.Compare(old.Expires), cmp.Compare(r.Status, old.Status),
		bytes.Compare(r.Body, old.Body)) > 0
}
