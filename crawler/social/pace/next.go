package pace

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
)

// times returns when the last posts were made, the newest first.
func times(st *account.State, now time.Time) (out []time.Time) {
	for _, m := range st.Marks() {
		for _, s := range m.Recent {
			at := s.At
			if at.IsZero() {
				at = bluesky.KeyTime(s.ID)
			}
			if !at.After(now) {
				out = append(out, at)
			}
		}
	}
	if len(st.Boosts.Recent) > 0 {
		slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	}
	return out
}

// Between returns the mean gap between the last 20 posts; the time since the newest counts as one
// gap. ok is false if the account has not posted for a month.
func Between(st *account.State, now time.Time) (gap time.Duration, ok bool) {
	recent := times(st, now)
	if len(recent) == 0 || recent[0].IsZero() || now.Sub(recent[0]) >= account.Silent {
		return 0, false
	}
	n := min(len(recent), 20)
	return now.Sub(recent[n-1]) / time.Duration(n), true
}

// Pace decides when accounts are visited again. Safe for concurrent use.
type Pace struct {
	Least, Most time.Duration // limits on the time between two visits of an account
	Prices      *Prices
	Curves      *Curves
}

// Account is an account that was visited.
type Account struct {
	Key     partition.Key
	State   *account.State
	Now     time.Time
	Before  time.Time // time of the visit before this one; zero = none
	Due     time.Time // when this visit was due
	Many    bool      // one call can look up several such accounts
	Counted bool      // a look-up shows whether there is anything new
	Trusted bool      // a stream reports all its posts; readings only check the stream
}

// together returns a time about wait from now. If accounts can be looked up in one call, the time
// is on a grid, so that accounts of a site fall due together.
func (a *Account) together(wait time.Duration) time.Time {
	at := a.Now.Add(wait)
	if !a.Many {
		return at
	}
	grid := time.Minute
	for 16*grid <= wait { // at most 1/8 later
		grid *= 2
	}
	return at.Add(grid - time.Nanosecond).Truncate(grid)
}

// Next returns when an account is visited again, and why. The wait is half of the mean gap between
// its last posts; the time since the newest counts as one gap. So one page has all posts of a
// burst. If a look-up of several accounts shows what is new, the wait is a quarter of the gap.
// Accounts that have not posted for a month wait for the quiet hours. For an account with a trusted
// stream, the State gets the time without the stream.
func (p *Pace) Next(a Account) (at time.Time, why string, err error) {
	gap, ok := Between(a.State, a.Now)
	if !ok {
		return p.nextQuiet(a)
	}
	wait := gap / 2
	if a.Many && a.Counted { // to find nothing new costs only a part of a call
		wait = gap / 4
	}
	wait = min(max(wait, p.Least), p.Most)
	site := a.Key.Site()
	if !a.Before.IsZero() {
		p.Prices.Visited(site, gap, wait, a.Now.Sub(a.Before), p.Most, a.Due)
	}
	scarce := ""
	if dear := min(p.Prices.Wait(site, gap), p.Most); dear > wait {
		wait, scarce = dear, ", as calls are scarce"
	}
	if a.Trusted {
		a.State.Plain = a.together(wait)
		wait, scarce = min(TrustedLess*wait, max(p.Most, wait)), scarce+", because a stream reports its posts"
	}
	why = fmt.Sprintf("posted every %s of late, again after %s%s", Brief(gap), Brief(wait), scarce)
	return a.together(wait), why, nil
}

// nextQuiet is Next for accounts that have not posted for a month.
func (p *Pace) nextQuiet(a Account) (at time.Time, why string, err error) {
	const quiet = "no post for a month"
	if p.Most < 24*time.Hour {
		return a.together(p.Most), fmt.Sprintf("%s, again after %s", quiet, Brief(p.Most)), nil
	}
	from, err := p.Curves.Quiet(a.Key.Site())
	if err != nil {
		return time.Time{}, "", err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(a.Key)) // never fails
	within := time.Duration(float64(h.Sum32()) / (1 << 32) * float64(quietFor))
	if a.Many {
		within = within.Truncate(quietFor / 16)
	}
	at = a.Now.Truncate(24 * time.Hour).Add(time.Duration(from) * time.Hour)
	for at.Before(a.Now.Add(12 * time.Hour)) {
		at = at.Add(24 * time.Hour)
	}
	return at.Add(within), quiet + ", again in the quiet hours of a day", nil
}

// Brief returns a duration for people, to about two digits: 45s, 12m, 3h20m, 5d.
func Brief(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}
