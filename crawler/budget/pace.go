package budget

import (
	"math"
	"time"
)

// The constants of an adaptive bucket.
const (
	paceDown  = 0.8      // times the pace at a refusal
	paceUp    = 0.05     // of the first guess, added each window of full use
	paceNear  = 0.95     // of the pace last refused: beyond, growth is slower
	paceSlow  = 0.125    // times that slow, and half of it after each further refusal there,
	paceLeast = 1. / 512 // down to this
	pacePast  = 1.15     // times the pace last refused without a refusal: the limit has been raised
	paceRange = 1000     // the pace stays within the guess ÷ and × this
)

// pace is an additive increase and multiplicative decrease of calls per second
// (Chiu and Jain, "Analysis of the increase and decrease algorithms for
// congestion avoidance", 1989). It differs from theirs in that the pace that was
// refused is remembered and approached slowly, as in CUBIC (RFC 9438).
type pace struct {
	rate   float64 // calls per second
	guess  float64 // the first
	window float64 // seconds
	top    float64 // refused last, 0 = none
	slow   float64 // growth near top
	cut    int64   // when it was refused last
	down   bool    // and nothing was answered since
}

func newPace(s Spec) pace {
	w := time.Duration(s.Window).Seconds()
	g := float64(s.Limit) / w
	return pace{rate: g, guess: g, window: w, slow: paceSlow}
}

// gap is the time between two calls, a day at most.
func (p *pace) gap() int64 { return int64(math.Ceil(min(1e9/p.rate, 86400e9))) }

// answered grows by one call's part of a window of full use.
func (p *pace) answered(sent int64) {
	if sent < p.cut {
		return
	}
	p.down = false
	up := paceUp * p.guess / (p.rate * p.window)
	if p.top > 0 && p.rate > paceNear*p.top {
		up *= p.slow
	}
	p.rate = min(p.rate+up, p.guess*paceRange)
	if p.rate > pacePast*p.top {
		p.top, p.slow = 0, paceSlow
	}
}

// refused lowers the pace once for all calls sent before, and for those that only
// find out that the refusal still lasts.
func (p *pace) refused(sent, now int64) {
	if sent <= p.cut || p.down {
		return
	}
	p.down = true
	if p.top > 0 && p.rate > paceNear*p.top {
		p.slow = max(p.slow/2, paceLeast)
	}
	p.top, p.cut = p.rate, now
	p.rate = max(p.rate*paceDown, p.guess/paceRange)
}
