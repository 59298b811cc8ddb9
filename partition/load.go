package partition

import "time"

// The load step. Weighted hashing shares slices out by capacity, not by what is
// in them; a region with few peers gives each of them too much. A peer that
// falls behind lowers its own weight by half a power of two at a time, gossips
// that as Member.LoadStep, and takes it back when it has little to do.
//
// A step moves slices, which costs copies, so it is taken only when its reason
// has held for LoadPatience without a break, and the two bounds are apart by
// more than the change that one step makes: sharing at LoadHigh, a peer is at
// some 1.13 of the mean after the step, and sharing at LoadLow at some 0.71
// after taking one back.
const (
	LoadHigh     = 1.6 // of the mean share: above it, and behind, the step grows
	LoadLow      = 0.5 // of the mean share: below it the step shrinks
	LoadPatience = 30 * time.Second
)

// Load is how a peer does at one moment.
type Load struct {
	// Share is its crawl load over the mean of the members, each divided by its
	// capacity; 1 is the mean. NaN or below zero: not known.
	Share float64
	// Behind: work that politeness allows has to wait for this peer.
	Behind bool
	// Stopped: it fetches nothing, by its volunteer's own limits.
	Stopped bool
}

// LoadSteps decides a peer's load step. The zero LoadSteps is at step 0. It has
// no clock: Next is told the time.
type LoadSteps struct {
	step    int
	before  int // the step to go back to after a stop
	stopped bool
	wants   loadWish
	since   time.Time // that wish, without a break
}

type loadWish uint8

const (
	loadStay loadWish = iota
	loadMore          // a higher step: less weight
	loadLess
	loadStop
	loadGo
)

// Next takes the Load of now and answers the step to gossip, 0 to MaxLoadStep.
// A stop that lasts gives nearly all weight away at once, and its end takes it
// back; else it is one step at a time.
func (l *LoadSteps) Next(now time.Time, x Load) int {
	wish := l.wish(x)
	if wish != l.wants {
		l.wants, l.since = wish, now
	}
	if wish == loadStay || now.Sub(l.since) < LoadPatience {
		return l.step
	}
	l.wants = loadStay // the next step needs its own patience
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
