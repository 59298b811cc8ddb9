package fold

import (
	"slices"

	"github.com/echo-node/echo-node/crawler/service"
)

// Unsaid makes a tombstone of a post that a stream says was deleted, when it is kept. id is what the Mark calls it: a
// reading need not miss it any more.
func (b *Batch) Unsaid(uri, id string) {
	r := b.Tombstone(uri, id)
	r.FetchedAt = b.Told
	b.Posts = append(b.Posts, r)
	for _, m := range b.State.Marks() {
		if left := slices.DeleteFunc(slices.Clone(m.Recent),
			func(s service.Seen) bool { return s.ID == id }); len(left) > 0 {
			m.Recent = left
		}
	}
}
