package schedule

import (
	"math"
	"time"
)

// MaxTold is the most that Item.Told may be: what hints do not tell of is looked
// for all the same, so that hints that stop, or begin to lie, are found out.
const MaxTold = 0.75

// due is when a visit is worth price, for an item of which others tell, or which
// tells of others.
//
// Changes that are told of bring a visit of their own (Heard). A plan is for the
// others, which come at 1−Told of the rate: in Value every λ has that factor k, so
// freshness is that of kτ over k, and age that of kτ over k².
//
// A list that tells of Tells changes a day has let Tells·τ²/2 days of staleness pass
// unnoticed after τ days, and −d/d(1/τ) of the mean of that is Tells·τ²/2 again: it
// is never too busy to be worth a look, as a page may be.
func (it *Item) due(b *Belief, v Value, price, interval float64) float64 {
	k := 1 - it.Told
	v.Age /= k
	if !(it.Tells > 0) {
		return v.due(b, k*price, interval) / k
	}
	return Solve(price, func(tau float64) float64 { return v.At(b, k*tau, interval)/k + it.Tells*tau*tau/2 })
}

// Heard is when to look again at it, now that somebody says that it has changed
// since the last visit, which makes that ratio times as likely, as odds
// (change.Trust). The decision before it stands if that is sooner. It is pure.
//
// The word counts as time passed: the item is as it would be after as many days
// without a word as make it as likely to have changed. So it is due at once, or
// sooner, or as before if what changes too fast is not worth a visit; and just after a
// visit, when nothing can have changed yet, a word says little.
func Heard(it Item, b *Budget, ratio float64, now time.Time) Decision {
	it.Told = 0 // it has been told of: what others do not tell of matters no more
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
