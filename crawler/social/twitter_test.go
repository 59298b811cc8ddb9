package social_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

const dollar = 1_000_000

// birds returns an API that runs by the clock of the test and is a month old. It also returns a
// peer that follows it with that many dollars a day; 0 means without a token.
func birds(t *testing.T, o twittertest.Options, so social.Options, dollars int64) (*twittertest.World, *peer) {
	t.Helper()
	o.Clock = time.Now
	o.Start = time.Now().Add(-30 * 24 * time.Hour)
	o.Tokens = []string{"s3cret"}
	w, err := twittertest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	so.X = "https://api.x.test"
	p := newPeer(t, w, so, "api.x.test")
	if dollars > 0 {
		p.o.Tokens = xToken(t, dollars)
	}
	return w, p
}

func xToken(t *testing.T, dollars int64) []social.Token {
	t.Helper()
	c, err := service.NewCredential("app", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	return []social.Token{{Service: "twitter", Credential: c, Daily: dollars * dollar}}
}

func xKey(id string) partition.Key { return partition.Key("twitter:" + id) }

func wishesX(a twittertest.Account) bool { return strings.Contains(strings.ToLower(a.Bio), "#nobot") }

// writer returns an account that may be followed and has some posts.
func writer(w *twittertest.World) (who partition.Key) {
	for id, a := range w.Truth().Accounts {
		if !wishesX(a) && !a.Protected && len(a.Posts) > 3 && (who == "" || xKey(id) < who) {
			who = xKey(id)
		}
	}
	return who
}

// sameAsX compares what p has with the truth. What was made after until may be missing.
func (p *peer) sameAsX(truth twittertest.Truth, until time.Time) (posts, tombstones int) {
	p.t.Helper()
	for id, a := range truth.Accounts {
		had := p.written(xKey(id))
		if wishesX(a) || a.Protected {
			if len(had) > 0 {
				p.t.Errorf("%s is not to be collected, and %d posts are kept", id, len(had))
			}
			continue
		}
		if a.Suspended {
			continue
		}
		shown := map[string]bool{}
		for _, id := range a.Posts {
			want := truth.Posts[id]
			uri := "https://x.com/i/status/" + want.Versions[0]
			has := had[uri]
			shown[uri] = true
			switch {
			case want.Boost != "" && wishesX(truth.Accounts[truth.Posts[want.Boost].By]):
				if has.Post != "" && !has.Deleted {
					p.t.Errorf("%s, whose author asks not to be collected, is kept as a boost", uri)
				}
			case want.At.After(until):
			case has.Post == "":
				p.t.Errorf("%s of %s is missing", uri, want.At)
			case has.Deleted:
				p.t.Errorf("%s is there, and taken for deleted", uri)
			case want.Boost == "" && has.Text != want.Text:
				p.t.Errorf("%s: %q, want %q", uri, has.Text, want.Text)
			}
			posts++
		}
		for uri, r := range had {
			if r.Deleted {
				if tombstones++; shown[uri] && !strings.Contains(r.Reason, "#nobot") {
					p.t.Errorf("%s is shown, and is taken for deleted", uri)
				}
			}
		}
	}
	return posts, tombstones
}

// withinMoney compares the bill of each day with what may be spent.
func (p *peer) withinMoney(w *twittertest.World, dollars int64) {
	p.t.Helper()
	for day, bill := range w.Bill() {
		if bill > dollars*dollar {
			p.t.Errorf("%s: %d spent of %d", day, bill, dollars*dollar)
		}
	}
}

// A peer follows all people of X, seeded by their names, within the limits of each kind of call and
// the money of each day.
func TestXIsFollowedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 5, People: racetest.Fewer(t, 40), Quiet: true,
			Limits: twittertest.XLimits()}, social.Options{Lists: true}, 40)
		p.start()
		var seeds []partition.Key
		for _, u := range w.Users() {
			name, _, _ := strings.Cut(u, "@")
			k, err := partition.ParseKey("twitter:" + strings.ToUpper(name))
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, k)
		}
		p.seed(seeds...)
		time.Sleep(3 * 24 * time.Hour)
		truth := w.Truth()
		posts, _ := p.sameAsX(truth, time.Now().Add(-37*time.Hour))
		lists := 0
		for id, want := range truth.Accounts {
			if wishesX(want) {
				continue
			}
			rec, err := p.store.Archive.Record(xKey(id))
			if err != nil || rec.Kind != store.KindProfile || rec.Title != want.Name || rec.Author != want.User ||
				rec.Source != "twitter" || !slices.Contains(rec.Declared, want.Place) {
				t.Errorf("profile of %s: %+v %v", id, rec, err)
			}
			if want.Protected {
				if gaps := p.gaps(xKey(id)); len(gaps) == 0 || gaps[0].What != store.GapSkipped {
					t.Errorf("protected: %+v", gaps)
				}
				continue
			}
			for name, members := range map[string][]string{"/followers": want.Followers, "/following": want.Following} {
				var keys []string
				for _, m := range members {
					keys = append(keys, "twitter:"+m)
				}
				slices.Sort(keys)
				if got := p.edges(xKey(id) + partition.Key(name)); !slices.Equal(got, keys) {
					t.Errorf("%s%s: %d, want %d; gaps %+v", id, name, len(got), len(keys),
						p.gaps(xKey(id)+partition.Key(name)))
				}
				lists++
			}
		}
		p.withinMoney(w, 40)
		if r := w.Report(); r.Refused != 0 || posts < 100 || lists < racetest.Fewer(t, 20) {
			t.Errorf("%d posts, %d lists; %+v", posts, lists, r)
		}
		t.Logf("%d people, %d posts, %d lists, %d requests: %v; bills %v", len(seeds), posts, lists,
			w.Report().Requests, w.Report().ByPath, w.Bill())
		p.end()
	})
}

// With little money a backlog takes days. Each day's money is spent, and no more, also by a peer
// that crashes again and again.
func TestMoneyIsSpentAndNotExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 8, People: racetest.Fewer(t, 60), Limits: twittertest.XLimits()},
			social.Options{}, 1)
		p.slow = 150 * time.Millisecond
		rng := rand.New(rand.NewPCG(1, 2))
		p.death = newDeath(p.fs, rng, 50)
		p.start()
		var seeds []partition.Key
		for _, id := range w.IDs() {
			seeds = append(seeds, xKey(id))
		}
		p.seed(seeds...)
		p.killed(20, 30, rng)
		p.rest(3 * 24 * time.Hour)
		p.withinMoney(w, 1)
		full := 0
		for _, bill := range w.Bill() {
			if bill > dollar*70/100 {
				full++
			}
		}
		if r := w.Report(); r.Refused != 0 || full < 2 && !racetest.Small(t) {
			t.Errorf("%d days full; bills %v; %+v", full, w.Bill(), r)
		}
		t.Logf("bills %v, %d requests", w.Bill(), w.Report().Requests)
		p.end()
	})
}

// An edited post is another version of the same post. A deleted post becomes a tombstone, also in a
// search. A suspended account costs no more calls.
func TestXEditsDeletesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 9, People: 12, Quiet: true, Rate: -1}, social.Options{}, 50)
		p.start()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var names, ids []string
		for id, a := range w.Truth().Accounts {
			if !wishesX(a) && !a.Protected {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for _, id := range ids {
			names = append(names, w.Truth().Accounts[id].User)
		}
		var posts []string
		for range 6 {
			id, err := w.Post(names[0], "bom dia a todos", "lisboa")
			must(err)
			posts = append(posts, id)
			time.Sleep(time.Minute)
		}
		who, gone, search := xKey(ids[0]), xKey(ids[1]), partition.Key("twitter:search/%23lisboa")
		p.seed(who, gone, search)
		time.Sleep(time.Hour)
		if n := len(p.written(who)); n != 6 {
			t.Fatalf("%d posts before, want 6", n)
		}
		must(w.Edit(posts[4], "boa tarde a todos"))
		must(w.Delete(posts[2]))
		must(w.Suspend(names[1]))
		time.Sleep(52 * time.Hour)
		had, uri := p.written(who), "https://x.com/i/status/"
		if r := had[uri+posts[4]]; r.Text != "boa tarde a todos" || r.EditedAt == nil || len(r.Edits) != 1 ||
			len(had) != 6 {
			t.Errorf("edited: %d, %+v", len(had), r)
		}
		if r := had[uri+posts[2]]; !r.Deleted || r.Text != "" {
			t.Errorf("deleted: %+v", r)
		}
		if found := p.written(search); len(found) != 6 || found[uri+posts[0]].By != who ||
			!found[uri+posts[2]].Deleted {
			t.Errorf("search: %+v", found)
		}
		if d, err := p.store.Queue.DueOf(gone); err != nil || d.At.Before(time.Now().Add(60*24*time.Hour)) ||
			d.Reason != "suspended" {
			t.Errorf("%s costs a call at %s: %s %v", gone, d.At, d.Reason, err)
		}
		p.end()
	})
}

// Without a token X is not asked at all, and the ledger says why. With a token it is asked.
func TestXNeedsAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 9, People: 12, Quiet: true}, social.Options{}, 0)
		p.start()
		who := writer(w)
		p.seed(who)
		time.Sleep(50 * time.Hour)
		gaps := p.gaps(who)
		d, err := p.store.Queue.DueOf(who)
		if n := w.Report().Requests; n != 0 || len(gaps) == 0 || gaps[0].What != store.GapSkipped ||
			!strings.Contains(gaps[0].Reason, "--token-file") || err != nil || !strings.Contains(d.Reason, "token") {
			t.Errorf("%d requests, gaps %+v, %q %v", n, gaps, d.Reason, err)
		}
		p.end()
		p.o.Tokens = xToken(t, 5)
		p.start()
		time.Sleep(25 * time.Hour)
		if n := len(p.written(who)); n < 3 {
			t.Errorf("%d posts with a token", n)
		}
		p.end()
	})
}

// Work that costs more than a day's money is in the ledger, and does not delay cheaper work.
func TestWhatIsTooDearIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 9, People: 12, Quiet: true}, social.Options{Lists: true}, 1)
		// pays for six users, or twelve posts; a page of a list has at least ten users
		p.o.Tokens[0].Daily = 60_000
		p.start()
		who := writer(w)
		p.seed(who)
		time.Sleep(4 * 24 * time.Hour)
		if gaps := p.gaps(who + "/followers"); len(gaps) == 0 || gaps[0].What != store.GapSkipped ||
			!strings.Contains(gaps[0].Reason, "never") {
			t.Errorf("gaps %+v", gaps)
		}
		if n := len(p.written(who)); n < 4 {
			t.Errorf("%d posts", n)
		}
		for day, bill := range w.Bill() {
			if bill > 60_000 {
				t.Errorf("%s: %d", day, bill)
			}
		}
		p.end()
	})
}

// From one person others are found through posts and lists, at either service.
func TestFollowersOfFollowersAreFound(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		everybody := social.Options{Lists: true, Rules: follow.Rules{Follow: follow.Everybody}}
		sky, a := skies(t, blueskytest.Options{Seed: 21, People: 30, Quiet: true}, everybody)
		x, b := birds(t, twittertest.Options{Seed: 21, People: 30, Quiet: true}, everybody, 100)
		a.start()
		b.start()
		a.seed(partition.Key("bluesky:" + sky.Handle(sky.IDs()[2])))
		b.seed(xKey(x.IDs()[2]))
		time.Sleep(3 * 24 * time.Hour)
		found := func(p *peer, keys []partition.Key) (n int) {
			for _, k := range keys {
				if r, err := p.store.Archive.Record(k); err == nil && r.Kind == store.KindProfile {
					n++
				}
			}
			return n
		}
		var skyKeys, xKeys []partition.Key
		for _, id := range sky.IDs() {
			skyKeys = append(skyKeys, blueskyKey(id))
		}
		for _, id := range x.IDs() {
			xKeys = append(xKeys, xKey(id))
		}
		if n, m := found(a, skyKeys), found(b, xKeys); n < 25 || m < 25 {
			t.Errorf("of 30 found %d at Bluesky, %d at X", n, m)
		}
		a.end()
		b.end()
	})
}
