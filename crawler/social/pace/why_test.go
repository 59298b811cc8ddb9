package pace

import (
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
)

// The next visit of an account has a reason that says why it is then.
func TestWhyAnAccountIsDue(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	recent := func(gap time.Duration, n int) (out []service.Seen) {
		for i := range n {
			out = append(out, service.Seen{ID: string(rune('a' + i)), At: now.Add(-gap * time.Duration(i+1))})
		}
		return out
	}
	for _, tt := range []struct {
		recent []service.Seen
		most   time.Duration
		wait   time.Duration // 0 = in the quiet hours
		why    string
	}{
		{recent(6*time.Hour, 4), 24 * time.Hour, 3 * time.Hour, "posted every 6h0m of late, again after 3h0m"},
		{recent(5*24*time.Hour, 3), 24 * time.Hour, 24 * time.Hour, "posted every 5d of late, again after 24h0m"},
		{recent(time.Second, 20), 24 * time.Hour, time.Minute, "posted every 1s of late, again after 1m"},
		{recent(40*24*time.Hour, 1), time.Hour, time.Hour, "no post for a month, again after 1h0m"},
		{nil, 24 * time.Hour, 0, "no post for a month, again in the quiet hours of a day"},
	} {
		k := partition.Key("mastodon:a@b.example")
		p := Pace{Least: time.Minute, Most: tt.most, Prices: NewPrices(now),
			Curves: &Curves{by: map[partition.Site]*curve{k.Site(): {}}}}
		st := account.State{Mark: service.Mark{Recent: tt.recent}}
		at, why, err := p.Next(Account{Key: k, State: &st, Now: now})
		if err != nil || why != tt.why || tt.wait != 0 && at.Sub(now) != tt.wait || at.Before(now) ||
			strings.ContainsAny(why, "\n\t") {
			t.Errorf("%d posts: after %s because %q, want %q", len(tt.recent), at.Sub(now), why, tt.why)
		}
	}
}
