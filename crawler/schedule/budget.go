package schedule

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Budget is the input of a decision that does not depend on the item: the rate of visits and their
// price. Many decisions read it at once and none changes it. The peer's Meter creates a new one
// from time to time.
type Budget struct {
	// Interval is the mean time between two visits of one item if all items are visited equally. It
	// is the number of items divided by the visits per time. Required, positive.
	Interval time.Duration
	// Price is what a visit must be worth to this peer (see Value). 0 means FairPrice: the price at
	// which an item with the model's prior is due after Interval.
	Price float64
	// SitePrice is added for an item of a site that has fewer visits than the peer's mean. The
	// multipliers of nested constraints add. 0 = none.
	SitePrice float64
	// Model is the prior and the drift. Required; NewModel has learned nothing yet.
	Model Model
	// Rhythm is the population's rhythm of day and week. Zero = none.
	Rhythm Rhythm
	// Recency is how posts of the population cluster in time. Only for timelines. Zero = none.
	Recency Recency
	// Even is the share of visits, 0 to 1, that is spread evenly over all items (Meter.Guard).
	Even float64
	// AgePrice is Value.Age; 0 means the default, 0.1; negative means no price on age.
	AgePrice float64
	// Floor is the shortest time between two visits; 0 = none.
	Floor time.Duration
	// Ceiling is the longest time between two visits; 0 = 20 years.
	Ceiling time.Duration
}

// Validate returns one error that joins every fault.
func (b *Budget) Validate() error {
	var faults []error
	if b.Interval <= 0 {
		faults = append(faults, fmt.Errorf("interval %s is not positive", b.Interval))
	}
	if b.Price < 0 || b.SitePrice < 0 {
		faults = append(faults, fmt.Errorf("negative price %g + %g", b.Price, b.SitePrice))
	}
	if !(b.Even >= 0 && b.Even <= 1) {
		faults = append(faults, fmt.Errorf("even share %g", b.Even))
	}
	if b.Floor < 0 || b.Ceiling < 0 || b.Ceiling > 0 && b.Floor > b.Ceiling {
		faults = append(faults, fmt.Errorf("floor %s, ceiling %s", b.Floor, b.Ceiling))
	}
	if err := b.Model.Validate(); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("schedule: budget: %w", errors.Join(faults...))
	}
	return nil
}

// price returns what a visit must be worth; page is as in Item.
func (b *Budget) price(page int) float64 {
	if b.Price > 0 {
		return b.Price + b.SitePrice
	}
	return b.FairPrice(page) + b.SitePrice
}

// defaultAge makes visits to items that change too fast worthwhile. Without it freshness is also
// lower in nearly every contest, because the model never learns about an item without visits.
const defaultAge = 0.1

// ageCost returns AgePrice with its default.
func (b *Budget) ageCost() float64 {
	switch {
	case b.AgePrice < 0:
		return 0
	case b.AgePrice == 0:
		return defaultAge
	}
	return b.AgePrice
}

// FairPrice returns the price at which an item with only the prior is due after the mean interval.
// A peer starts with it. page is as in Item.
func (b *Budget) FairPrice(page int) float64 {
	interval := b.Interval.Hours() / 24
	if page > 0 {
		return Timeline{Page: page}.At(&b.Model.Prior, interval, 0)
	}
	return Value{Age: b.ageCost()}.At(&b.Model.Prior, interval, interval)
}

// Meter finds the price at which demand equals the budget. Demand is the sum of 1/τ over the items
// with a plan. While demand is above the budget the price rises; while below, it falls. Lateness
// also raises the price, so that a backlog is worked off. There is one Meter for the peer, and one
// for each site that is short of visits. A Meter is not safe for concurrent use.
type Meter struct {
	base   float64 // log price: the integral of the excess
	late   float64 // smoothed lateness, in intervals
	demand float64 // visits per day that plans ask for
	age    float64 // days: sum over items of the mean age expected with the plans
	even   float64 // the same sum with uniform visits
	guard  float64 // how strongly age is guarded, 0 to 1
	passed float64 // intervals since the start
	// mean share of its plan that an item waits for its visit; hints make it less than 1
	lived float64
}

// Gains: a jump of demand by half settles within two intervals without oscillation
// (TestMeterSettles).
const (
	meterLate   = 0.5  // log price per interval of lateness
	meterGain   = 2.0  // log price per interval passed, if demand is e times the budget
	meterSmooth = 0.05 // of an interval: the averaging time of lateness
	meterMax    = 2.0  // largest excess and lateness that count
	meterLived  = 0.5  // of an interval: the averaging time of lived
	leastLived  = 0.05
	guardGain   = 3.0  // change of guard per interval passed, at twice the allowed age
	guardEven   = 0.35 // share of even visits at full guard; with 1 nothing would be learned
	guardAge    = 30.0 // factor of the price on age at full guard
	// part of uniform's age that is allowed, because the expected age is not exact
	ageMargin = 0.89
)

// NewMeter returns a Meter that starts at price.
func NewMeter(price float64) *Meter {
	return &Meter{base: math.Log(max(price, 1e-300)), lived: 1}
}

// Planned records that an item's plan was replaced. old is the previous decision, zero if there was
// none. new is the new one, zero if the item is no longer visited.
func (m *Meter) Planned(old, new Decision) {
	if old.Tau > 0 {
		m.demand -= 1 / old.Tau
	}
	if new.Tau > 0 {
		m.demand += 1 / new.Tau
	}
	m.age += new.Age - old.Age
	m.even += new.EvenAge - old.EvenAge
}

// Visited records one visit: how late it was, and the mean interval and the number of items of the
// budget.
func (m *Meter) Visited(late, interval time.Duration, items int) {
	part := 1 / float64(max(1, items))
	l := min(max(late.Hours()/interval.Hours(), -meterMax), meterMax)
	m.late += min(1, part/meterSmooth) * (l - m.late)
	supply := float64(items) / interval.Hours() * 24
	excess := math.Log(max(m.demand/m.lived, supply*1e-3) / supply)
	m.base += meterGain * part * min(max(excess, -meterMax), meterMax)
	if m.even > 0 {
		m.passed += part
		// At first all beliefs are equal, and so are both ages. The margin therefore grows with
		// what is learned.
		margin := 1 - (1-ageMargin)*min(m.passed/4, 1)
		over := m.age/(margin*m.even) - 1
		m.guard = min(max(m.guard+guardGain*part*min(max(over, -0.1), 1), 0), 1)
	}
}

// Lived records the share of its plan's Tau that an item waited for its visit. It is 1 without
// hints. Plans ask for demand, but the visits are 1/lived times as frequent.
func (m *Meter) Lived(share float64, items int) {
	m.lived += min(1, 1/float64(max(1, items))/meterLived) * (min(max(share, 0), 1) - m.lived)
	m.lived = max(m.lived, leastLived)
}

// Price returns the current price of a visit (Budget.Price).
func (m *Meter) Price() float64 { return math.Exp(m.base + meterLate*m.late) }

// Guard sets b's price on age and its share of even visits. They are the least values that keep the
// expected age over all items below that of uniform visits. So the policy is the freshest one that
// is no older than uniform visits.
func (m *Meter) Guard(b *Budget) {
	b.Even = guardEven * m.guard
	b.AgePrice = defaultAge * math.Pow(guardAge, m.guard)
}
