package social_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// A backlog is worked off as fast as the server allows, in each form in which servers announce
// limits. No call is refused. A Key that waits for the budget has not failed.
func TestAnAllowanceIsUsedAndNotExceeded(t *testing.T) {
	for _, says := range []mastodontest.Headers{mastodontest.ISO, mastodontest.NoHeaders} {
		synctest.Test(t, func(t *testing.T) {
			w := world(t, mastodontest.Options{Seed: 8, People: 1500, Remote: -1, Quiet: true, Rate: -1, Says: says,
				Limits: mastodontest.MastodonLimits()})
			p := newPeer(t, w, social.Options{})
			p.start()
			begun := time.Now()
			p.seed(accountKeys(t, w.Users())...)
			const windows = 4
			time.Sleep(windows*5*time.Minute - time.Minute)
			r := w.Report()
			const due = windows * 300 // less than a profile and a page of posts of each
			if r.Refused != 0 || r.Requests < due*97/100 {
				t.Errorf("%d requests in %s, %d refused; %d were allowed", r.Requests, time.Since(begun), r.Refused,
					due)
			}
			if s := p.crawler.Stats(); s.Failed != 0 || len(p.crawler.Failures()) != 0 {
				t.Errorf("%d failed: %+v", s.Failed, p.crawler.Failures())
			}
			b := p.src.Budgets()
			if len(b) != 1 || b[0].Site != "mastodon:m.test" || len(b[0].Buckets) == 0 {
				t.Errorf("%+v", b)
			}
			t.Logf("%d requests of %d", r.Requests, due)
			p.end()
		})
	}
}

// Peers with different addresses have separate budgets: four do four times as much.
func TestPeersAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := func(peers int) int {
			// a window begins
			time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(5 * time.Minute)))
			w := world(t, mastodontest.Options{Seed: 8, People: racetest.Fewer(t, 2400), Remote: -1, Quiet: true,
				Rate: -1, Limits: mastodontest.MastodonLimits()})
			users := w.Users()
			var all []*peer
			for i := range peers {
				p := newPeer(t, w, social.Options{})
				p.from = netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + i)})
				p.start()
				p.seed(accountKeys(t, users[i*len(users)/peers:(i+1)*len(users)/peers])...)
				all = append(all, p)
			}
			time.Sleep(9 * time.Minute) // two windows
			r := w.Report()
			if r.Refused != 0 {
				t.Errorf("%d peers: %d refused", peers, r.Refused)
			}
			for _, p := range all {
				p.end()
			}
			return r.Requests
		}
		one, four := rate(1), rate(4)
		t.Logf("one peer %d requests, four %d", one, four)
		if !racetest.Small(t) && 10*four < 38*one {
			t.Errorf("one peer made %d requests, four %d", one, four)
		}
	})
}

// Peers and their machines crash at any moment. A call that a crash interrupts counts as made, so
// no limit is exceeded. In the end everything is fetched.
func TestCrashesOverspendNothingAndLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 4, People: racetest.Fewer(t, 70), Quiet: true,
			Limits: []mastodontest.Limit{{Name: "anonymous", Max: 300, Window: 5 * time.Minute},
				{Name: "paging", Max: 300, Window: 15 * time.Minute, Paging: true}}})
		p := newPeer(t, w, social.Options{Lists: true, Calls: 3})
		p.slow = 150 * time.Millisecond // so that some crashes interrupt a call
		p.start()
		p.seed(accountKeys(t, w.Users())...)
		crashes := 200
		if racetest.Small(t) {
			crashes = 15
		}
		p.crashes(crashes, 10*time.Second)
		p.rest(3 * 24 * time.Hour)
		posts, _ := p.sameAsTruth(w.Truth(), time.Now().Add(-25*time.Hour))
		for acct, want := range w.Truth().Accounts {
			if want.Local && !wishes(want) {
				if got := p.edges(accountKey(t, acct) + "/followers"); len(got) != len(want.Followers) {
					t.Errorf("%s: %d followers, want %d", acct, len(got), len(want.Followers))
				}
			}
		}
		if r := w.Report(); r.Refused != 0 || posts < 100 {
			t.Errorf("%d posts, %d requests, %d refused", posts, r.Requests, r.Refused)
		}
		t.Logf("%d crashes, %d posts, %d requests", crashes, posts, w.Report().Requests)
		p.end()
	})
}

// A server whose limits are unknown is asked about once a second. Work that takes several calls
// still gets done, such as a profile and then the first page of a list.
func TestAnEvenPaceGetsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 6, People: 10, Remote: -1, Quiet: true, Rate: -1,
			Says: mastodontest.NoHeaders, Software: "pleroma", Version: "2.6.0"})
		p := newPeer(t, w, social.Options{Lists: true})
		p.start()
		p.seed(accountKeys(t, w.Users())...)
		time.Sleep(time.Hour)
		for acct, want := range w.Truth().Accounts {
			if got := p.edges(accountKey(t, acct) + "/followers"); !wishes(want) && len(got) != len(want.Followers) {
				t.Errorf("%s: %d followers, want %d", acct, len(got), len(want.Followers))
			}
		}
		if r := w.Report(); r.Requests > 150 {
			t.Errorf("%d requests for ten people", r.Requests)
		}
		p.end()
	})
}

// A server answers fifteen calls in six hours. The result of its probe is kept, so the calls that
// are left are used to follow people.
func TestATinyBudgetIsNotSpentOnProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 6, People: 4, Remote: -1, Quiet: true, Rate: -1,
			Limits: []mastodontest.Limit{{Name: "all", Max: 15, Window: 6 * time.Hour, All: true, Rolling: true}}})
		p := newPeer(t, w, social.Options{})
		p.start()
		p.seed(accountKeys(t, w.Users())...)
		time.Sleep(36 * time.Hour)
		for acct, want := range w.Truth().Accounts {
			if rec, err := p.store.Archive.Record(accountKey(t, acct)); err != nil || rec.Kind != store.KindProfile {
				t.Errorf("%s (%t): %+v %v", acct, wishes(want), rec, err)
			}
		}
		r := w.Report()
		if n := r.ByPath["/api/v2/instance"]; n != 1 || r.Refused > 1 {
			t.Errorf("asked %d times what it is, %d refused; %v", n, r.Refused, r.ByPath)
		}
		t.Logf("%d requests, %d refused: %v", r.Requests, r.Refused, r.ByPath)
		p.end()
	})
}
