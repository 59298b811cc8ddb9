package store

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
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

// author is the Key of the account that wrote r.
func (r *Record) author() partition.Key { return cmp.Or(r.By, r.Key) }

// posts writes those of c, and brings what is new of them to the other rows of the same posts.
func (t *txn) posts(id siteID, c Commit) error {
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
		if !known && !r.Deleted && r.EditedAt == nil && r.archived() {
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
func (t *txn) yields(id siteID, r Record) (_ Record, wanted bool, err error) {
	by := r.author()
	if r.Deleted || by == r.Key || by.Site() != id.site {
		return r, true, nil
	}
	p, ok, err := t.row(id, by, r.Post)
	if err != nil || !ok || !p.Record.Deleted {
		return r, true, err
	}
	had, err := t.state(itemID{siteID: id, table: tabPost, key: r.Key, part: r.Post})
	gone := p.Record
	gone.Key, gone.By, gone.FetchedAt = r.Key, by, r.FetchedAt
	return gone, had != nil, err
}

// row is the post of that URI under k, as this batch leaves it so far.
func (t *txn) row(id siteID, k partition.Key, uri string) (p postRow, ok bool, err error) {
	state, err := t.state(itemID{siteID: id, table: tabPost, key: k, part: uri})
	if state == nil || err != nil {
		return p, false, err
	}
	p, err = parsePost(state)
	return p, err == nil, err
}

// bring brings what r says to the other rows of its post.
func (t *txn) bring(id siteID, r Record, now time.Time, to *reach) error {
	if !to.read {
		to.read = true
		var err error
		if to.ways, err = t.ways(id); err != nil {
			return err
		}
	}
	by := r.author()
	keys := to.ways
	if by != r.Key && by.Site() == id.site {
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

// Says reports whether r, which is kept of a post, says what o, which was fetched later, says, as far as readers see:
// there is no need to keep o. Neither is changed.
func (r *Record) Says(o *Record) bool {
	switch {
	case r.Deleted || o.Deleted:
		return r.Deleted == o.Deleted
	case r.archived() != o.archived() || r.NoIndex != o.NoIndex:
		return false
	}
	var at, other time.Time
	if r.EditedAt != nil {
		at = *r.EditedAt
	}
	if o.EditedAt != nil {
		other = *o.EditedAt
	}
	if at.After(other) {
		return true // o is of before the edit
	}
	return r.Text == o.Text && r.Warning == o.Warning && at.Equal(other) &&
		slices.EqualFunc(r.Media, o.Media, func(a, b Media) bool { return a.URL == b.URL && a.Alt == b.Alt })
}

// ways are the Keys of a Site in a slice that show posts of many people.
func (t *txn) ways(id siteID) (out []partition.Key, err error) {
	for _, head := range [...]string{"/", "search/"} {
		prefix := keyRow(tabKey, id, partition.Key(string(id.site)+head))
		err := t.s.scan(prefix, after(prefix), func(key, _ []byte) (bool, error) {
			_, rest, err := splitRow(key)
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

// withdrawBrought withdraws the files of other accounts than c's that what was brought to their posts leaves unnamed.
func (t *txn) withdrawBrought(id siteID, c Commit) error {
	of := map[partition.Key]bool{}
	for k := range t.left {
		if a := k.Account(); a != c.Key {
			of[a] = true
		}
	}
	for _, account := range slices.Sorted(maps.Keys(of)) {
		profile, err := t.recordOf(siteID{id.slice, account.Site()}, account)
		if err != nil {
			return err
		}
		if err := t.withdrawUnnamed(siteID{id.slice, account.Site()}, account, profile, false, c.Now); err != nil {
			return err
		}
	}
	return nil
}
