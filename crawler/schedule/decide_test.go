package schedule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// budget returns a Budget with a mean interval of so many days, and nothing learned.
func budget(every float64) *Budget {
	return &Budget{Interval: time.Duration(every * float64(day)), Model: NewModel()}
}

// An item without visits is due now.
func TestNeverVisitedIsDueNow(t *testing.T) {
	d := Decide(Item{History: new(History)}, budget(10), t0)
	if !d.At.Equal(t0) || d.Why() != "never visited" {
		t.Errorf("%v %q", d.At, d.Why())
	}
}

// For any history, Decide is pure, returns a time in the future, and gives a reason.
func TestDecide(t *testing.T) {
	for _, word := range []string{"u", "uc", "uuuu", "ucccc", "ucucu", "ug", "ue", "ur", "eee"} {
		it, b := Item{History: story(word, 5), Weight: 1}, budget(10)
		d := Decide(it, b, it.History.Last())
		if d.At.Before(it.History.Last()) || d.Why() == "" || !(d.Tau >= 0) {
			t.Errorf("%q: %+v", word, d)
		}
		if again := Decide(it, b, it.History.Last()); again != d {
			t.Errorf("%q: two answers", word)
		}
	}
}

// An item that changes more often is visited more often.
func TestDefaultFollowsChange(t *testing.T) {
	b := budget(10)
	quiet, busy, hectic := story("uuuuuuuuuuuuuuuu", 10), story("uucuuucuuuucuuuc", 10), story("uccccccccccccccc", 10)
	tau := func(h *History) float64 { return Decide(Item{History: h}, b, h.Last()).Tau }
	if !(tau(busy) < tau(quiet)/1.5) {
		t.Errorf("busy every %g days, quiet every %g", tau(busy), tau(quiet))
	}
	// An item that changes at every visit is never given up, for any budget: no class of items
	// starves.
	if h := tau(hectic); h > 60 {
		t.Errorf("hectic every %g days at a mean of 10", h)
	}
	d := Decide(Item{History: busy}, b, busy.Last())
	if at, why := d.At, d.Why(); at.Before(busy.Last()) || !strings.Contains(why, "changes every") {
		t.Errorf("next %v %q", at, why)
	}
	d = Decide(Item{History: busy, Page: 40}, b, busy.Last())
	if at, why := d.At, d.Why(); at.Before(busy.Last()) || why == "" {
		t.Errorf("next posts %v %q", at, why)
	}
}

// A greater weight gives more visits.
func TestWeightBuysVisits(t *testing.T) {
	h := story("uucuuucuuu", 10)
	b := budget(10)
	tau := func(w float64) float64 { return Decide(Item{History: h, Weight: w}, b, h.Last()).Tau }
	if !(tau(4) < tau(1) && tau(1) < tau(0.25)) {
		t.Errorf("weights 4, 1, 1/4: every %g, %g, %g days", tau(4), tau(1), tau(0.25))
	}
}

// Tau stays between floor and ceiling, and Why names the limit.
func TestFloorAndCeiling(t *testing.T) {
	b := budget(10)
	b.Floor, b.Ceiling = 20*day, 21*day
	h := story("ucccccccc", 1)
	d := Decide(Item{History: h}, b, h.Last())
	if d.Tau != 20 || !strings.Contains(d.Why(), "no sooner") {
		t.Errorf("%g %s", d.Tau, d.Why())
	}
	b.Interval, h = 500*day, story("uuuuuuuuu", 100)
	if d = Decide(Item{History: h}, b, h.Last()); d.Tau != 21 || !strings.Contains(d.Why(), "at least") {
		t.Errorf("%g %s", d.Tau, d.Why())
	}
	early := h.Last().Add(-time.Hour) // our clock was set back
	if d = Decide(Item{History: h}, b, early); d.At.After(early.Add(21 * day)) {
		t.Errorf("due %v after a clock was set back to %v", d.At, early)
	}
}

// A smaller budget, of the peer or of the site, means later visits.
func TestPrices(t *testing.T) {
	h := story("uucuuucuuu", 10)
	b := budget(10)
	b.Price = b.FairPrice(0)
	base := Decide(Item{History: h}, b, h.Last()).Tau
	b.SitePrice = b.Price
	if dear := Decide(Item{History: h}, b, h.Last()).Tau; dear <= base {
		t.Errorf("site price moved %g to %g", base, dear)
	}
}

// Gone, moved and failed items wait twice as long after each failure, up to their limit.
func TestDeathsAndErrorsBackOff(t *testing.T) {
	b := budget(10)
	for _, c := range []struct {
		word string
		days float64
	}{
		{"ug", 1}, {"ugg", 2}, {"uggg", 4}, {"ugggggggggggggg", 180}, {"ur", 1},
		{"ue", 1.0 / 24}, {"uee", 2.0 / 24}, {"ueee", 4.0 / 24},
	} {
		h := story(c.word, 1)
		d := Decide(Item{History: h}, b, h.Last())
		if math.Abs(d.Tau-c.days) > 1e-9 || !strings.Contains(d.Why(), "again after") {
			t.Errorf("%q: %g days (%s), want %g", c.word, d.Tau, d.Why(), c.days)
		}
	}
}

// Validate reports all faults at once.
func TestBudgetValidate(t *testing.T) {
	if err := budget(1).Validate(); err != nil {
		t.Fatal(err)
	}
	bad := Budget{Price: -1, Floor: 2, Ceiling: 1, Even: 2}
	err := bad.Validate()
	for _, word := range []string{"interval", "price", "floor", "prior", "even"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not name %s", err, word)
		}
	}
}

// The guard rises while the plans are older than uniform visits, and falls afterwards.
func TestMeterGuardsAge(t *testing.T) {
	m, b := NewMeter(1), budget(10)
	m.Planned(Decision{}, Decision{Tau: 10, Age: 3, EvenAge: 2})
	for range 30 {
		m.Visited(0, 10*day, 10)
	}
	m.Guard(b)
	up := *b
	if up.Even <= 0 || up.AgePrice <= defaultAge || up.Even > guardEven {
		t.Fatalf("too old, and the guard sleeps: even %g, price %g", up.Even, up.AgePrice)
	}
	m.Planned(Decision{Tau: 10, Age: 3, EvenAge: 2}, Decision{Tau: 10, Age: 1, EvenAge: 2})
	for range 200 {
		m.Visited(0, 10*day, 10)
	}
	if m.Guard(b); b.Even != 0 || b.AgePrice != defaultAge {
		t.Errorf("young, and the guard is up: even %g, price %g", b.Even, b.AgePrice)
	}
}

// The Meter finds a price at which demand equals the budget, also after a jump of demand, without
// oscillation.
func TestMeterSettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const items = 400
	b := budget(10)
	m := NewMeter(20 * b.FairPrice(0)) // a bad guess
	var taus [items]float64
	var beliefs [items]Belief
	for i := range beliefs {
		n := 1 + rng.IntN(8)
		beliefs[i] = b.Model.Believe(story("u"+strings.Repeat("u", n)+strings.Repeat("c", rng.IntN(4)), 10))
	}
	interval := 10.0
	demand := func() (d float64) {
		for _, tau := range taus {
			d += 1 / tau
		}
		return d * interval / items
	}
	for i := range taus {
		taus[i] = Value{Age: 0.1}.due(&beliefs[i], m.Price(), interval)
		m.Planned(Decision{}, Decision{Tau: taus[i]})
	}
	for cycle := range 24 {
		if cycle == 12 {
			interval = 15 // the budget falls by a third
		}
		for range items {
			i := rng.IntN(items)
			tau := Value{Age: 0.1}.due(&beliefs[i], m.Price(), interval)
			m.Planned(Decision{Tau: taus[i]}, Decision{Tau: tau})
			taus[i] = tau
			m.Visited(0, time.Duration(interval*float64(day)), items)
		}
		if d := demand(); cycle%12 >= 7 && math.Abs(d-1) > 0.2 {
			t.Errorf("cycle %d: demand is %.2f of the budget", cycle, d)
		}
	}
}

// The phase shortens only the first wait and does not change Tau. The wait is not below the floor.
// Gone or failed items have their own wait.
func TestPhaseOfFirstWait(t *testing.T) {
	b := budget(10)
	for _, tt := range []struct {
		word  string
		phase float64
		share float64
	}{{"u", 0.25, 0.25}, {"u", 0, 1}, {"u", 1, 1}, {"uu", 0.25, 1}, {"uc", 0.25, 1}, {"ug", 0.25, 1}, {"ue", 0.25, 1},
		{"eu", 0.5, 0.5}} {
		h := story(tt.word, 10)
		d, whole := Decide(Item{History: h, Phase: tt.phase}, b, h.Last()), Decide(Item{History: h}, b, h.Last())
		got, want := d.At.Sub(h.Last()).Hours()/24, tt.share*whole.At.Sub(h.Last()).Hours()/24
		if math.Abs(got-want) > 1e-6 || d.Tau != whole.Tau {
			t.Errorf("%q, phase %g: after %g days (every %g), want %g (every %g)", tt.word, tt.phase, got, d.Tau, want,
				whole.Tau)
		}
	}
	b.Floor = 3 * day
	h := story("u", 10)
	if d := Decide(Item{History: h, Phase: 0.1}, b, h.Last()); d.At.Sub(h.Last()) != 3*day {
		t.Errorf("after %s, the floor is 3 days", d.At.Sub(h.Last()))
	}
}
