package policy

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/schedule"
)

// Reference, F2 and 2.4: the printed cut points are counts of 100 daily visits.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		n, x int
		want float64
	}{
		{100, 92, 2.47009},
		{100, 100, 5.30330},
		{100, 0, 0},
		{100, 99, 4.20469},
		{100, 48, 0.64934},
		{1, 1, 1.09861},
		{0, 0, 0},
		{3, 9, 1.94591}, // more changes than visits count as all
	} {
		if got := Rate(c.n, c.x); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("Rate(%d, %d) = %.5f, want %.5f", c.n, c.x, got, c.want)
		}
	}
	// 4.488636 and 0.63827 lie between two counts: X ≥ 100 and X ≥ 48.
	if !(Rate(100, 99) < 4.488636 && 4.488636 < Rate(100, 100) && Rate(100, 47) < 0.63827 && 0.63827 < Rate(100, 48)) {
		t.Error("the dissertation's groups are not these counts")
	}
}

// With equal gaps the estimator for irregular visits is exactly Rate ÷ gap.
func TestRatePerDayIsRateOnRegularVisits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := float64(rapid.IntRange(1, 2000).Draw(t, "hours")) / 24
		h := new(schedule.History)
		n, x := 0, 0
		for i := range rapid.IntRange(1, 31).Draw(t, "visits") + 1 {
			e := schedule.Event{At: at(float64(i) * every)}
			if i > 0 {
				n++
				if rapid.Bool().Draw(t, "changed") {
					e.Outcome = schedule.Changed
					x++
				}
			}
			h.Add(e)
		}
		got, want := RatePerDay(h), Rate(n, x)/every
		if math.Abs(got-want) > 1e-4*want+1e-12 { // times are stored to the second
			t.Fatalf("%d of %d every %g days: %g, want %g", x, n, every, got, want)
		}
	})
}

func TestRatePerDayOnIrregularVisits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, truth := range []float64{0.02, 0.2, 1, 4} {
		sum := 0.0
		const pages = 300
		for range pages {
			h := new(schedule.History)
			now := 0.0
			h.Add(schedule.Event{At: at(now)})
			for range 30 {
				gap := rng.ExpFloat64() / truth
				now += gap
				e := schedule.Event{At: at(now)}
				if rng.Float64() < -math.Expm1(-truth*gap) {
					e.Outcome = schedule.Changed
				}
				h.Add(e)
			}
			sum += RatePerDay(h)
		}
		if mean := sum / pages; math.Abs(mean/truth-1) > 0.1 {
			t.Errorf("rate %g estimated as %g", truth, mean)
		}
	}
}

func TestGamma(t *testing.T) {
	prior := Gamma{Shape: 1, Days: 2}
	g := prior.Observe(9, 8)
	if g.Mean() != 1 {
		t.Errorf("mean %g", g.Mean())
	}
	if s := g.Survive(0); s != 1 {
		t.Errorf("survives %g of no time", s)
	}
	if s := (Gamma{Shape: 1e6, Days: 1e6}).Survive(2); math.Abs(s-math.Exp(-2)) > 1e-4 {
		t.Errorf("a sure rate survives like e^−λt: %g", s)
	}
	f := g.Forget(prior, 10*day, 10*day)
	if f.Shape != 5.5 || f.Days != 6 {
		t.Errorf("after a half-life %+v", f)
	}
	if f = g.Forget(prior, 10_000*day, day); math.Abs(f.Mean()-prior.Mean()) > 1e-9 {
		t.Errorf("long after: %+v", f)
	}
}
