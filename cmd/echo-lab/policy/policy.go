// Package policy has the rules of papers for when to look again at an item, beside
// the crawler's own (package schedule), for the contest between them.
//
// Every rule has the same histories, budgets and limits. [Decide] is one function
// for all, so that what is compared is the rule alone.
package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
)

// Policy names a rule for when to look again.
type Policy string

// The policies. Default is what the crawl uses.
const (
	Default      Policy = "default"      // schedule.Decide
	Uniform      Policy = "uniform"      // everything equally often
	Proportional Policy = "proportional" // as often as it changes, by the estimated rate
	Classes      Policy = "classes"      // TwitterEcho's six priority classes
	Barbosa      Policy = "barbosa"      // static classifier first, then the heuristic one (thesis of 2003)
	Optimal      Policy = "optimal"      // Cho and Garcia-Molina 2003 with the estimated rate as if it were known
	Important    Policy = "important"    // Default times the item's weight
)

// All are all policies, Default first.
func All() []Policy {
	return []Policy{Default, Uniform, Proportional, Classes, Barbosa, Optimal, Important}
}

// Item is one thing to look at again, with what the rules of papers know of it.
type Item struct {
	schedule.Item
	Memo   Memo // what Classes and Barbosa remember between visits
	Static int  // the class a new item starts in under Barbosa, if Memo has none
}

// Budget is the crawler's, with what the rules of papers need.
type Budget struct {
	schedule.Budget
	Sizes [EchoClasses]int // how many items each class of Classes holds
}

// Decision is the crawler's, with what the rules of papers add.
type Decision struct {
	schedule.Decision
	Policy Policy
	Class  int  // of Classes and Barbosa, 0 the fastest; else -1
	Memo   Memo // to keep with the item
}

// Why says in words why the item is due then.
func (d Decision) Why() string {
	switch {
	case d.Bound != "":
		return d.Bound
	case d.Class >= 0:
		return fmt.Sprintf("%s: class %d, every %s", d.Policy, d.Class, schedule.Span(d.Tau))
	}
	return fmt.Sprintf("%s: %s", d.Policy, d.Decision.Why())
}

// Decide is when to look again at it after its last visit under p. It is pure and
// safe for concurrent use.
func Decide(p Policy, it Item, b *Budget, now time.Time) Decision {
	d := Decision{Policy: p, Class: -1}
	if p != Important {
		it.Weight = 0
	}
	if _, ok := it.History.Latest(); !ok || p == Default || p == Important {
		d.Decision = schedule.Decide(it.Item, &b.Budget, now)
		return d
	}
	d.At = now
	switch p {
	case Proportional:
		d.Rate = pointRate(it.History, b)
		d.Tau = b.price(p, it.Page) / d.Rate
	case Optimal:
		d.Rate = pointRate(it.History, b)
		d.Tau = KnownRate(d.Rate, b.price(p, it.Page))
	case Classes:
		d.classes(it, b)
	case Barbosa:
		d.barbosa(it, b)
	default:
		d.Tau = b.Interval.Hours() / 24
	}
	d.Schedule(it.Item, &b.Budget, now)
	return d
}

// pointRate is the estimate of the papers, kept from zero: half a change in the
// time watched, or in the mean interval if there was none.
func pointRate(h *schedule.History, b *Budget) float64 {
	watched := max(h.Last().Sub(h.First()).Hours(), b.Interval.Hours()) / 24
	return max(RatePerDay(h), 0.5/watched)
}

// price is what a visit must be worth under p; page as in schedule.Item.
func (b *Budget) price(p Policy, page int) float64 {
	if b.Price > 0 {
		return b.Price + b.SitePrice
	}
	return b.FairPrice(p, page) + b.SitePrice
}

// FairPrice is the price at which one who has only the prior is due after the
// mean interval under p: where a peer starts.
func (b *Budget) FairPrice(p Policy, page int) float64 {
	interval := b.Interval.Hours() / 24
	switch p {
	case Proportional:
		return 0.5 // with pointRate's half change: the mean interval
	case Barbosa, Classes, Uniform:
		return 1 // a stretch of the class's own period
	case Optimal:
		return worth(0.5/interval, interval)
	}
	return b.Budget.FairPrice(page)
}

// KnownRate is the interval in days at which Cho and Garcia-Molina's optimum visits
// an item that is known to change rate times a day, when a visit costs price.
func KnownRate(rate, price float64) float64 {
	return schedule.Solve(price, func(tau float64) float64 { return worth(rate, tau) })
}

// worth is what a visit is worth tau days after the last, of an item that is known
// to change rate times a day.
func worth(rate, tau float64) float64 {
	x := rate * tau
	if x < 1e-3 {
		return x * x / 2 / rate
	}
	return (1 - (1+x)*math.Exp(-x)) / rate
}
