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

// What a verdict is looked for in, at most.
const (
	askedPosts    = 60   // that are read of who cannot be decided on
	scannedPosts  = 2000 // kept posts, of which the newest count
	mostNeighbour = 500  // accounts of a list, and accounts mentioned, whose verdict is looked up
	grownFromList = 2000 // candidates of a list that was read before its account was found to belong
)

// Known reads from the store of this peer what a verdict is given on. Its errors are those of the store.
type Known struct {
	Store *db.Store
	Rules *Rules
}

// Person gathers what this peer knows of the account that is due: rec is its profile, langs are the languages that its
// posts declare, and read are posts of it that the store does not have yet.
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

// neighbours counts the verdicts, as far as they are in this peer's store, of whom an account follows,
// who follows it, whom it mentions, and who led here.
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

// verdictOf is the word of the verdict on an account, "" when none is known here.
func (n Known) verdictOf(k partition.Key) (string, error) {
	r, err := n.Store.Archive.Record(k)
	if errors.Is(err, store.ErrNotExist) {
		return "", nil
	}
	return r.VerdictWord(), err
}

// Followed says whether whom a list of an account names are candidates: not where the list was read to
// judge the account by.
func (n Known) Followed(k partition.Key) (bool, error) {
	word, err := n.verdictOf(k)
	if err != nil {
		return false, err
	}
	return word == "" || word == community.IsIn || n.Rules.Follow == Everybody, nil
}
