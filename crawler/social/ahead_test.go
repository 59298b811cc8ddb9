package social_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// profiles is the size of TestProfilesOfAStorm. For the 100,000 of the issue run
//
//	go test ./crawler/social -run Storm -profiles 100000 -timeout 2h
var profiles = flag.Int("profiles", 3000, "accounts of TestProfilesOfAStorm")

// storm gives a peer with so many credentials n accounts of X at once. It counts the fetched
// profiles after each time in at. For each credential the server allows as many look-ups as
// TwitterEcho had for 100,000 accounts: 180 in a quarter of an hour, scaled to n.
func storm(t *testing.T, n, credentials int, at ...time.Duration) (had []int) {
	t.Helper()
	limits := []storytest.Limit{
		{Name: "users", Class: "users", Max: max(180*n/100_000, 1), Window: 15 * time.Minute, Auth: true,
			Rolling: true},
		{Name: "posts", Class: "posts", Max: max(n/10, 1), Window: 15 * time.Minute, Auth: true, Rolling: true},
	}
	w, p := birds(t, twittertest.Options{Seed: 3, People: n, Quiet: true, Rate: 0.01, Limits: limits}, social.Options{},
		0)
	p.slow = 150 * time.Millisecond
	for i := range credentials {
		secret := fmt.Sprintf("s3cret%d", i)
		w.Accept(secret)
		c, err := service.NewCredential(fmt.Sprintf("app%d", i), secret)
		if err != nil {
			t.Fatal(err)
		}
		p.o.Tokens = append(p.o.Tokens, social.Token{Service: "twitter", Credential: c, Daily: 1_000_000 * dollar})
	}
	p.start()
	begun := time.Now()
	var keys []partition.Key
	for _, id := range w.IDs() {
		keys = append(keys, xKey(id))
	}
	p.seed(keys...)
	for _, d := range at {
		time.Sleep(time.Until(begun.Add(d)))
		n := 0
		for _, k := range keys {
			if _, err := p.store.Archive.Record(k); err == nil {
				n++
			}
		}
		had = append(had, n)
	}
	r := w.Report()
	t.Logf("%d accounts, %d credentials: %v profiles after %v; %v, %d refused", n, credentials, had, at, r.ByPath,
		r.Refused)
	if r.Refused != 0 {
		t.Errorf("%d refused", r.Refused)
	}
	if calls, all := r.ByPath["users"], had[len(had)-1]; calls > all/100+all/1000+2 {
		t.Errorf("%d look-ups for %d profiles", calls, all)
	}
	p.end()
	return had
}

// One credential needs at most 90 minutes for 100,000 profiles, at one call for each 100 of them.
// Meanwhile the posts of known accounts are read. Two credentials fetch twice as many in the same
// time.
func TestProfilesOfAStorm(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	var one, two []int
	synctest.Test(t, func(t *testing.T) { one = storm(t, *profiles, 1, 29*time.Minute, 90*time.Minute) })
	synctest.Test(t, func(t *testing.T) { two = storm(t, *profiles, 2, 29*time.Minute) })
	if one[1] != *profiles {
		t.Errorf("%d of %d profiles in 90 minutes", one[1], *profiles)
	}
	if ratio := float64(two[0]) / float64(one[0]); ratio < 1.98 {
		t.Errorf("two credentials had %.3f times as many profiles as one: %d, %d", ratio, two[0], one[0])
	}
}

// An account that posted nothing costs a part of a call. New, edited and deleted posts are fetched
// all the same.
func TestWhoIsIdleCostsAPartOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 12, People: racetest.Fewer(t, 60), Remote: -1, Quiet: true, Rate: -1,
			Limits: mastodontest.MastodonLimits()})
		users := w.Users()
		for _, u := range users { // all posted at least an hour ago
			for range 3 {
				if _, err := w.Post(u, "bom dia a todos"); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(2 * time.Hour)
		p := newPeer(t, w, social.Options{Least: time.Hour, Most: time.Hour})
		p.start()
		p.seed(accountKeys(t, users)...)
		time.Sleep(2 * time.Hour)
		before := w.Report()
		time.Sleep(20 * time.Hour)
		after := w.Report()
		reads, looks := after.ByPath["/api/v1/accounts/:id/statuses"]-before.ByPath["/api/v1/accounts/:id/statuses"],
			after.ByPath["/api/v1/accounts"]-before.ByPath["/api/v1/accounts"]
		if reads > 0 || looks < 15 || looks > 20*4 {
			t.Errorf("%d readings and %d look-ups in 20 h of %d people who posted nothing", reads, looks, len(users))
		}
		who := ""
		for _, u := range users {
			if a := w.Truth().Accounts[u]; !wishes(a) && !a.NoIndex {
				who = u
			}
		}
		id, err := w.Post(who, "boa tarde")
		if err != nil {
			t.Fatal(err)
		}
		old := w.Truth().Accounts[who].Posts
		// one post more and one less: the counter is the same, the day of the last post may differ
		if err := w.Delete(old[1]); err != nil {
			t.Fatal(err)
		}
		if err := w.Edit(old[2], "bom dia"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(26 * time.Hour)
		had := p.posts(accountKey(t, who))
		if had[id].Text != "boa tarde" || !had[old[1]].Deleted || had[old[2]].Text != "bom dia" {
			t.Errorf("new %q, deleted %v, edited %q", had[id].Text, had[old[1]].Deleted, had[old[2]].Text)
		}
		t.Logf("%d readings, %d look-ups of %d people in 20 h", reads, looks, len(users))
		p.end()
	})
}

// A counter that does not follow the posts is not trusted for long: everything is fetched within a
// day.
func TestACounterThatLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 5, People: racetest.Fewer(t, 30), Remote: -1, Quiet: true,
			Lies: mastodontest.Lies{Posted: 7}})
		p := newPeer(t, w, social.Options{})
		p.start()
		p.seed(accountKeys(t, w.Users())...)
		days := time.Duration(4)
		if racetest.Small(t) {
			days = 2
		}
		time.Sleep(days * 24 * time.Hour)
		if posts, _ := p.sameAsTruth(w.Truth(), time.Now().Add(-26*time.Hour)); posts < 100 {
			t.Errorf("%d posts", posts)
		}
		p.end()
	})
}

// An account that does not exist or is not public costs no more calls, neither alone nor in a
// look-up of others.
func TestWhoCannotBeReadCostsNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 9, People: 30, Quiet: true, Rate: -1}, social.Options{}, 50)
		p.start()
		nobody := xKey("77")
		keys := []partition.Key{nobody}
		for id, a := range w.Truth().Accounts {
			if a.Protected && !wishesX(a) {
				keys = append(keys, xKey(id))
			}
		}
		p.seed(keys...)
		time.Sleep(24 * time.Hour)
		if d, err := p.store.Queue.DueOf(nobody); err != nil || d.State != store.StateGone {
			t.Errorf("nobody: %+v, %v", d, err)
		}
		for _, k := range keys[1:] {
			if d, err := p.store.Queue.DueOf(k); err != nil || d.Reason != "protected" ||
				d.At.Before(time.Now().Add(28*24*time.Hour)) {
				t.Errorf("protected: %+v, %v", d, err)
			}
		}
		before := w.Report().Requests
		time.Sleep(20 * 24 * time.Hour)
		if after := w.Report().Requests; after != before || len(keys) < 2 {
			t.Errorf("%d calls in 20 days for %d accounts", after-before, len(keys))
		}
		p.end()
	})
}
