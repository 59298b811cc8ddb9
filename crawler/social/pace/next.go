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

// times are when the last posts were made, the newest first.
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

// Between is the mean gap between the last posts, the time since the latest counted; not ok: the account has not
// posted for a month.
func Between(st *account.State, now time.Time) (gap time.Duration, ok bool) {
	recent := times(st, now)
	if len(recent) == 0 || recent[0].IsZero() || now.Sub(recent[0]) >= account.Silent {
		return 0, false
	}
	n := min(len(recent), 20)
	return now.Sub(recent[n-1]) / time.Duration(n), true
}

// Pace says when accounts are looked at again. Safe for concurrent use.
type Pace struct {
	Least, Most time.Duration // between two visits of an account
	Prices      *Prices
	Curves      *Curves
}

// Account is somebody who was visited.
type Account struct {
	Key     partition.Key
	State   *account.State
	Now     time.Time
	Before  time.Time // of the visit before this one; zero = there was none
	Due     time.Time // when this one was due
	Many    bool      // it is looked up with others in one call
	Counted bool      // that nothing is new a look-up tells
	Trusted bool      // a stream tells of what it posts, and need be held against readings only now and then
}

// together is a time about that long from now at which others of the site fall due, too, where they can be looked up in
// one call.
func (a *Account) together(wait time.Duration) time.Time {
	at := a.Now.Add(wait)
	if !a.Many {
		return at
	}
	grid := time.Minute
	for 16*grid <= wait { // 1/8 later at most
		grid *= 2
	}
	return at.Add(grid - time.Nanosecond).Truncate(grid)
}

// Next is when an account is looked at again, and why then: after half of the mean gap between its last
// posts, the time since the latest counted, so that a burst is met by a page; a quarter, where it is looked up with
// others. Who has not posted for a month waits for the quiet hours of a day. It notes in the State when that would be
// without a stream.
func (p *Pace) Next(a Account) (at time.Time, why string, err error) {
	gap, ok := Between(a.State, a.Now)
	if !ok {
		return p.nextQuiet(a)
	}
	wait := gap / 2
	if a.Many && a.Counted { // that nothing is new costs a part of a call
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

// nextQuiet is Next for who has not posted for a month.
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

// Brief is a time in words for people, to two digits or so: 45s, 12m, 3h20m, 5d.
func Brief(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}
