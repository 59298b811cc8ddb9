package accounts

import (
	"bytes"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// One post may be stored under several Keys, with a row for each: its account's Key, and the Keys
// of the timelines, tags and searches that showed it. A fetch may find that a post was deleted,
// edited, or is not to be archived. The same batch then changes all rows of this post in the slice
// that are of the same Site. So a deleted post cannot be found under another Key. Rows of another
// Site do not change: a server speaks only for its own rows. Rows in other slices change at their
// own next visit. See docs/decisions/0081.
//
// What the account shows has priority over what timelines show. A page of a timeline may be older
// than it looks. It must not bring back a post that the account is known to have deleted.

const (
	maxWays  = 1024    // such Keys of a Site in a slice, the first in order
	maxReach = 1 << 16 // rows that one commit looks up
)

// reach counts the lookups that one commit may still do.
type reach struct {
	ways []partition.Key
	read bool // ways is set
	left int
}

// posts writes the posts of c, and copies what is new in them to the other rows of the same posts.
func (t *Batch) posts(id format.SiteID, c store.Commit) error {
	to := reach{left: maxReach}
	for _, r := range c.Posts {
		r, wanted, err := t.yields(id, r)
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		had, known, err := t.row(id, r.Key, r.Post)
		if err != nil {
			return err
		}
		if known && r.Deleted && r.By == "" { // the fetch may not know the author
			r.By = had.Record.By
		}
		if err := t.post(id, r, c.Now); err != nil {
			return err
		}
		if !known && !r.Deleted && r.EditedAt == nil && r.Archived() {
			continue // just as it was posted: no other row says anything else
		}
		if err := t.bring(id, r, c.Now, &to); err != nil {
			return err
		}
	}
	return nil
}

// yields returns r as it may be written. If a timeline shows a post that its account is known to
// have deleted, this is a tombstone. wanted is false when there is nothing to write.
func (t *Batch) yields(id format.SiteID, r store.Record) (_ store.Record, wanted bool, err error) {
	by := r.Writer()
	if r.Deleted || by == r.Key || by.Site() != id.Site {
		return r, true, nil
	}
	p, ok, err := t.row(id, by, r.Post)
	if err != nil || !ok || !p.Record.Deleted {
		return r, true, err
	}
	had, err := t.State(format.ItemID{SiteID: id, Table: format.TabPost, Key: r.Key, Part: r.Post})
	gone := p.Record
	gone.Key, gone.By, gone.FetchedAt = r.Key, by, r.FetchedAt
	return gone, had != nil, err
}

// row returns the post uri of k, as this batch leaves it so far.
func (t *Batch) row(id format.SiteID, k partition.Key, uri string) (p format.PostRow, ok bool, err error) {
	state, err := t.State(format.ItemID{SiteID: id, Table: format.TabPost, Key: k, Part: uri})
	if state == nil || err != nil {
		return p, false, err
	}
	p, err = format.ParsePost(state)
	return p, err == nil, err
}

// bring copies what r says to the other rows of its post.
func (t *Batch) bring(id format.SiteID, r store.Record, now time.Time, to *reach) error {
	if !to.read {
		to.read = true
		var err error
		if to.ways, err = t.ways(id); err != nil {
			return err
		}
	}
	by := r.Writer()
	keys := to.ways
	if by != r.Key && by.Site() == id.Site {
		keys = append(slices.Clone(keys), by)
	}
	for _, k := range slices.Backward(keys) { // the account first
		if k == r.Key {
			continue
		}
		if to.left--; to.left < 0 {
			return nil
		}
		p, ok, err := t.row(id, k, r.Post)
		if err != nil {
			return err
		}
		if !ok || p.Record.Says(&r) || p.Record.Deleted && by != r.Key {
			continue
		}
		if r.Deleted && r.ID != "" && p.Record.ID != "" && r.ID != p.Record.ID {
			continue // by its id, another version of the post is gone
		}
		copied := r
		copied.Key, copied.By, copied.FetchedAt = k, by, time.Time{}
		if k == by {
			copied.By = ""
		}
		if err := t.post(id, copied, now); err != nil {
			return err
		}
	}
	return nil
}

// ways returns the Keys of a Site in a slice that show posts of many people.
func (t *Batch) ways(id format.SiteID) (out []partition.Key, err error) {
	for _, head := range [...]string{"/", "search/"} {
		prefix := format.KeyRow(format.TabKey, id, partition.Key(string(id.Site)+head))
		err := t.s.engine.Scan(prefix, format.After(prefix), func(key, _ []byte) (bool, error) {
			_, rest, err := format.SplitRow(key)
			if err != nil {
				return false, err
			}
			k := partition.Key(bytes.Clone(rest))
			switch k.Kind() {
			case partition.KindTag, partition.KindTimeline, partition.KindSearch:
				out = append(out, k)
			}
			return len(out) < maxWays, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
