package fold

import (
	"strings"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// placeholder is the end of the URL of Mastodon's picture for accounts without a picture. It is the
// same file for all.
const placeholder = "/missing.png"

// Files adds links to the files that the profile and the posts of this visit name.
func (b *Batch) Files() {
	k := b.key
	if !b.o.Media || k.Kind() != partition.KindAccount || b.State.Outside != "" {
		return
	}
	add := func(r *store.Record) {
		if r.Deleted || r.NoIndex || r.NoArchive {
			return
		}
		for _, m := range r.Media {
			if f, ok := m.File(k); ok && !strings.HasSuffix(m.URL, placeholder) && !b.Linked(f) {
				b.Links = append(b.Links, store.Link{Key: f, Rel: "media"})
			}
		}
	}
	if b.Record != nil {
		add(b.Record)
	}
	for i := range b.Posts {
		add(&b.Posts[i])
	}
}
