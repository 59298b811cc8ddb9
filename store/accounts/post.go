package accounts

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// post writes one post of a commit. It was fetched just now, so it counts as later than the stored
// one, whatever the clock says. There is one exception: an older copy of a post that was seen
// deleted since is not written.
func (t *Batch) post(id format.SiteID, r store.Record, now time.Time) error {
	if r.FetchedAt.IsZero() {
		r.FetchedAt = now
	}
	p, err := format.NewPost(r)
	if err != nil {
		return fmt.Errorf("post %.100q: %w", r.Post, err)
	}
	at := format.ItemID{SiteID: id, Table: format.TabPost, Key: r.Key, Part: r.Post}
	had, err := t.State(at)
	if err != nil {
		return fmt.Errorf("post %.100q: %w", r.Post, err)
	}
	var was *store.Record
	if had != nil {
		old, err := format.ParsePost(had)
		if err != nil {
			return err
		}
		was = &old.Record
		if before := old.Record.FetchedAt; !p.Record.FetchedAt.After(before) {
			if old.Record.Deleted && !r.Deleted {
				return nil
			}
			p.Record.FetchedAt = before.Add(store.Tick)
			if p, err = format.NewPost(p.Record); err != nil {
				return err
			}
		}
	}
	t.Names(was, &p.Record)
	state, err := p.Encode()
	if err != nil {
		return err
	}
	return t.Item(at, state)
}

// Post returns one post of k with its earlier versions, and its slice. It returns ErrNotExist when
// there is none. A tombstone is a post (Record.Deleted).
func (s *Accounts) Post(k partition.Key, uri string) (store.Record, partition.Slice, error) {
	if err := s.engine.Enter(); err != nil {
		return store.Record{}, 0, err
	}
	defer s.engine.Leave()
	id := format.ItemID{SiteID: s.engine.IDOf(k), Table: format.TabPost, Key: k, Part: uri}
	v, err := s.engine.Get(id.Row())
	if errors.Is(err, store.ErrNotExist) {
		if id.Slice, err = s.engine.WhereIs(k); err == nil {
			v, err = s.engine.Get(id.Row())
		}
	}
	if err == nil {
		v, err = s.engine.Packer.OpenItem(format.TabPost, v)
	}
	var p format.PostRow
	if err == nil {
		p, err = format.ParsePost(v)
	}
	if err != nil {
		return store.Record{}, 0, fmt.Errorf("store: post %.100q of %s: %w", uri, k, err)
	}
	r := p.Shown()
	if err := s.archive.Had(id.Slice, &r); err != nil {
		return store.Record{}, 0, fmt.Errorf("store: post %.100q of %s: %w", uri, k, err)
	}
	return r, id.Slice, nil
}

// Posts calls fn for the posts of k in sl (0: its hash slice), including tombstones, in order of
// Record.Post after from, until fn returns false.
func (s *Accounts) Posts(sl partition.Slice, k partition.Key, from string, fn func(store.Record) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.ItemKey(format.TabPost, s.engine.IDIn(sl, k), k)
	return s.posts(k, lowerItem(p, from), format.After(p), fn)
}

// PostsOf returns the number of posts of k in sl (0: its hash slice), including tombstones, but at
// most most. It does not read the posts.
func (s *Accounts) PostsOf(sl partition.Slice, k partition.Key, most int) (n int, err error) {
	if err := s.engine.Enter(); err != nil {
		return 0, err
	}
	defer s.engine.Leave()
	p := format.ItemKey(format.TabPost, s.engine.IDIn(sl, k), k)
	err = s.engine.Scan(p, format.After(p), func([]byte, []byte) (bool, error) {
		n++
		return n < most, nil
	})
	return n, err
}

// SlicePosts calls fn for the posts of sl in order of site, Key and Post, until fn returns false.
// It starts after the post from of k, or with the first when k is "".
func (s *Accounts) SlicePosts(sl partition.Slice, k partition.Key, from string, fn func(store.Record) (bool,
	error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.SlicePrefix(format.TabPost, sl)
	lower := p
	if k != "" {
		lower = lowerItem(format.ItemKey(format.TabPost, s.engine.IDIn(sl, k), k), from)
	}
	return s.posts("", lower, format.After(p), fn)
}

// lowerItem returns the row after which the items behind the part from begin; "" is before all
// items.
func lowerItem(prefix []byte, from string) []byte {
	if from == "" {
		return prefix
	}
	return append(append(bytes.Clone(prefix), from...), 0)
}

func (s *Accounts) posts(k partition.Key, lower, upper []byte, fn func(store.Record) (bool, error)) error {
	err := s.engine.Scan(lower, upper, func(key, value []byte) (bool, error) {
		v, err := s.engine.Packer.OpenItem(format.TabPost, value)
		if err != nil {
			return false, err
		}
		p, err := format.ParsePost(v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		id, err := format.SplitItem(format.TabPost, key)
		if err != nil {
			return false, err
		}
		r := p.Shown()
		if err := s.archive.Had(id.Slice, &r); err != nil {
			return false, err
		}
		return fn(r)
	})
	if err != nil {
		return fmt.Errorf("store: posts of %s: %w", k, err)
	}
	return nil
}
