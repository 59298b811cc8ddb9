// Package policy has rules from papers for when to look at an item again, for a contest with
// the crawler's own rule (package schedule).
//
// Every rule has the same histories, budgets and limits. [Decide] is one function for all, so
// that only the rules are compared.
package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
)

// Policy names a rule for when to look at an item again.
type Policy string

// The policies. The crawl uses Default.
const (
	Default      Policy = "default"      // schedule.Decide
	Uniform      Policy = "uniform"      // everything equally often
	Proportional Policy = "proportional" // in proportion to the estimated rate of change
	Classes      Policy = "classes"      // TwitterEcho's six priority classes
	// static classifier first, then the heuristic one (thesis of 2003)
	Barbosa Policy = "barbosa"
	// Cho and Garcia-Molina 2003, with the estimated rate treated as known
	Optimal   Policy = "optimal"
	Important Policy = "important" // Default times the item's weight
)

// All returns all policies, Default first.
func All() []Policy {
	return []Policy{Default, Uniform, Proportional, Classes, Barbosa, Optimal, Important}
}

// Item is one thing to look at again, with the data that the rules of papers need.
type Item struct {
	schedule.Item
	Memo   Memo // what Classes and Barbosa remember between visits
	Static int  // the class in which a new item starts under Barbosa, if Memo has none
}

// Budget is the crawler's budget, with the data that the rules of papers need.
type Budget struct {
	schedule.Budget
	Sizes [EchoClasses]int // how many items each class of Classes holds
}

// Decision is the crawler's decision, with what the rules of papers add.
type Decision struct {
	schedule.Decision
	Policy Policy
	Class  int  // of Classes and Barbosa, 0 the fastest; else -1
	Memo   Memo // the caller keeps it with the item
}

// Why says in words why the item is due at that time.
func (d Decision) Why() string {
	switch {
	case d.Bound != "":
		return d.Bound
	case d.Class >= 0:
		return fmt.Sprintf("%s: class %d, every %s", d.Policy, d.Class, schedule.Span(d.Tau))
	}
	return fmt.Sprintf("%s: %s", d.Policy, d.Decision.Why())
}

// Decide returns when to look at an item again after its last visit under p. It is pure and
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

// pointRate returns the estimate of the papers, kept above zero. Without a change, half a
// change counts in the time watched or in the mean interval.
func pointRate(h *schedule.History, b *Budget) float64 {
	watched := max(h.Last().Sub(h.First()).Hours(), b.Interval.Hours()) / 24
	return max(RatePerDay(h), 0.5/watched)
}

// price returns the value that a visit must have under p; page as in schedule.Item.
func (b *Budget) price(p Policy, page int) float64 {
	if b.Price > 0 {
		return b.Price + b.SitePrice
	}
	return b.FairPrice(p, page) + b.SitePrice
}

// FairPrice returns the price at which an item with only the prior is due after the mean
// interval under p. A peer starts with this price.
func (b *Budget) FairPrice(p Policy, page int) float64 {
	interval := b.Interval.Hours() / 24
	switch p {
	case Proportional:
		return 0.5 // with pointRate's half change: the mean interval
	case Barbosa, Classes, Uniform:
		return 1 // the class's own period, unstretched
	case Optimal:
		return worth(0.5/interval, interval)
	}
	return b.Budget.FairPrice(page)
}

// KnownRate returns the interval, in days, between visits in Cho and Garcia-Molina's optimum.
// The item is known to change rate times a day, and a visit costs price.
func KnownRate(rate, price float64) float64 {
	return schedule.Solve(price, func(tau float64) float64 { return worth(rate, tau) })
}

// worth returns the value of a visit tau days after the last one, for an item that is known to
// change rate times a day.
func worth(rate, tau float64) float64 {
	x := rate * tau
	if x < 1e-3 {
		return x * x / 2 / rate
	}
	return (1 - (1+x)*math.Exp(-x)) / rate
}
