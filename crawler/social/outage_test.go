package social_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// After a server was down for an hour, a day or three, each post that it still has is fetched. The
// ledger covers the others: posts that were deleted meanwhile, and posts that a server with one
// page only no longer shows.
func TestOutagesAreCaughtUp(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	for _, c := range []struct {
		name string
		down time.Duration
		lies mastodontest.Lies
	}{
		{name: "1 h", down: time.Hour},
		{name: "1 d", down: 24 * time.Hour},
		{name: "3 d", down: 3 * 24 * time.Hour},
		{name: "3 d, one page", down: 3 * 24 * time.Hour, lies: mastodontest.Lies{IgnoresSince: true, IgnoresMin: true,
			IgnoresMax: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { goesDown(t, c.down, c.lies) })
		})
	}
}

func goesDown(t *testing.T, d time.Duration, lies mastodontest.Lies) {
	w := world(t, mastodontest.Options{Seed: 11, People: 16, Rate: 4, Limits: mastodontest.MastodonLimits(),
		Lies: lies})
	p := newPeer(t, w, social.Options{})
	p.start()
	var who []string
	for _, u := range w.Users() {
		if a := w.Truth().Accounts[u]; !wishes(a) && a.Local && !a.Suspended {
			who = append(who, u)
		}
	}
	p.seed(accountKeys(t, who)...)
	time.Sleep(24 * time.Hour)
	began := time.Now()
	w.Lie(func(l *mastodontest.Lies) { l.Down = 503 })
	time.Sleep(d)
	w.Lie(func(l *mastodontest.Lies) { l.Down = 0 })
	ended := time.Now()
	time.Sleep(36 * time.Hour)
	var posted, late, lost, told int
	truth := w.Truth()
	for _, u := range who {
		k := accountKey(t, u)
		had, gaps := p.posts(k), p.gaps(k)
		// while the server was down; what was still there was read afterwards
		asked, rest := false, false
		for _, g := range gaps {
			if g.What == store.GapUnreachable {
				rest = !g.ReadAt.IsZero()
				if asked = true; rest && g.ReadAt.Before(ended) || g.To.Before(began) ||
					g.To.After(ended.Add(time.Minute)) || g.From.Before(began.Add(-25*time.Hour)) {
					t.Errorf("%s: unreachable from %s to %s, down from %s to %s", u, g.From, g.To, began, ended)
				}
			}
		}
		if asked && !rest && lies == (mastodontest.Lies{}) {
			t.Errorf("%s: the ledger does not say that all was read after the outage: %+v", u, gaps)
		}
		if !asked && d >= 24*time.Hour {
			t.Errorf("%s: the ledger has no outage: %+v", u, gaps)
		}
		for id, post := range truth.Posts { // including deleted posts
			at := post.Created
			if post.By != u || at.Before(began) || at.After(ended) || boostsUnwilling(truth, id) {
				continue
			}
			posted++
			switch has, shown := had[id].Post != "", post.Shown; {
			case has:
				late++
			case shown && lies == mastodontest.Lies{}:
				t.Errorf("%s: post %s of %s is on the server and was not had", u, id, at)
			case asked || shown:
				if lost++; inLedger(gaps, at) {
					told++
				} else {
					t.Errorf("%s: post %s of %s was not had (shown: %t), and the ledger does not say so: %+v", u, id,
						at, shown, gaps)
				}
			}
		}
	}
	t.Logf("down for %s: %d people, %d posts meanwhile, %d had afterwards, %d not, %d of them in the ledger", d,
		len(who), posted, late, lost, told)
	if late == 0 || d > 24*time.Hour && told == 0 {
		t.Error("nothing was tried")
	}
	p.end()
}

// inLedger reports whether a gap covers the time at.
func inLedger(gaps []store.Gap, at time.Time) bool {
	for _, g := range gaps {
		if !at.Before(g.From) && !at.After(g.To) {
			return true
		}
	}
	return false
}
