package schedule

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Budget is what a decision knows of everything else: what visits there are and
// what they cost. It is read by many decisions at once and changed by none; the
// peer's Meter makes a new one from time to time.
type Budget struct {
	// Interval is the mean time between two visits of one item if all were
	// visited equally: items ÷ visits per time. Required, positive.
	Interval time.Duration
	// Price is what a visit must be worth to this peer (see Value). 0 takes the
	// price at which an item of the model's prior would be due after Interval.
	Price float64
	// SitePrice is added for an item of a site whose own share of visits is
	// scarcer than the peer's: the multipliers of nested constraints add. 0 = not.
	SitePrice float64
	// Model is the prior and the drift. Required; NewModel knows nothing yet.
	Model Model
	// Rhythm is the population's day and week. Zero = none.
	Rhythm Rhythm
	// Recency is the population's sittings. Only timelines. Zero = none.
	Recency Recency
	// Even is the share of visits, 0 to 1, that go to all items alike (Meter.Guard).
	Even float64
	// AgePrice is Value.Age; 0 takes the default, 0.1, negative none.
	AgePrice float64
	// Floor is the least time between two visits; 0 = none.
	Floor time.Duration
	// Ceiling is the longest time an item is left alone; 0 = 20 years.
	Ceiling time.Duration
}

// Validate reports every fault.
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

// price is what a visit must be worth; page as in Item.
func (b *Budget) price(page int) float64 {
	if b.Price > 0 {
		return b.Price + b.SitePrice
	}
	return b.FairPrice(page) + b.SitePrice
}

// defaultAge makes what changes too fast worth a look: without it freshness is
// lower, too, in nearly every contest, as what is never looked at is never learned.
const defaultAge = 0.1

func (b *Budget) ageCost() float64 {
	switch {
	case b.AgePrice < 0:
		return 0
	case b.AgePrice == 0:
		return defaultAge
	}
	return b.AgePrice
}

// FairPrice is the price at which one who has only the prior is due after the
// mean interval: where a peer starts. page is as in Item.
func (b *Budget) FairPrice(page int) float64 {
	interval := b.Interval.Hours() / 24
	if page > 0 {
		return Timeline{Page: page}.At(&b.Model.Prior, interval, 0)
	}
	return Value{Age: b.ageCost()}.At(&b.Model.Prior, interval, interval)
}

// Meter finds the price at which demand meets the budget. Demand is what the
// plans made so far ask for, the sum of 1/τ over items; while it is above the budget
// the price rises, and falls while below. Lateness adds to it, so that a backlog is
// worked off. One Meter is kept for the peer, and one for each site that is short of
// visits. It is not safe for concurrent use.
type Meter struct {
	base   float64 // log price: the integral of the excess
	late   float64 // smoothed lateness, in intervals
	demand float64 // visits per day that plans ask for
	age    float64 // days: sum over items of the mean age expected under the plans
	even   float64 // and under uniform visits
	guard  float64 // of age, 0 to 1
	passed float64 // intervals since the start
	lived  float64 // mean share of its plan that an item waits for its visit: hints make it less than 1
}

// Gains: a jump of demand by half settles within two intervals without swinging
// (TestMeterSettles).
const (
	meterLate   = 0.5  // log price per interval late
	meterGain   = 2.0  // log price per interval passed, at e times the budget
	meterSmooth = 0.05 // of an interval, over which lateness is averaged
	meterMax    = 2.0  // excess and lateness counted
	meterLived  = 0.5  // of an interval, over which Lived is averaged
	leastLived  = 0.05
	guardGain   = 3.0  // of the guard per interval passed, at twice the age allowed
	guardEven   = 0.35 // share of even visits at full guard: not 1, or nothing would be learned
	guardAge    = 30.0 // times the price on age at full guard
	ageMargin   = 0.89 // of Uniform's age is allowed, as what is expected is not what is
)

// NewMeter starts at price.
func NewMeter(price float64) *Meter {
	return &Meter{base: math.Log(max(price, 1e-300)), lived: 1}
}

// Planned is told that an item's plan was replaced: the decision before, zero if
// there was none, and the new one, zero if the item is looked at no more.
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

// Visited is told of one visit: how late it was, and the mean interval and number
// of items of the budget.
func (m *Meter) Visited(late, interval time.Duration, items int) {
	part := 1 / float64(max(1, items))
	l := min(max(late.Hours()/interval.Hours(), -meterMax), meterMax)
	m.late += min(1, part/meterSmooth) * (l - m.late)
	supply := float64(items) / interval.Hours() * 24
	excess := math.Log(max(m.demand/m.lived, supply*1e-3) / supply)
	m.base += meterGain * part * min(max(excess, -meterMax), meterMax)
	if m.even > 0 {
		m.passed += part
		// At first all beliefs are one, and so are both ages: the margin comes in with
		// what is learned.
		margin := 1 - (1-ageMargin)*min(m.passed/4, 1)
		over := m.age/(margin*m.even) - 1
		m.guard = min(max(m.guard+guardGain*part*min(max(over, -0.1), 1), 0), 1)
	}
}

// Lived is told of a visit that was planned for so large a share of its plan's Tau,
// 1 but for hints. Plans ask for demand, but are visited 1/lived times as often.
func (m *Meter) Lived(share float64, items int) {
	m.lived += min(1, 1/float64(max(1, items))/meterLived) * (min(max(share, 0), 1) - m.lived)
	m.lived = max(m.lived, leastLived)
}

// Price is the price of a visit now (Budget.Price).
func (m *Meter) Price() float64 { return math.Exp(m.base + meterLate*m.late) }

// Guard sets b's price on age and share of even visits: the least at which the age
// expected over all items stays under Uniform's. So the policy is the
// freshest that is no older than visiting everything alike.
func (m *Meter) Guard(b *Budget) {
	b.Even = guardEven * m.guard
	b.AgePrice = defaultAge * math.Pow(guardAge, m.guard)
}
