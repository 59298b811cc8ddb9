package store

import (
	"slices"

	"github.com/echo-node/echo-node/partition"
)

// File is the Key of m as a file of account; false of what is none: the card of a
// page, what has no address.
func (m Media) File(account partition.Key) (partition.Key, bool) {
	if m.Type == "link" || m.URL == "" {
		return "", false
	}
	k, err := account.File(m.URL)
	return k, err == nil
}

// Files calls fn for the files that r names, as far as they may be kept.
func (r *Record) Files(fn func(partition.Key)) {
	if r == nil || r.Deleted || !r.Archived() {
		return
	}
	for _, m := range r.Media {
		if k, ok := m.File(r.Key); ok {
			fn(k)
		}
	}
}

// Unhad takes out of r what had fills in: it is no part of what is stored.
func (r *Record) Unhad() {
	if slices.ContainsFunc(r.Media, func(m Media) bool { return m.Digest != "" }) {
		r.Media = slices.Clone(r.Media)
		for i := range r.Media {
			r.Media[i].Digest = ""
		}
	}
}
