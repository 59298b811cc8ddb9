package classify

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Reference, H1: five days after the last visit a change is seen; periods 7 and 30.
func TestBayesExample(t *testing.T) {
	b := Bayes{Period: []float64{7, 30}}
	c := b.Step(nil, 5, true)
	if p := math.Exp(c[0]); math.Abs(p-0.7688) > 5e-5 || math.Abs(math.Exp(c[1])-0.2312) > 5e-5 {
		t.Errorf("chances %.4f / %.4f, want 0.77 / 0.23", p, math.Exp(c[1]))
	}
	c = b.Step(nil, 5, false) // e^(−5/7) and e^(−5/30), normalised
	if p := math.Exp(c[1]); math.Abs(p-0.63355) > 1e-4 {
		t.Errorf("no change: slow class %.5f", p)
	}
}

func TestBayesIsStableForEver(t *testing.T) {
	b := Bayes{Period: []float64{1, 3, 30, 96}}
	var c Chances
	for range 100_000 {
		c = b.Step(c, 1, false)
	}
	if b.Class(c) != 3 {
		t.Fatalf("a static page is of class %d", b.Class(c))
	}
	for i := range 60 { // then it changes daily
		c = b.Step(c, 1, true)
		if b.Class(c) == 0 {
			if i > 40 {
				t.Errorf("after a jump it took %d visits", i)
			}
			break
		}
	}
	for _, v := range c {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("chances %v", c)
		}
	}
	if b.Class(c) != 0 {
		t.Error("never noticed")
	}
}

// Figure 11 of the dissertation, move by move.
func TestHeuristicTable(t *testing.T) {
	h := ThesisHeuristic()
	if err := h.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from   Window
		visits string // c changed, u unchanged
		want   Window
	}{
		{Window{Class: 0}, "u", Window{0, 1, 0}},
		{Window{Class: 0}, "uu", Window{0, 2, 0}},
		{Window{Class: 0}, "uuu", Window{Class: 1}}, // a static page leaves after 3 visits
		{Window{Class: 0}, "uuc", Window{Class: 0}}, // a third is between the thresholds
		{Window{Class: 0}, "ccc", Window{Class: 0}}, // clamped at the fast end
		{Window{Class: 1}, "cc", Window{Class: 0}},
		{Window{Class: 1}, "cu", Window{Class: 1}}, // a half: stay, new window
		{Window{Class: 1}, "uu", Window{Class: 2}},
		{Window{Class: 2}, "cc", Window{Class: 1}},
		{Window{Class: 2}, "c", Window{2, 1, 1}},
		{Window{Class: 3}, "c", Window{Class: 2}},
		{Window{Class: 3}, "u", Window{Class: 3}}, // clamped at the slow end
		{Window{Class: 3}, "ccc", Window{Class: 1}},
	} {
		w := c.from
		for _, v := range c.visits {
			w = h.Step(w, v == 'c')
		}
		if w != c.want {
			t.Errorf("%+v %s: %+v, want %+v", c.from, c.visits, w, c.want)
		}
	}
}

// Reference, H3: a page that always changes moves from group 3 to 0 in 96 + 60 + 6 = 162 days
// by the printed windows. It needs 132 days only with a window of one in group 2.
func TestClimb(t *testing.T) {
	climb := func(h Heuristic) (days float64) {
		w := Window{Class: 3}
		for w.Class > 0 {
			days += h.Period[w.Class]
			w = h.Step(w, true)
		}
		return days
	}
	h := ThesisHeuristic()
	if d := climb(h); d != 162 {
		t.Errorf("printed windows: %g days, want 162", d)
	}
	h.Window = []int{3, 2, 1, 1}
	if d := climb(h); d != 132 {
		t.Errorf("window 1 in group 2: %g days, want 132", d)
	}
}

// Reference, H4: a page whose rate is exactly 1/period leaves its class: windows in which all
// visits agree occur with chance 0.40 (two visits) and 0.63 (one). The Bayesian classifier
// keeps the page at least nine times in ten.
func TestStability(t *testing.T) {
	h, b := ThesisHeuristic(), Bayes{Period: []float64{1, 3, 30, 96}}
	rng := rand.New(rand.NewPCG(1, 1))
	changed := func() bool { return rng.Float64() < 1-math.Exp(-1) }
	up := [4]float64{}
	const windows = 40_000
	for class := 1; class < 4; class++ {
		for range windows {
			w := Window{Class: class}
			for range h.Window[class] {
				w = h.Step(w, changed())
			}
			if w.Class < class {
				up[class] += 1.0 / windows
			}
		}
	}
	if math.Abs(up[1]-0.3996) > 0.01 || math.Abs(up[2]-0.3996) > 0.01 || math.Abs(up[3]-0.6321) > 0.01 {
		t.Errorf("promotions per window %.3f, want 0.40, 0.40, 0.63", up[1:])
	}
	for class, period := range b.Period {
		kept, n := 0, 0
		for range 200 {
			var c Chances
			for v := range 60 {
				c = b.Step(c, period, changed())
				if v >= 20 {
					n++
					if b.Class(c) == class {
						kept++
					}
				}
			}
		}
		share := float64(kept) / float64(n)
		t.Logf("class %d: Bayes keeps %.3f of visits", class, share)
		if share < 0.9 {
			t.Errorf("class %d: kept %.3f of visits, want 0.9", class, share)
		}
	}
}

func TestHeuristicValidate(t *testing.T) {
	for _, h := range []Heuristic{
		{},
		{Period: []float64{1}, Window: []int{0}},
		{Period: []float64{3, 1}, Window: []int{1, 1}, Upper: 1},
		{Period: []float64{1}, Window: []int{1}, Upper: 0.1, Lower: 0.2},
	} {
		if h.Validate() == nil {
			t.Errorf("%+v is valid", h)
		}
	}
}

// Settle is the hysteresis that the dissertation lacks: three windows must agree.
func TestSettle(t *testing.T) {
	moved := func(settle int) float64 {
		h := ThesisHeuristic()
		h.Settle = settle
		rng := rand.New(rand.NewPCG(2, 2))
		n := 0.0
		for range 4000 {
			w := Window{Class: 1}
			for range 6 {
				if w = h.Step(w, rng.Float64() < 1-math.Exp(-1)); w.Class != 1 {
					n++
					break
				}
			}
		}
		return n / 4000
	}
	rule, settled := moved(0), moved(3)
	t.Logf("left its class within six visits: %.2f, settled %.2f", rule, settled)
	if rule < 0.7 || settled > 0.35 {
		t.Errorf("left its class: %.2f by the printed rule, %.2f settled", rule, settled)
	}
}
