package schedule

import (
	"math"
	"time"
)

// MaxTold is the largest Item.Reported. Some visits do not rely on hints, so that hints that stop, or
// become wrong, are detected.
const MaxTold = 0.75

// due returns when a visit is worth price, for an item with hints about it, or an item that reports
// changes of others.
//
// A reported change causes its own visit (AfterHint). A plan is for the other changes, which have
// 1−Reported of the rate. In Value every λ has that factor k, so freshness is that of kτ over k, and
// age that of kτ over k².
//
// A list that reports Tells changes a day accumulates Tells·τ²/2 days of unnoticed staleness after
// τ days. −d/d(1/τ) of its mean is Tells·τ²/2 again. Unlike a page, a list is never too busy to be
// worth a visit.
func (it *Item) due(b *Belief, v Value, price, interval float64) float64 {
	k := 1 - it.Reported
	v.Age /= k
	if !(it.Tells > 0) {
		return v.due(b, k*price, interval) / k
	}
	return Solve(price, func(tau float64) float64 { return v.At(b, k*tau, interval)/k + it.Tells*tau*tau/2 })
}

// AfterHint returns when to visit an item again after a hint that it has changed since the last visit.
// ratio is the odds ratio of a change (change.Trust). The earlier decision stays if it is sooner.
// AfterHint is pure.
//
// The hint counts as time passed: the days without a hint that make a change equally likely. So the
// item is due at once, or sooner. It is due as before if it changes too fast to be worth a visit.
// Just after a visit, when nothing can have changed yet, a hint has little effect.
func AfterHint(it Item, b *Budget, ratio float64, now time.Time) Decision {
	it.Reported = 0 // the change is reported now, so hints do not lower the rate any more
	d := Decide(it, b, now)
	last, ok := it.History.Latest()
	if !ok || !last.sees() || !(ratio > 1) {
		return d
	}
	belief := b.Model.Believe(it.History)
	days := now.Sub(it.History.Last()).Hours() / 24
	if days <= 0 {
		return d
	}
	same := belief.Survive(days)
	d.Chance = ratio * (1 - same) / (same + ratio*(1-same))
	as := Solve(d.Chance, func(tau float64) float64 { return 1 - belief.Survive(tau) })
	if gained := math.Max(0, as-days); gained > 0 {
		d.At = d.At.Add(-time.Duration(math.Min(gained, longest) * float64(day)))
	}
	if d.At.Before(now) {
		d.At = now
	}
	return d
}
