package social

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/store"
)

// times are when the last posts were made, the newest first.
func (v *visit) times() (out []time.Time) {
	for _, m := range v.st.marks() {
		for _, s := range m.Recent {
			at := s.At
			if at.IsZero() {
				at = bluesky.KeyTime(s.ID)
			}
			if !at.After(v.now) {
				out = append(out, at)
			}
		}
	}
	if len(v.st.Boosts.Recent) > 0 {
		slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	}
	return out
}

// between is the mean gap between the last posts, the time since the latest counted; not ok: the account has not
// posted for a month.
func (v *visit) between() (gap time.Duration, ok bool) {
	recent := v.times()
	if len(recent) == 0 || recent[0].IsZero() || v.now.Sub(recent[0]) >= silent {
		return 0, false
	}
	n := min(len(recent), 20)
	return v.now.Sub(recent[n-1]) / time.Duration(n), true
}

// together is a time about that long from now at which others of the site fall due, too, where they can be looked up in
// one call.
func (v *visit) together(wait time.Duration) time.Time {
	at := v.now.Add(wait)
	if v.api.most() < 2 {
		return at
	}
	grid := time.Minute
	for 16*grid <= wait { // 1/8 later at most
		grid *= 2
	}
	return at.Add(grid - time.Nanosecond).Truncate(grid)
}

// again ends a visit of somebody who is followed: looked at again when next says.
func (v *visit) again() (err error) {
	v.res.Next = store.Next{State: store.StateDone}
	v.res.Next.At, v.res.Next.Reason, err = v.next()
	v.st.Poll = v.res.Next.At
	return err
}

// next is when an account is looked at again, and why then: after half of the mean gap between its last
// posts, the time since the latest counted, so that a burst is met by a page; a quarter, where it is looked up with
// others. Who has not posted for a month waits for the quiet hours of a day.
func (v *visit) next() (at time.Time, why string, err error) {
	if gap, ok := v.between(); ok {
		wait := gap / 2
		if v.api.most() > 1 && v.api.counts(v.st.Claimed) { // that nothing is new costs a part of a call
			wait = gap / 4
		}
		least, most := v.s.o.Least, v.s.o.Most
		wait = min(max(wait, least), most)
		site := v.t.Due.Key.Site()
		if !v.before.IsZero() {
			v.s.prices.visited(site, gap, wait, v.now.Sub(v.before), most, v.t.Due.At)
		}
		scarce := ""
		if dear := min(v.s.prices.wait(site, gap), most); dear > wait {
			wait, scarce = dear, ", as calls are scarce"
		}
		if v.trusted() {
			v.st.Plain = v.together(wait)
			wait, scarce = min(trustedLess*wait, max(most, wait)), scarce+", as a stream tells of what it posts"
		}
		return v.together(wait), fmt.Sprintf("posted every %s of late, again after %s%s", brief(gap), brief(wait),
			scarce), nil
	}
	const quiet = "no post for a month"
	if v.s.o.Most < 24*time.Hour {
		return v.together(v.s.o.Most), fmt.Sprintf("%s, again after %s", quiet, brief(v.s.o.Most)), nil
	}
	from, err := v.s.hours.quiet(v.t.Due.Key.Site())
	if err != nil {
		return time.Time{}, "", err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(v.t.Due.Key)) // never fails
	within := time.Duration(float64(h.Sum32()) / (1 << 32) * float64(quietFor))
	if v.api.most() > 1 {
		within = within.Truncate(quietFor / 16)
	}
	at = v.now.Truncate(24 * time.Hour).Add(time.Duration(from) * time.Hour)
	for at.Before(v.now.Add(12 * time.Hour)) {
		at = at.Add(24 * time.Hour)
	}
	return at.Add(within), quiet + ", again in the quiet hours of a day", nil
}

// brief is a time in words for people, to two digits or so: 45s, 12m, 3h20m, 5d.
func brief(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}
