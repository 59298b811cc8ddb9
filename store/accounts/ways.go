package accounts

import (
	"bytes"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// One post may be kept under several Keys: that of its account, and those of the timelines, tags and searches that
// showed it, each of which has a row of its own. What a fetch finds of a post, that it was deleted, edited, or is not
// to be kept, is brought in the same batch to all rows of it that the slice has of the same Site: so nothing that was
// deleted is found by another way. Nothing is brought to another Site: a server speaks of its own rows. Rows in other
// slices learn it from their own looks. See docs/decisions/0081.
//
// What the account shows goes before what timelines show: a page of a timeline may be older than it looks, and does not
// bring back what the account is known to have deleted.

const (
	maxWays  = 1024    // Keys of a Site in a slice that show posts of many people, the first in order
	maxReach = 1 << 16 // rows that are looked for in one commit
)

// reach is what is left to look for of a commit.
type reach struct {
	ways []partition.Key
	read bool // ways are known
	left int
}

// posts writes those of c, and brings what is new of them to the other rows of the same posts.
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
		if known && r.Deleted && r.By == "" { // who finds that it is gone may not know whose it was
			r.By = had.Record.By
		}
		if err := t.post(id, r, c.Now); err != nil {
			return err
		}
		if !known && !r.Deleted && r.EditedAt == nil && r.Archived() {
			continue // as it was made: no other row says anything else
		}
		if err := t.bring(id, r, c.Now, &to); err != nil {
			return err
		}
	}
	return nil
}

// yields is r as it may be written: a tombstone, if r is what a timeline shows of a post that its account is known to
// have no more. wanted is false when there is nothing to write.
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

// row is the post of that URI under k, as this batch leaves it so far.
func (t *Batch) row(id format.SiteID, k partition.Key, uri string) (p format.PostRow, ok bool, err error) {
	state, err := t.State(format.ItemID{SiteID: id, Table: format.TabPost, Key: k, Part: uri})
	if state == nil || err != nil {
		return p, false, err
	}
	p, err = format.ParsePost(state)
	return p, err == nil, err
}

// bring brings what r says to the other rows of its post.
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
			continue // it is another version that is gone, by its id
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

// ways are the Keys of a Site in a slice that show posts of many people.
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
