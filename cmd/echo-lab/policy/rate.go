package policy

import (
	"math"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
)

// Rate is the estimator of Cho and Garcia-Molina ("Estimating frequency of change", TOIT 3(3),
// 2003). It returns changes per visit interval from n regular visits of which x found a change:
//
//	r = −ln((n − x + 0.5) / (n + 0.5))
//
// The halves keep it finite when every visit found a change, and remove most of the bias. The
// unit is one visit interval: divide by the interval to get a rate, invert to get a period.
// (The thesis of 2003 read its groups' r as days.)
func Rate(n, x int) float64 {
	if n <= 0 {
		return 0
	}
	x = min(max(x, 0), n)
	return -math.Log((float64(n-x) + 0.5) / (float64(n) + 0.5))
}

// RatePerDay is Rate for visits with any gaps: the maximum of the likelihood
//
//	∏ (1−e^(−λg)) over visits that found a change · ∏ e^(−λg) over the others
//
// with half an unchanged visit of the mean gap added. With equal gaps that is exactly Rate
// divided by the gap. The result is in changes per day; it is 0 without a change.
func RatePerDay(h *schedule.History) float64 {
	var quiet, gap float64 // days over unchanged visits; days in all
	visits := 0
	for g := range h.Gaps {
		each := g.Span.Hours() / 24 / float64(g.Visits)
		quiet += each * float64(g.Visits-g.Changes)
		gap += each * float64(g.Visits)
		visits += g.Visits
	}
	if gap <= 0 {
		return 0
	}
	quiet += 0.5 * gap / float64(visits)
	return ascend(h, gap, quiet)
}

// ascend finds where the score is zero. The score falls and is convex in λ, so Newton's steps
// from the left never overshoot. λ₀ = changes ÷ time is to the left.
func ascend(h *schedule.History, gap, quiet float64) float64 {
	_, changes := h.Totals()
	if changes == 0 {
		return 0
	}
	lambda := float64(changes) / (gap + quiet) / 2
	for range 40 {
		s, slope := score(h, lambda, quiet)
		step := -s / slope
		lambda += step
		if math.Abs(step) <= 1e-9*lambda {
			break
		}
	}
	return lambda
}

// score returns the derivative of the log likelihood at lambda, and the derivative's own.
func score(h *schedule.History, lambda, quiet float64) (s, slope float64) {
	s = -quiet
	for g := range h.Gaps {
		if g.Changes == 0 || g.Span == 0 {
			continue
		}
		each := g.Span.Hours() / 24 / float64(g.Visits)
		e := math.Expm1(lambda * each)
		f := float64(g.Changes) * each / e
		s += f
		slope -= f * each * (1 + 1/e)
	}
	return s, slope
}

// Gamma is a belief about one rate in changes per day: Shape changes seen in Days days. It is
// the conjugate prior for rhythms where changes are counted, such as the posts of a timeline.
type Gamma struct {
	Shape float64 // must be > 0
	Days  float64 // must be > 0
}

// Mean returns the expected rate per day.
func (g Gamma) Mean() float64 { return g.Shape / g.Days }

// Observe returns the belief after n posts in days.
func (g Gamma) Observe(n int, days float64) Gamma {
	return Gamma{g.Shape + float64(n), g.Days + days}
}

// Forget returns the belief after time without a look. What was learned beyond prior loses half
// of its weight after each halfLife, so a rate may drift.
func (g Gamma) Forget(prior Gamma, elapsed, halfLife time.Duration) Gamma {
	k := math.Exp2(-elapsed.Hours() / halfLife.Hours())
	return Gamma{prior.Shape + k*(g.Shape-prior.Shape), prior.Days + k*(g.Days-prior.Days)}
}

// Survive returns the chance of no change in the next days.
func (g Gamma) Survive(days float64) float64 {
	return math.Pow(g.Days/(g.Days+days), g.Shape)
}
