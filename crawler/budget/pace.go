package budget

import (
	"math"
	"time"
)

// The constants of an adaptive bucket.
const (
	paceDown  = 0.8      // factor of the pace at a refusal
	paceUp    = 0.05     // part of the first guess, added per window of full use
	paceNear  = 0.95     // part of the last refused pace; above it, growth is slower
	paceSlow  = 0.125    // factor of the slower growth, halved after each further refusal there,
	paceLeast = 1. / 512 // but not below this
	pacePast  = 1.15     // times the last refused pace without a refusal: the limit has been raised
	paceRange = 1000     // the pace stays between guess ÷ 1000 and guess × 1000
)

// pace is the pace of an adaptive bucket. It grows by steps, and falls by a factor (Chiu and Jain,
// "Analysis of the increase and decrease algorithms for congestion avoidance", 1989). Unlike
// theirs, it remembers the refused pace and approaches it slowly, as CUBIC does (RFC 9438).
type pace struct {
	rate   float64 // calls per second
	guess  float64 // the first pace
	window float64 // seconds
	top    float64 // pace at the last refusal, 0 = none
	slow   float64 // factor of the growth near top
	cut    int64   // time of the last refusal
	down   bool    // no response since the last refusal
}

// newPace returns a pace that begins with the limit of the spec.
func newPace(s Spec) pace {
	w := time.Duration(s.Window).Seconds()
	g := float64(s.Limit) / w
	return pace{rate: g, guess: g, window: w, slow: paceSlow}
}

// gap returns the time between two calls, at most a day.
func (p *pace) gap() int64 { return int64(math.Ceil(min(1e9/p.rate, 86400e9))) }

// answered raises the pace by one call's part of paceUp.
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

// refused lowers the pace once for all calls sent before the refusal. Calls that only confirm that
// the refusal still lasts do not lower it again.
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
