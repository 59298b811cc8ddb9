package store

import (
	"slices"

	"github.com/echo-node/echo-node/partition"
)

// File returns the Key of m as a file of account. ok is false for the card of a page, and for media
// without a URL.
func (m Media) File(account partition.Key) (partition.Key, bool) {
	if m.Type == "link" || m.URL == "" {
		return "", false
	}
	k, err := account.File(m.URL)
	return k, err == nil
}

// Files calls fn for the files that r names, if they may be stored.
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

// Unhad removes the media digests from r. Archive.Had fills them in on reading; they are not
// stored.
func (r *Record) Unhad() {
	if slices.ContainsFunc(r.Media, func(m Media) bool { return m.Digest != "" }) {
		r.Media = slices.Clone(r.Media)
		for i := range r.Media {
			r.Media[i].Digest = ""
		}
	}
}
