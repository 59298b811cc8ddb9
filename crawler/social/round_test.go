package social_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

const day = 24 * time.Hour

// writes lets an account write so many posts, a minute apart, and returns their ids.
func writes(t *testing.T, w interface {
	Post(acct, text string, tags ...string) (string, error)
}, who string, many int, tags ...string) (ids []string) {
	t.Helper()
	for n := range many {
		ids = append(ids, ok(t)(w.Post(who, fmt.Sprint(who, " says ", n), tags...)))
		time.Sleep(time.Minute)
	}
	return ids
}

// Edits and deletions of posts that no reading shows any more are found within a round. This holds
// for an account and for a tag, and through crashes. It holds for a server that looks up many ids
// at once and for one that does not.
func TestOldPostsAreLookedAtAgain(t *testing.T) {
	racetest.Skip(t)
	for name, lies := range map[string]mastodontest.Lies{"many ids": {}, "one by one": {NoBatch: 404},
		"numbers": {NumberIDs: true, Nulls: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1, Lies: lies,
					Limits: mastodontest.MastodonLimits()})
				ana := crowd(t, w)[0]
				k, tag := accountKey(t, ana), partition.Key("mastodon:m.test/tag/lisboa")
				ids := writes(t, w, ana, 200, "lisboa")
				p := newPeer(t, w, social.Options{Round: 2 * day})
				p.start()
				p.seed(k, tag)
				time.Sleep(day)
				if len(p.posts(k)) != 200 || len(p.posts(tag)) != 200 {
					t.Fatalf("%d and %d posts", len(p.posts(k)), len(p.posts(tag)))
				}
				before := w.Report().Requests
				edited, gone := ids[7], ids[150]
				if err := w.Edit(edited, "not that"); err != nil {
					t.Fatal(err)
				}
				if err := w.Delete(gone); err != nil {
					t.Fatal(err)
				}
				p.crashes(3, 12*time.Hour)
				time.Sleep(6 * day)
				for _, k := range []partition.Key{k, tag} {
					had := p.posts(k)
					if r := had[edited]; r.Text != "not that" || len(r.Edits) != 1 {
						t.Errorf("%s: edited: %+v", k, r)
					}
					tombstones := 0
					for _, r := range had {
						if r.Deleted {
							tombstones++
						}
					}
					if !had[gone].Deleted || had[gone].Text != "" || tombstones != 1 {
						t.Errorf("%s: deleted: %+v, %d tombstones", k, had[gone], tombstones)
					}
				}
				rounds := p.src.Rounds()
				if len(rounds) != 1 || rounds[0].Keys != 2 || rounds[0].Posts != 400 || rounds[0].Period < day ||
					rounds[0].Period > 3*day || rounds[0].Late != 0 {
					t.Errorf("shown: %+v", rounds)
				}
				r := w.Report()
				t.Logf("%d requests in a week, %+v; %v", r.Requests-before, rounds, r.ByPath)
				if r.Refused > 0 {
					t.Errorf("%d refused", r.Refused)
				}
				p.end()
			})
		})
	}
}

// A round uses its share of the budget and no more. With too many posts for that share, new posts
// are fetched as before and the round takes longer. The ledger and the status say so.
func TestARoundStaysWithinItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share = 0.1 * 20 * 12 * 24 // calls a day
		w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1,
			Lies:   mastodontest.Lies{NoBatch: 404},
			Limits: []mastodontest.Limit{{Name: "anonymous", Max: 20, Window: 5 * time.Minute}}})
		ana := crowd(t, w)[0]
		k := accountKey(t, ana)
		ids := writes(t, w, ana, 400)
		p := newPeer(t, w, social.Options{Round: 6 * time.Hour})
		p.start()
		p.seed(k)
		time.Sleep(20 * time.Hour)
		gaps := p.gaps(k)
		if len(gaps) != 1 || gaps[0].What != store.GapSkipped || !gaps[0].To.IsZero() ||
			!strings.Contains(gaps[0].Reason, "were not looked at") {
			t.Errorf("the ledger: %+v", gaps)
		}
		if r := p.src.Rounds(); len(r) != 1 || r[0].Late != 1 || r[0].Posts < 100 || r[0].Period < 12*time.Hour {
			t.Errorf("shown: %+v", r)
		}
		shape := "/api/v1/statuses/:id"
		before := w.Report().ByPath[shape]
		time.Sleep(2 * day)
		looks := w.Report().ByPath[shape] - before
		if looks < 200 || float64(looks) > 2*share {
			t.Errorf("%d looks in two days, of which the share is %.0f a day", looks, float64(share))
		}
		if err := w.Delete(ids[300]); err != nil {
			t.Fatal(err)
		}
		news := ok(t)(w.Post(ana, "news"))
		time.Sleep(day)
		if p.posts(k)[news].Text == "" {
			t.Error("new posts wait for the round")
		}
		time.Sleep(2 * day)
		if !p.posts(k)[ids[300]].Deleted || w.Report().Refused > 0 {
			t.Errorf("the deletion is not seen; %d calls refused", w.Report().Refused)
		}
		closed := false
		for _, g := range p.gaps(k) {
			closed = closed || g.What == store.GapSkipped && !g.To.IsZero()
		}
		if !closed {
			t.Errorf("no gap has ended: %+v", p.gaps(k))
		}
		p.end()
	})
}

// If a server answers "not found" with a page, or does not answer at all, no post counts as
// deleted.
func TestARoundBelievesOnlyTheAPI(t *testing.T) {
	racetest.Skip(t)
	for name, lie := range map[string]func(*mastodontest.Lies){
		"a page for what is not there": func(l *mastodontest.Lies) { l.NoBatch, l.HTML404 = 404, true },
		"pages for all":                func(l *mastodontest.Lies) { l.HTML200 = true },
		"down":                         func(l *mastodontest.Lies) { l.Down = 502 },
		"closed":                       func(l *mastodontest.Lies) { l.ClosedAPI = true },
		"garbage":                      func(l *mastodontest.Lies) { l.Garbage = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1})
				ana := crowd(t, w)[0]
				k := accountKey(t, ana)
				ids := writes(t, w, ana, 120)
				p := newPeer(t, w, social.Options{Round: day})
				p.start()
				p.seed(k)
				time.Sleep(day)
				w.Lie(lie)
				time.Sleep(8 * day)
				for id, r := range p.posts(k) {
					if r.Deleted {
						t.Fatalf("%s is taken for deleted: %+v", id, r)
					}
				}
				w.Lie(func(l *mastodontest.Lies) { *l = mastodontest.Lies{} })
				if err := w.Delete(ids[3]); err != nil {
					t.Fatal(err)
				}
				time.Sleep(16 * day)
				if !p.posts(k)[ids[3]].Deleted {
					t.Error("a deletion is not seen after that")
				}
				p.end()
			})
		})
	}
}

// An author deletes her account at a server that then shows it empty and says in HTML that its
// posts are not found. They count as deleted. If the account still claims posts, they are kept, and
// the ledger says so.
func TestPostsOfAnEmptiedAccount(t *testing.T) {
	for name, posted := range map[string]int{"it claims none": 0, "it claims some": 50} {
		t.Run(name, func(t *testing.T) { emptied(t, posted) })
	}
}

func emptied(t *testing.T, posted int) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1,
			Lies: mastodontest.Lies{NoBatch: 404, HTML404: true, NoPosts: true}})
		ana := crowd(t, w)[0]
		k := accountKey(t, ana)
		ids := writes(t, w, ana, 50)
		p := newPeer(t, w, social.Options{Round: day})
		p.start()
		p.seed(k)
		time.Sleep(day)
		w.Lie(func(l *mastodontest.Lies) { l.Posted, l.NoPosts = posted, posted == 0 })
		for _, id := range ids {
			if err := w.Delete(id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(8 * day)
		said := 0
		for _, g := range p.gaps(k) {
			if g.What == store.GapExpired && strings.Contains(g.Reason, "does not say whether they were deleted") {
				said++
			}
		}
		gone := 0
		for _, r := range p.posts(k) {
			if r.Deleted {
				gone++
			}
		}
		if had := len(p.posts(k)); had != 50 || posted == 0 && gone != 50 || posted > 0 && (gone != 0 || said == 0) {
			t.Errorf("%d of %d posts are deleted, %d rows of the ledger say that they are not found: %+v",
				gone, had, said, p.gaps(k))
		}
		p.end()
	})
}

// Posts that appear below the newest, such as imported ones, are found when the profile claims more
// posts than are kept.
func TestImportedPostsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1})
		ana := crowd(t, w)[0]
		k := accountKey(t, ana)
		writes(t, w, ana, 100)
		p := newPeer(t, w, social.Options{Round: 2 * day})
		p.start()
		p.seed(k)
		time.Sleep(4 * day)
		var old []string
		for n := range 20 {
			old = append(old, ok(t)(w.Import(ana, fmt.Sprint("from another server ", n),
				time.Now().Add(-200*day+time.Duration(n)*time.Hour))))
		}
		time.Sleep(8 * day)
		had := p.posts(k)
		for _, id := range old {
			if had[id].Text == "" {
				t.Fatalf("an imported post: %+v, of %d posts", had[id], len(had))
			}
		}
		before := w.Report().Requests
		time.Sleep(12 * day)
		t.Logf("%d requests in 12 days", w.Report().Requests-before)
		p.end()
	})
}

// An account without posts, or with so few that each reading shows them all, is in no ledger and
// costs no call.
func TestARoundOfNothingIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1})
		users := crowd(t, w)
		writes(t, w, users[1], 30)
		p := newPeer(t, w, social.Options{Round: day})
		p.start()
		none, few := accountKey(t, users[0]), accountKey(t, users[1])
		p.seed(none, few)
		time.Sleep(20 * day)
		if a, b := p.gaps(none), p.gaps(few); len(a)+len(b) != 0 {
			t.Errorf("%+v %+v", a, b)
		}
		if r := w.Report(); r.ByPath["/api/v1/statuses/:id"]+r.ByPath["/api/v1/statuses"] > 2 {
			t.Errorf("%+v", r)
		}
		p.end()
	})
}

// Old posts of the other services are looked at again, too. Accounts that hide meanwhile are
// obeyed.
func TestOldPostsOfOtherServicesAreLookedAtAgain(t *testing.T) {
	racetest.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		w, p := skies(t, blueskytest.Options{Seed: 9, People: 12, Quiet: true, Rate: -1},
			social.Options{Round: 2 * day})
		did := ""
		for _, id := range w.IDs() {
			if !private(w.Truth().Accounts[id]) {
				did = id
				break
			}
		}
		user, _, _ := strings.Cut(w.Handle(did), ".")
		ids := writes(t, w, user, 150, "lisboa")
		p.start()
		who, search := blueskyKey(did), partition.Key("bluesky:search/%23lisboa")
		p.seed(who, search)
		time.Sleep(day)
		if len(p.written(who)) != 150 || len(p.written(search)) != 150 {
			t.Fatalf("%d and %d posts", len(p.written(who)), len(p.written(search)))
		}
		if err := w.Delete(ids[5]); err != nil {
			t.Fatal(err)
		}
		if err := w.Edit(ids[9], "not that"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * day)
		for _, k := range []partition.Key{who, search} {
			tombstones := 0
			for _, r := range p.written(k) {
				if r.Deleted {
					tombstones++
				}
			}
			if !p.written(k)[ids[5]].Deleted || tombstones != 1 {
				t.Errorf("%s: %d tombstones", k, tombstones)
			}
		}
		p.end()
	})
	synctest.Test(t, func(t *testing.T) {
		const dollars = 20
		w, p := birds(t, twittertest.Options{Seed: 9, People: 12, Quiet: true, Rate: -1},
			social.Options{Round: 2 * day}, dollars)
		id := string(writer2(w))
		user := w.Truth().Accounts[id].User
		ids := writes(t, w, user, 150)
		p.start()
		p.seed(xKey(id))
		time.Sleep(day)
		if n := len(p.written(xKey(id))); n != 150 {
			t.Fatalf("%d posts", n)
		}
		if err := w.Delete(ids[5]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * day)
		tombstones := 0
		for _, r := range p.written(xKey(id)) {
			if r.Deleted {
				tombstones++
			}
		}
		if !p.written(xKey(id))["https://x.com/i/status/"+ids[5]].Deleted || tombstones != 1 {
			t.Errorf("%d tombstones", tombstones)
		}
		p.withinMoney(w, dollars)
		p.end()
	})
}

// writer2 returns an account of X that may be followed.
func writer2(w *twittertest.World) (id string) {
	for at, a := range w.Truth().Accounts {
		if !wishesX(a) && !a.Protected && (id == "" || at < id) {
			id = at
		}
	}
	return id
}
