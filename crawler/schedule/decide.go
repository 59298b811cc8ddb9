package schedule

import (
	"fmt"
	"time"
)

// Item is one item to visit again.
type Item struct {
	History *History
	Weight  float64 // importance, mean about 1; 0 means 1
	Page    int     // posts per page of a timeline; 0 = an item judged by freshness
	// share of its first wait that it waits before the first revisit, in (0, 1); 0 means all of it
	Phase    float64
	Reported float64 // share of its changes that hints report in time, 0 to MaxTold
	Tells    float64 // changes of other items per day that a visit to it reports
}

// Decision is when an item is due, and the reasons.
type Decision struct {
	At      time.Time
	Tau     float64 // days from the last visit to At
	Rate    float64 // expected changes per day
	Chance  float64 // probability that it has changed by At
	Age     float64 // days: its expected mean age if visited every Tau
	EvenAge float64 // the same if visited every Budget.Interval, like all items
	Bound   string  // what set the time, if not the rule of Decide
}

// Why returns the reason in words, for `status`.
func (d Decision) Why() string {
	switch {
	case d.Bound != "":
		return d.Bound
	case d.Rate > 0:
		return fmt.Sprintf("changes every %s or so, %.0f%% changed by then", Span(1/d.Rate), 100*d.Chance)
	}
	return "every " + Span(d.Tau)
}

// Span formats a time in days for people.
func Span(days float64) string {
	switch {
	case days < 1.0/24:
		return fmt.Sprintf("%.0f min", days*1440)
	case days < 2:
		return fmt.Sprintf("%.1f h", days*24)
	case days < 730:
		return fmt.Sprintf("%.1f days", days)
	}
	return fmt.Sprintf("%.1f years", days/365)
}

// doubt is the weight of uniform visits, in visits. After n visits, the belief decides n ÷ (n +
// doubt) of an item's visits. A belief from one or two visits is often wrong, so this improves
// freshness and age.
const doubt = 2.0

// Decide returns when to visit an item again after its last visit, by the default policy of the
// package comment. It is pure and safe for concurrent use. Its cost does not depend on the number
// of items. An item that was never visited is due now.
//
// The crawl keeps the encoded history with the item, and one Budget and one Meter for each peer.
// After a fetch it adds the outcome to the history, calls Decide, and tells the Meter (Planned,
// Visited). It commits the history and the due time in one batch with the record.
//
// After about every hundred visits it sets the Budget's Price from the Meter and calls Guard. After
// longer and longer times, at least a mean interval apart, it fits the Model to at most a thousand
// histories. The Budget and the Meter are derived: after a crash they start again from FairPrice,
// and settle within two mean intervals. A site short of visits has its own Meter, whose Price is
// the SitePrice.
func Decide(it Item, b *Budget, now time.Time) Decision {
	d := Decision{At: now}
	if _, ok := it.History.Latest(); !ok {
		d.Bound = "never visited"
		return d
	}
	interval := b.Interval.Hours() / 24
	belief := b.Model.Believe(it.History)
	it.Reported = min(max(it.Reported, 0), MaxTold)
	d.Rate = belief.Mean()
	if it.Page > 0 {
		price := b.price(it.Page)
		t := Timeline{Page: it.Page, Weight: it.Weight}
		silence := it.History.Silence()
		d.Tau = Solve(price, func(tau float64) float64 { return t.At(&belief, tau, b.Recency.Extra(silence, tau)) })
	} else {
		d.Tau = it.due(&belief, Value{Age: b.ageCost(), Weight: it.Weight}, b.price(it.Page), interval)
	}
	visits, _ := it.History.Totals()
	even := doubt / (doubt + float64(visits))
	if d.Tau > interval {
		d.Tau = blend(d.Tau, interval, even)
	}
	if it.Page == 0 {
		d.Tau = blend(d.Tau, interval, b.Even)
		untold := 1 - it.Reported
		d.Age, d.EvenAge = belief.age(untold*d.Tau)/untold, belief.age(interval)
	}
	d.Chance = 1 - belief.Survive(d.Tau)
	d.Schedule(it, b, now)
	return d
}

// blend gives share of an item's visits to uniform visits and the rest to tau.
func blend(tau, interval, share float64) float64 {
	return 1 / ((1-share)/tau + share/interval)
}

// Limits on revisits, for any result of the rule.
const (
	goneFirst = 1 * day       // a dead item is visited again after a day,
	goneLast  = 180 * day     // then after twice as long each time, up to this
	failFirst = 1 * time.Hour // an error gives no information: visit again soon
	failLast  = 7 * day
)

// Schedule converts Tau to At. It overrides Tau if the last visit did not find the item: gone items
// and errors have their own backoff.
//
// The first wait is shortened to the item's Phase; Tau does not change. Otherwise items that were
// found together would all be due together, after an interval without visits. With evenly spread
// phases, each has as many visits in any time as its Tau says, from the beginning.
func (d *Decision) Schedule(it Item, b *Budget, now time.Time) {
	h, phase := it.History, 1.0
	last, _ := h.Latest()
	switch last {
	case Gone, Redirect:
		n := h.Failures(last)
		d.Tau = backOff(goneFirst, goneLast, n)
		d.Bound = fmt.Sprintf("%s %d times, again after %s", last, n, Span(d.Tau))
	case Failed:
		n := h.Failures(last)
		d.Tau = min(d.Tau, backOff(failFirst, failLast, n))
		d.Bound = fmt.Sprintf("error %d times, again after %s", n, Span(d.Tau))
	}
	if floor := b.Floor.Hours() / 24; d.Tau < floor {
		d.Tau, d.Bound = floor, "no sooner than every "+Span(floor)
	}
	if ceil := b.Ceiling.Hours() / 24; ceil > 0 && d.Tau > ceil {
		d.Tau, d.Bound = ceil, "at least every "+Span(ceil)
	}
	if visits, _ := h.Totals(); visits == 0 && last.sees() && it.Phase > 0 {
		phase = min(it.Phase, 1)
	}
	at := h.Last()
	if at.After(now) { // our clock was set back
		at = now
	}
	wait := max(min(phase*max(d.Tau, 0), longest), b.Floor.Hours()/24)
	d.At = b.Rhythm.After(at, time.Duration(wait*float64(day)))
}

// backOff returns the wait in days after n failures in a row: first, then twice as long each, up to
// last.
func backOff(first, last time.Duration, n int) float64 {
	d := first
	for range min(n-1, 20) {
		d = min(2*d, last)
	}
	return d.Hours() / 24
}
