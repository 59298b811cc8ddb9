package social

import (
	"errors"
	"time"

	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// shunnedScan is how many posts one visit scans for those of shunned accounts.
const shunnedScan = 10_000

// withdraw adds tombstones for stored posts that must not be kept: those that were met in this
// visit, and those of shunned accounts. What does not fit is left to the next visit.
func withdraw(kept *db.Store, k partition.Key, now time.Time, b *fold.Batch) error {
	for _, u := range b.Unwilling {
		if len(b.Posts) >= store.MaxPosts {
			break // they are met again
		}
		r, _, err := kept.Accounts.Post(k, u.URI)
		if errors.Is(err, store.ErrNotExist) || err == nil && r.Deleted {
			continue
		}
		if err != nil {
			return &calls.StoreError{Err: err}
		}
		b.TakeBack(u)
	}
	from, some := "", false
	for _, s := range b.State.Shunned {
		if !s.Done && (!some || s.From < from) {
			from, some = s.From, true
		}
	}
	if !some {
		return nil
	}
	sl, err := kept.Archive.Where(k)
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	n, last, whole := 0, from, true
	err = kept.Accounts.Posts(sl, k, from, func(r store.Record) (bool, error) {
		if n++; n > shunnedScan || len(b.Posts) >= store.MaxPosts {
			whole = false
			return false, nil
		}
		last = r.Post
		if why := b.Shuns(&r); why != "" && !r.Deleted {
			b.TakeBack(fold.Unwanted{URI: r.Post, ID: r.ID, Why: why})
		}
		return true, nil
	})
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	for i := range b.State.Shunned {
		if s := &b.State.Shunned[i]; whole {
			s.From, s.Done = "", true
		} else if !s.Done {
			s.From = max(s.From, last)
		}
	}
	if !whole && k.Kind() == partition.KindAccount { // Keys of other kinds are visited soon enough
		b.Next = store.Next{State: store.StatePending, At: now}
	}
	return nil
}
