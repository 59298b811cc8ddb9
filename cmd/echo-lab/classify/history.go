package classify

import (
	"fmt"
	"math"
)

// Window is the heuristic classifier's memory of one page.
type Window struct {
	Class   int // 0 the fastest
	Visits  int // in this window
	Changes int
}

// Heuristic is the dissertation's history classifier (figure 11). A page is visited each Period
// of its class. After Window visits it moves one class up if more than Upper of them found a
// change, and one down if fewer than Lower did.
type Heuristic struct {
	Period []float64 // days, fastest class first
	Window []int     // visits
	Upper  float64   // share of changed visits above which a page moves to a faster class
	Lower  float64   // share below which it moves to a slower class
	// Settle is how many windows in a row must agree before a page moves. 0 and 1 are the
	// dissertation's rule, which has no hysteresis.
	Settle int
}

// ThesisHeuristic returns the classifier with the dissertation's printed numbers.
func ThesisHeuristic() Heuristic {
	return Heuristic{Period: []float64{1, 3, 30, 96}, Window: []int{3, 2, 2, 1}, Upper: 0.8, Lower: 0.2}
}

// Validate returns an error for a classifier that cannot run.
func (h Heuristic) Validate() error {
	if len(h.Period) == 0 || len(h.Period) != len(h.Window) || !(h.Lower <= h.Upper) {
		return fmt.Errorf("classify: heuristic: %d periods, %d windows, thresholds %g to %g", len(h.Period),
			len(h.Window), h.Lower, h.Upper)
	}
	for i, p := range h.Period {
		if !(p > 0) || h.Window[i] < 1 || i > 0 && p <= h.Period[i-1] {
			return fmt.Errorf("classify: heuristic: class %d: period %g days, window %d", i, p, h.Window[i])
		}
	}
	return nil
}

// Step returns the memory after one visit. A move begins a new window.
func (h Heuristic) Step(w Window, changed bool) Window {
	w.Class = min(max(w.Class, 0), len(h.Period)-1)
	w.Visits++
	if changed {
		w.Changes++
	}
	if w.Visits < h.Window[w.Class]*max(1, h.Settle) {
		return w
	}
	switch ratio := float64(w.Changes) / float64(w.Visits); {
	case ratio > h.Upper && w.Class > 0:
		w.Class--
	case ratio < h.Lower && w.Class < len(h.Period)-1:
		w.Class++
	}
	return Window{Class: w.Class}
}

// Bayes is Cho and Garcia-Molina's estimator with classes: the chance of each class given what
// the visits found. It is exact and uses logarithms, so no number of visits makes it underflow.
type Bayes struct {
	Period []float64 // days, fastest class first
}

// Chances are the log chances of the classes; nil is even odds.
type Chances []float64

// Step returns the chances after a visit days after the last one. A page of period j has
// changed by then with chance 1 − e^(−days/j).
func (b Bayes) Step(c Chances, days float64, changed bool) Chances {
	out := make(Chances, len(b.Period))
	copy(out, c)
	for j, period := range b.Period {
		x := max(days, 1e-9) / period
		if changed {
			out[j] += math.Log(-math.Expm1(-x))
		} else {
			out[j] -= x
		}
	}
	// Normalise: the log of the sum, with the largest taken out first.
	top := out[b.Class(out)]
	sum := 0.0
	for _, v := range out {
		sum += math.Exp(v - top)
	}
	// A very unlikely class must stay possible, because a page may change its behaviour.
	for j := range out {
		out[j] = max(out[j]-top-math.Log(sum), -30)
	}
	return out
}

// Class returns the most likely class, and the faster of equally likely ones.
func (b Bayes) Class(c Chances) int {
	best := 0
	for j := range c {
		if c[j] > c[best] {
			best = j
		}
	}
	return best
}
