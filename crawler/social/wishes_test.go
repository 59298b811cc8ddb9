package social_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// crowd returns the accounts of a quiet server whose profiles say nothing special.
func crowd(t *testing.T, w *mastodontest.World) []string {
	t.Helper()
	users := slices.DeleteFunc(w.Users(), func(u string) bool { return w.Truth().Accounts[u].NoIndex })
	for i, u := range users {
		if err := w.Describe(u, fmt.Sprintf("person %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	return users
}

// ok returns the id of an act that must succeed.
func ok(t *testing.T) func(id string, err error) string {
	return func(id string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
}

// again has a Key visited now, as a person would.
func (p *peer) again(k partition.Key) {
	p.t.Helper()
	if err := p.store.Queue.Again(p.store.SliceOf(k), k, time.Now()); err != nil {
		p.t.Fatal(err)
	}
	p.crawler.Wake(p.store.SliceOf(k), k.Site())
}

// blank reports whether only the tombstone of a post is kept.
func blank(r store.Record) bool {
	return r.Deleted && r.Text == "" && len(r.Raw) == 0 && len(r.Edits) == 0 && len(r.Media) == 0 &&
		strings.Contains(r.Reason, "#nobot")
}

// In every timeline posts come with their author's profile, also if the author is not followed. No
// post of an account that opts out of collection is stored. If it opts out later, the stored posts
// become tombstones.
func TestTimelinesObeyTheProfileBesideEachPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1})
		users, id := crowd(t, w), ok(t)
		ana, bob, carla := users[0], users[1], users[2]
		if err := w.Describe(ana, "no machines please #NoBot"); err != nil {
			t.Fatal(err)
		}
		anas := id(w.Post(ana, "from who never wanted it", "lisboa"))
		var bobs []string
		for n := range 45 { // more than a page, so that readings no longer show some
			bobs = append(bobs, id(w.Post(bob, fmt.Sprint("bob says ", n), "lisboa")))
			time.Sleep(time.Second)
		}
		carlas := id(w.Post(carla, "carla says", "lisboa"))
		public, tag := partition.Key("mastodon:m.test/public"), partition.Key("mastodon:m.test/tag/lisboa")
		p := newPeer(t, w, social.Options{})
		p.start()
		p.seed(public, tag)
		time.Sleep(2 * time.Hour)
		for _, k := range []partition.Key{public, tag} {
			had := p.posts(k)
			if _, kept := had[anas]; kept || len(had) != len(bobs)+1 {
				t.Errorf("%s: %d posts, want %d; that of the person who asks not to be collected: %t", k, len(had),
					len(bobs)+1, kept)
			}
		}
		if err := w.Describe(bob, "I have changed my mind. #nobot"); err != nil {
			t.Fatal(err)
		}
		news := id(w.Post(bob, "one more", "lisboa"))
		p.crash()
		time.Sleep(3 * time.Hour)
		for _, k := range []partition.Key{public, tag} {
			had := p.posts(k)
			for _, id := range bobs {
				if !blank(had[id]) {
					t.Fatalf("%s: a post of someone who opted out: %+v", k, had[id])
				}
			}
			if _, kept := had[news]; kept || had[carlas].Text == "" {
				t.Errorf("%s: kept after the wish: %t; somebody else's: %+v", k, kept, had[carlas])
			}
		}
		p.end()
	})
}

// An account that opts out between two visits of its profile is left at the next post that shows
// it. If it opts in again, it is read again.
func TestWhoOptsOutInMidCrawlIsLeft(t *testing.T) {
	for name, streams := range map[string]int{"read": 0, "streamed": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world(t, mastodontest.Options{Seed: 9, People: 12, Remote: -1, Quiet: true, Rate: -1,
					StreamPoll: time.Second})
				users, id := crowd(t, w), ok(t)
				ana, bob := users[0], users[1]
				k, b := accountKey(t, ana), accountKey(t, bob)
				var ids []string
				for n := range 60 {
					ids = append(ids, id(w.Post(ana, fmt.Sprint("ana says ", n))))
					time.Sleep(time.Minute)
				}
				boost := id(w.Boost(bob, ids[59]))
				p := newPeer(t, w, social.Options{Streams: streams})
				p.start()
				p.seed(k, b)
				time.Sleep(3 * time.Hour)
				if had := p.posts(k); len(had) != 60 || had[ids[0]].Text == "" || p.posts(b)[boost].BoostOf == "" {
					t.Fatalf("%d posts before, %+v", len(had), p.posts(b))
				}
				if err := w.Describe(ana, "I have changed my mind. #nobot"); err != nil {
					t.Fatal(err)
				}
				news := id(w.Post(ana, "one more"))
				time.Sleep(2 * time.Hour)
				had := p.posts(k)
				for _, id := range ids {
					if !blank(had[id]) {
						t.Fatalf("a post of someone who opted out: %+v", had[id])
					}
				}
				if _, kept := had[news]; kept {
					t.Error("what was posted with the wish is kept")
				}
				r, err := p.store.Archive.Record(k)
				if d, derr := p.store.Queue.DueOf(k); err != nil || derr != nil || r.Text != "" || len(r.Raw) > 0 ||
					d.At.Before(time.Now().Add(60*24*time.Hour)) || d.Reason != "the profile says #nobot" {
					t.Errorf("%+v %v %+v %v", r, err, d, derr)
				}
				time.Sleep(50 * time.Hour)
				if r := p.posts(b)[boost]; !r.Deleted || r.BoostOf != "" || len(r.Raw) > 0 {
					t.Errorf("a boost of someone who opted out: %+v", r)
				}
				if err := w.Describe(ana, "and again"); err != nil {
					t.Fatal(err)
				}
				p.again(k)
				time.Sleep(time.Hour)
				if had = p.posts(k); had[ids[0]].Text == "" || had[news].Text == "" {
					t.Errorf("who took the wish back is not read: %+v", had[ids[0]])
				}
				p.end()
			})
		})
	}
}

// The searches of the other services also obey the profile that comes with a post.
func TestSearchesObeyTheProfileBesideEachPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := skies(t, blueskytest.Options{Seed: 5, People: 10, Quiet: true, Rate: -1}, social.Options{})
		var open []string
		hidden := ""
		for did, a := range w.Truth().Accounts {
			if a.NoUnauthenticated {
				hidden = did
			} else {
				open = append(open, did)
			}
		}
		acct := func(did string) string {
			user, _, _ := strings.Cut(w.Handle(did), ".")
			return user
		}
		if hidden == "" || len(open) < 2 {
			t.Fatal("nobody hides")
		}
		id := ok(t)
		for _, did := range open {
			if err := w.Describe(acct(did), "a person"); err != nil {
				t.Fatal(err)
			}
		}
		theirs, first, other := id(w.Post(acct(hidden), "not for you", "lisboa")),
			id(w.Post(acct(open[0]), "hello", "lisboa")), id(w.Post(acct(open[1]), "hello", "lisboa"))
		p.start()
		search := partition.Key("bluesky:search/%23lisboa")
		p.seed(search)
		time.Sleep(2 * time.Hour)
		had := p.written(search)
		if _, kept := had[theirs]; kept || len(had) != 2 {
			t.Errorf("%+v", had)
		}
		if err := w.Describe(acct(open[0]), "#nobot"); err != nil {
			t.Fatal(err)
		}
		id(w.Post(acct(open[0]), "hello again", "lisboa"))
		time.Sleep(2 * time.Hour)
		if had = p.written(search); !blank(had[first]) || had[other].Text == "" || len(had) != 2 {
			t.Errorf("%+v", had)
		}
		p.end()
	})
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 5, People: 10, Quiet: true, Rate: -1}, social.Options{}, 10)
		var open []string
		for id, a := range w.Truth().Accounts {
			if !a.Protected {
				open = append(open, id)
			}
		}
		user := func(id string) string { return w.Truth().Accounts[id].User }
		id := ok(t)
		for i, bio := range []string{"#NoBots", "a person", "a person"} {
			if err := w.Describe(user(open[i]), bio); err != nil {
				t.Fatal(err)
			}
		}
		uri := func(id string) string { return "https://x.com/i/status/" + id }
		theirs, first, other := id(w.Post(user(open[0]), "not for you", "lisboa")),
			id(w.Post(user(open[1]), "hello", "lisboa")), id(w.Post(user(open[2]), "hello", "lisboa"))
		p.start()
		search := partition.Key("twitter:search/%23lisboa")
		p.seed(search)
		time.Sleep(2 * time.Hour)
		had := p.written(search)
		if _, kept := had[uri(theirs)]; kept || len(had) != 2 {
			t.Errorf("%+v", had)
		}
		if err := w.Describe(user(open[1]), "#nobot"); err != nil {
			t.Fatal(err)
		}
		id(w.Post(user(open[1]), "hello again", "lisboa"))
		time.Sleep(2 * time.Hour)
		if had = p.written(search); !blank(had[uri(first)]) || had[uri(other)].Text == "" || len(had) != 2 {
			t.Errorf("%+v", had)
		}
		p.end()
	})
}

// A post that a server shows only to the owner of a token is not stored, in whatever form the
// server says so. If it was stored before, it becomes a tombstone.
func TestWhatIsNotForEverybodyIsNotKept(t *testing.T) {
	for _, word := range []string{"local", "list", "private", "direct", "mutuals_only"} {
		synctest.Test(t, func(t *testing.T) {
			w := world(t, mastodontest.Options{Seed: 9, People: 6, Remote: -1, Quiet: true, Rate: -1,
				Lies: mastodontest.Lies{Visibility: word}})
			ana := crowd(t, w)[0]
			k, id := accountKey(t, ana), ok(t)(w.Post(ana, "for some"))
			p := newPeer(t, w, social.Options{})
			p.start()
			p.seed(k)
			time.Sleep(time.Hour)
			if had := p.posts(k); len(had) != 0 {
				t.Errorf("%s: %+v", word, had)
			}
			w.Lie(func(l *mastodontest.Lies) { l.Visibility = "unlisted" })
			next := ok(t)(w.Post(ana, "for all"))
			time.Sleep(2 * time.Hour)
			if had := p.posts(k); had[id].Text == "" || had[next].Text == "" {
				t.Errorf("%s: for all by now: %+v", word, had)
			}
			w.Lie(func(l *mastodontest.Lies) { l.Visibility = word })
			ok(t)(w.Post(ana, "for some again"))
			time.Sleep(2 * time.Hour)
			if had := p.posts(k); len(had) != 2 || !had[id].Deleted || had[id].Text != "" ||
				had[id].Reason != "it is not for everybody" {
				t.Errorf("%s: %+v", word, had)
			}
			p.end()
		})
	}
}
