package fold

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// doubtFor is the time after which the package decides two doubtful cases. A post that is missing
// from its feed but still found alone is then kept. An account that shows no posts is then believed
// to have none. Some servers take their time over a deletion.
const doubtFor = time.Hour

// Emptied notes whether an account whose posts were read before now shows no post and claims none.
func (b *Batch) Emptied(f account.Feed) {
	switch {
	case b.key.Kind() != partition.KindAccount || !f.Empty() || len(f.Kept().Recent) == 0 || b.State.Claimed > 0:
		b.State.Empty = time.Time{}
	case b.State.Empty.IsZero():
		b.State.Empty = b.now
	}
}

// Deserted reports whether Emptied has held for doubtFor. The account then was left or emptied, and
// a post that is not found counts as deleted.
func (b *Batch) Deserted() bool {
	return !b.State.Empty.IsZero() && b.now.Sub(b.State.Empty) >= doubtFor
}

// Settled reports whether a post that is missing from its feed was found alone for at least
// doubtFor. It notes the first time that this is asked.
func (b *Batch) Settled(id string) bool {
	since, ok := b.State.Doubt[id]
	if !ok {
		if b.State.Doubt == nil {
			b.State.Doubt = map[string]time.Time{}
		}
		b.State.Doubt[id], since = b.now, b.now
	}
	return b.now.Sub(since) >= doubtFor
}

// IsGone adds a tombstone for a kept post.
func (b *Batch) IsGone(p store.Record) {
	r := b.Tombstone(p.Post, p.ID)
	r.By = p.By
	b.Posts = append(b.Posts, r)
	for _, m := range b.State.Marks() {
		m.Recent = slices.DeleteFunc(slices.Clone(m.Recent), func(s service.Seen) bool { return s.ID == p.ID })
	}
}
