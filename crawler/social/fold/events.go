package fold

import (
	"slices"

	"github.com/echo-node/echo-node/crawler/service"
)

// Unsaid adds a tombstone for a kept post that a stream reports as deleted. id is its id in the
// Mark. Unsaid removes it there, so that no reading finds it missing.
func (b *Batch) Unsaid(uri, id string) {
	r := b.Tombstone(uri, id)
	r.FetchedAt = b.Streamed
	b.Posts = append(b.Posts, r)
	for _, m := range b.State.Marks() {
		if left := slices.DeleteFunc(slices.Clone(m.Recent),
			func(s service.Seen) bool { return s.ID == id }); len(left) > 0 {
			m.Recent = left
		}
	}
}
