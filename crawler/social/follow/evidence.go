package follow

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Limits on the evidence for a verdict.
const (
	scannedPosts  = 2000 // kept posts that are scanned, of which the newest count
	mostNeighbour = 500  // accounts of a list, and mentioned accounts, whose verdict is looked up
)

// Known collects the evidence for a verdict from the store of this peer. Its errors are those of
// the store.
type Known struct {
	Store *db.Store
	Rules *Rules
}

// Person collects what this peer knows of the account that is due. rec is its profile, langs are
// the languages its posts declare, and read are its posts that are not in the store yet.
func (n Known) Person(d store.Due, rec *store.Record, langs map[string]int, read []store.Record) (Person, error) {
	k := d.Key
	p := Person{Key: k, Seed: n.Rules.Seeded(d), Profile: rec, Langs: langs}
	if n.Rules.Judge == nil {
		return p, nil
	}
	type text struct {
		at   time.Time
		said string
	}
	var texts []text
	seen, mentions := map[string]bool{}, map[partition.Key]bool{}
	take := func(r store.Record) {
		if seen[r.Post] || r.Deleted || r.By != "" || r.BoostOf != "" {
			return
		}
		seen[r.Post] = true
		at := r.FetchedAt
		if r.PublishedAt != nil {
			at = *r.PublishedAt
		}
		if strings.TrimSpace(r.Text) != "" {
			texts = append(texts, text{at, r.Text})
		}
		for _, m := range r.Mentions {
			if m.Key != "" && len(mentions) < mostNeighbour {
				mentions[m.Key] = true
			}
		}
	}
	for _, r := range read {
		take(r)
	}
	sl, err := n.Store.Archive.Where(k)
	if err != nil {
		return p, err
	}
	scanned := 0
	if err := n.Store.Accounts.Posts(sl, k, "", func(r store.Record) (bool, error) {
		take(r)
		scanned++
		return scanned < scannedPosts, nil
	}); err != nil {
		return p, err
	}
	slices.SortFunc(texts, func(a, b text) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.said, b.said)) })
	for _, t := range texts[:min(len(texts), community.MaxTexts)] {
		p.Texts = append(p.Texts, t.said)
	}
	p.Edges, err = n.neighbours(sl, d, mentions)
	return p, err
}

// neighbours counts the verdicts, as far as this peer's store has them, on four groups of accounts:
// those that the account follows, its followers, those it mentions, and the account that led to it.
func (n Known) neighbours(sl partition.Slice, d store.Due, mentions map[partition.Key]bool) (e community.Edges,
	err error) {
	count := func(c *community.Counts, k partition.Key) error {
		word, err := n.verdictOf(k)
		switch word {
		case community.IsIn:
			c.In++
		case community.IsOut:
			c.Out++
		}
		return err
	}
	for _, l := range []struct {
		side string
		c    *community.Counts
	}{{"/following", &e.Follows}, {"/followers", &e.Followers}} {
		seen := 0
		if err := n.Store.Accounts.Edges(sl, d.Key+partition.Key(l.side), "", func(x store.Edge) (bool, error) {
			if x.GoneAt != nil || x.Sure == store.SureDoubted {
				return true, nil
			}
			seen++
			return seen < mostNeighbour, count(l.c, x.To)
		}); err != nil {
			return e, err
		}
	}
	for k := range mentions {
		if err := count(&e.Mentions, k); err != nil {
			return e, err
		}
	}
	if by := d.Referrer.Account(); by != "" && by != d.Key {
		err = count(&e.MentionedBy, by)
	}
	return e, err
}

// verdictOf returns the word of the verdict on an account, "" if this peer knows none.
func (n Known) verdictOf(k partition.Key) (string, error) {
	r, err := n.Store.Archive.Record(k)
	if errors.Is(err, store.ErrNotExist) {
		return "", nil
	}
	return r.VerdictWord(), err
}

// Followed reports whether the accounts in a list of account k become candidates. They do not if
// the list was read only to judge k.
func (n Known) Followed(k partition.Key) (bool, error) {
	word, err := n.verdictOf(k)
	if err != nil {
		return false, err
	}
	return word == "" || word == community.IsIn || n.Rules.Follow == Everybody, nil
}
