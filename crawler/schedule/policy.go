package schedule

import (
	"fmt"
	"math"
	"time"
)

// Policy names a rule for when to look again.
type Policy string

// The policies. Default is what the crawl uses: the best measured.
const (
	Default      Policy = "default"      // belief over rates, freshness with a price on age
	Uniform      Policy = "uniform"      // everything equally often
	Proportional Policy = "proportional" // as often as it changes, by the estimated rate
	Classes      Policy = "classes"      // TwitterEcho's six priority classes
	Barbosa      Policy = "barbosa"      // static classifier first, then the heuristic one (thesis of 2003)
	Optimal      Policy = "optimal"      // Cho and Garcia-Molina 2003 with the estimated rate as if it were known
	Important    Policy = "important"    // Default times the item's weight
)

// Policies are all of them, Default first.
func Policies() []Policy {
	return []Policy{Default, Uniform, Proportional, Classes, Barbosa, Optimal, Important}
}

// Item is one thing to look at again.
type Item struct {
	History *History
	Weight  float64 // importance, mean about 1; 0 means 1. Only Important uses it
	Page    int     // posts in one answer of a timeline; 0 = a page, judged by freshness
	Expect  float64 // days between changes that a static classifier expects; 0 = nobody said
	Memo    Memo    // what Classes and Barbosa remember between visits
	Phase   float64 // share of its first wait after which it is looked at first, in (0, 1); 0 means all of it
	Told    float64 // share of its changes that somebody tells of as they happen, 0 to MaxTold. Only Default and Important use it
	Tells   float64 // changes of other items a day that a look at it tells of; likewise
}

// Decision is when an item is due and on what grounds.
type Decision struct {
	At      time.Time
	Policy  Policy
	Tau     float64 // days from the last visit to At
	Rate    float64 // changes per day expected
	Chance  float64 // that it will have changed At
	Age     float64 // days: its mean age expected if visited every Tau
	EvenAge float64 // and if visited every Budget.Interval, as under Uniform
	Class   int     // of Classes and Barbosa, 0 the fastest; else -1
	Memo    Memo    // to keep with the item
	Bound   string  // what set the time, if not the policy's own rule
}

// Why says in words why the item is due then, for `status`.
func (d Decision) Why() string {
	switch {
	case d.Bound != "":
		return d.Bound
	case d.Class >= 0:
		return fmt.Sprintf("%s: class %d, every %s", d.Policy, d.Class, span(d.Tau))
	case d.Rate > 0:
		return fmt.Sprintf("%s: changes every %s or so, %.0f%% changed by then", d.Policy, span(1/d.Rate), 100*d.Chance)
	}
	return fmt.Sprintf("%s: every %s", d.Policy, span(d.Tau))
}

func span(days float64) string {
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

// doubt is how many visits' worth of evidence uniform visiting is given: with n
// looks behind it, a belief decides n ÷ (n + doubt) of an item's visits. Beliefs
// from a look or two are wrong often enough that this gains freshness and age.
const doubt = 2.0

// Decide is when to look again at it after its last visit. It is pure and safe
// for concurrent use; its cost does not depend on how many items there are.
// An item never visited is due now.
func Decide(p Policy, it Item, b *Budget, now time.Time) Decision {
	d := Decision{Policy: p, Class: -1, At: now}
	h := it.History
	if _, ok := h.Latest(); !ok {
		d.Bound = "never visited"
		return d
	}
	interval := b.Interval.Hours() / 24
	switch p {
	case Uniform:
		d.Tau = interval
	case Proportional:
		d.Rate = pointRate(h, b)
		d.Tau = b.price(p, it.Page) / d.Rate
	case Optimal:
		d.Rate = pointRate(h, b)
		belief := sharp(d.Rate)
		d.Tau = solve(b.price(p, it.Page), belief.value)
	case Classes:
		d.classes(it, b)
	case Barbosa:
		d.barbosa(it, b)
	default:
		d.believed(p, it, b, interval)
	}
	d.bound(it, b, now)
	return d
}

// believed is the default rule and its weighted form.
func (d *Decision) believed(p Policy, it Item, b *Budget, interval float64) {
	belief := b.Model.Believe(it.History)
	it.Told = min(max(it.Told, 0), MaxTold)
	if it.Expect > 0 {
		belief = belief.Lean(it.Expect)
	}
	d.Rate = belief.Mean()
	weight := 1.0
	if p == Important {
		weight = it.Weight
	}
	if it.Page > 0 {
		price := b.price(p, it.Page)
		t := Timeline{Page: it.Page, Weight: weight}
		silence := it.History.Silence()
		d.Tau = solve(price, func(tau float64) float64 { return t.At(&belief, tau, b.Recency.Extra(silence, tau)) })
	} else {
		d.Tau = it.due(&belief, Value{Age: b.ageCost(), Weight: weight}, b.price(p, it.Page), interval)
	}
	visits, _ := it.History.Totals()
	even := doubt / (doubt + float64(visits))
	if d.Tau > interval {
		d.Tau = blend(d.Tau, interval, even)
	}
	if it.Page == 0 {
		d.Tau = blend(d.Tau, interval, b.Even)
		untold := 1 - it.Told
		d.Age, d.EvenAge = belief.age(untold*d.Tau)/untold, belief.age(interval)
	}
	d.Chance = 1 - belief.Survive(d.Tau)
}

// blend gives share of an item's visits to uniform visiting and the rest to tau.
func blend(tau, interval, share float64) float64 {
	return 1 / ((1-share)/tau + share/interval)
}

// pointRate is the estimate of the papers, kept from zero: half a change in the
// time watched, or in the mean interval if there was none.
func pointRate(h *History, b *Budget) float64 {
	watched := max(h.Last().Sub(h.First()).Hours(), b.Interval.Hours()) / 24
	return max(RatePerDay(h), 0.5/watched)
}

// sharp is a rate known for certain.
type sharp float64

func (r sharp) value(tau float64) float64 {
	x := float64(r) * tau
	if x < 1e-3 {
		return x * x / 2 / float64(r)
	}
	return (1 - (1+x)*math.Exp(-x)) / float64(r)
}

// Limits on revisits, whatever the policy says.
const (
	goneFirst = 1 * day       // a dead item is looked at again after a day,
	goneLast  = 180 * day     // then after twice as long each time, up to this
	failFirst = 1 * time.Hour // an error says nothing: soon again
	failLast  = 7 * day
)

// bound turns Tau into a time, and overrules the policy where the last visit
// found no item to speak of: deaths and errors back off on their own.
//
// A first wait is cut to the item's Phase, Tau stays what it is. Items that are met together
// would else all be due together, after an interval without a look at any; with phases
// spread evenly, each has as many looks in any time as its Tau says, from the first on.
func (d *Decision) bound(it Item, b *Budget, now time.Time) {
	h, phase := it.History, 1.0
	last, _ := h.Latest()
	switch last {
	case Gone, Redirect:
		n := h.Failures(last)
		d.Tau = backOff(goneFirst, goneLast, n)
		d.Bound = fmt.Sprintf("%s %d times, again after %s", last, n, span(d.Tau))
	case Failed:
		n := h.Failures(last)
		d.Tau = min(d.Tau, backOff(failFirst, failLast, n))
		d.Bound = fmt.Sprintf("error %d times, again after %s", n, span(d.Tau))
	}
	if floor := b.Floor.Hours() / 24; d.Tau < floor {
		d.Tau, d.Bound = floor, "no sooner than every "+span(floor)
	}
	if ceil := b.Ceiling.Hours() / 24; ceil > 0 && d.Tau > ceil {
		d.Tau, d.Bound = ceil, "at least every "+span(ceil)
	}
	if visits, _ := h.Totals(); visits == 0 && last.sees() && it.Phase > 0 {
		phase = min(it.Phase, 1)
	}
	at := h.Last()
	if at.After(now) { // a clock was set back
		at = now
	}
	wait := max(min(phase*max(d.Tau, 0), longest), b.Floor.Hours()/24)
	d.At = b.Rhythm.After(at, time.Duration(wait*float64(day)))
}

func backOff(first, last time.Duration, n int) float64 {
	d := first
	for range min(n-1, 20) {
		d = min(2*d, last)
	}
	return d.Hours() / 24
}

// KnownRate is the interval in days at which Cho and Garcia-Molina's optimum visits
// an item that is known to change rate times a day, when a visit costs price.
func KnownRate(rate, price float64) float64 { return solve(price, sharp(rate).value) }
