package social_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition/racetest"
)

// delays follows a server of n people within a limit, for before days that do not count and then
// for days days. It returns which part of the posts was fetched within an hour and within six
// hours. It also returns the mean delay in hours, and the calls a day. A post that is missing
// counts with its delay until now.
func delays(t *testing.T, n int, limit mastodontest.Limit, before, days int) (hour, six, mean, perDay float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 31, People: n, Remote: -1, Quiet: true,
			Limits: []mastodontest.Limit{limit}})
		p := newPeer(t, w, social.Options{})
		p.start()
		p.seed(accountKeys(t, w.Users())...)
		time.Sleep(time.Duration(before) * 24 * time.Hour)
		from, asked := time.Now(), w.Report().Requests
		time.Sleep(time.Duration(days) * 24 * time.Hour)
		truth, now := w.Truth(), time.Now()
		posts := 0.0
		for acct, a := range truth.Accounts {
			if wishes(a) {
				continue
			}
			had := p.posts(accountKey(t, acct))
			for _, id := range a.Posts {
				made := truth.Posts[id].Created
				if boostsUnwilling(truth, id) {
					continue
				}
				if !made.After(from) || made.After(now.Add(-6*time.Hour)) {
					continue
				}
				at := now
				if r, ok := had[id]; ok {
					at = r.FetchedAt
				}
				d := at.Sub(made).Hours()
				posts++
				mean += d
				if d <= 1 {
					hour++
				}
				if d <= 6 {
					six++
				}
			}
		}
		hour, six, mean = hour/posts, six/posts, mean/posts
		r := w.Report()
		perDay = float64(r.Requests-asked) / float64(days)
		t.Logf("%d people, %d calls in %s: of %.0f posts %.4f within an hour, %.4f within six, mean %.3f h; %.0f calls a day, %d refused; %v", n, limit.Max, limit.Window, posts, hour, six, mean, perDay, r.Refused, r.ByPath)
		p.end()
	})
	return hour, six, mean, perDay
}

// Posts are fetched soon, at few calls. Before one call looked up several accounts, each account
// was visited after half of the mean gap between its posts. These people then cost 817 calls a day,
// with a mean delay of 3.73 hours.
func TestDelays(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	_, _, mean, calls := delays(t, 240, mastodontest.Limit{Name: "all", Max: 300, Window: 5 * time.Minute}, 1, 3)
	if mean > 3.73 || calls > 817 {
		t.Errorf("%.2f h for %.0f calls a day, before 3.73 h for 817", mean, calls)
	}
}

// Here two fifths of these calls are allowed. Without a price for the site all visits would be late
// by the same time: the mean delay was then 4.21 hours, at 288 calls a day.
func TestScarceCallsAreShared(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	_, _, mean, calls := delays(t, 240, mastodontest.Limit{Name: "all", Max: 24, Window: 2 * time.Hour}, 6, 6)
	if mean > 3.8 || calls > 288 {
		t.Errorf("%.2f h for %.0f calls a day, before 4.21 h for 288", mean, calls)
	}
}
