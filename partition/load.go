package partition

import "time"

// The load step. Weighted hashing distributes slices by capacity, not by what is in them. In a
// region with few peers, each of them gets too much. A peer that falls behind lowers its own
// weight by half a power of two at a time and gossips that as Member.LoadStep. It raises the
// weight again when it has little to do.
//
// A step moves slices, which costs copies. So a peer takes a step only when its reason has
// lasted for LoadPatience without a break. And the two bounds are further apart than the change
// of one step. A peer that shares at LoadHigh is at about 1.13 of the mean after the step. A
// peer that takes a step back at LoadLow is at about 0.71 after it.
const (
	LoadHigh     = 1.6 // of the mean share: above it, and behind, the step grows
	LoadLow      = 0.5 // of the mean share: below it the step shrinks
	LoadPatience = 30 * time.Second
)

// Load is the state of a peer at one moment.
type Load struct {
	// Share is its crawl load divided by the mean of the members, each load divided by the
	// member's capacity; 1 is the mean. NaN or below zero: not known.
	Share float64
	// Behind: work that politeness allows has to wait for this peer.
	Behind bool
	// Stopped: it fetches nothing, because of its volunteer's own limits.
	Stopped bool
}

// LoadSteps decides a peer's load step. The zero LoadSteps is at step 0. It has no clock: the
// caller passes the time to Next.
type LoadSteps struct {
	step    int
	before  int // the step to go back to after a stop
	stopped bool
	wants   loadWish
	since   time.Time // start of that wish, without a break
}

// loadWish is the change of the step that the present Load asks for.
type loadWish uint8

const (
	loadStay loadWish = iota
	loadMore          // a higher step: less weight
	loadLess
	loadStop
	loadGo
)

// Next takes the present Load and returns the step to gossip, 0 to MaxLoadStep. A stop that
// lasts gives nearly all weight away at once, and its end restores it. Otherwise the step
// changes by one at a time.
func (l *LoadSteps) Next(now time.Time, x Load) int {
	wish := l.wish(x)
	if wish != l.wants {
		l.wants, l.since = wish, now
	}
	if wish == loadStay || now.Sub(l.since) < LoadPatience {
		return l.step
	}
	l.wants = loadStay // the next step has to wait for LoadPatience again
	switch wish {
	case loadMore:
		l.step++
	case loadLess:
		l.step--
	case loadStop:
		l.stopped, l.before, l.step = true, l.step, MaxLoadStep
	case loadGo:
		l.stopped, l.step = false, l.before
	}
	return l.step
}

// wish returns the change for which x is a reason.
func (l *LoadSteps) wish(x Load) loadWish {
	switch {
	case x.Stopped != l.stopped && x.Stopped:
		return loadStop
	case x.Stopped != l.stopped:
		return loadGo
	case l.stopped:
		return loadStay
	case x.Behind && x.Share > LoadHigh && l.step < MaxLoadStep:
		return loadMore
	case x.Share >= 0 && x.Share < LoadLow && !x.Behind && l.step > 0:
		return loadLess
	}
	return loadStay
}
