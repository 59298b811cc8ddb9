package policy

import (
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/classify"
	"github.com/echo-node/echo-node/crawler/schedule"
)

// Memo is what a policy with classes remembers of an item between visits. The zero value is an
// item that is not classified yet.
type Memo struct {
	Class    uint8 // 1 + class; 0 = none yet
	Visits   uint8 // in the present window (Barbosa)
	Changes  uint8
	Priority uint8 // 1 to 100 (Classes)
}

// TwitterEcho's rule has priorities 1 to 100 in six classes. A new post raises an account's
// priority, and nothing lowers it. A round draws from every class, more from the higher ones,
// and the account unchecked for the longest time first. The dissertation prints neither the
// step nor the shares. Here the step is 5, and the shares halve from class to class.
const (
	EchoClasses = 6
	echoStart   = 50
	echoStep    = 5
	echoFrozen  = 30 // days without a post: checked only at night, with the last share
)

// echoClass returns the class of a priority: 100, 99-81, 80-61, 60-41, 40-21, 20-1.
func echoClass(priority uint8) int {
	if priority >= 100 {
		return 0
	}
	return 5 - (int(priority)-1)/20
}

// EchoShare returns the part of all visits that class c gets while no class is empty.
func EchoShare(c int) float64 {
	return float64(int(1)<<(EchoClasses-1-c)) / (1<<EchoClasses - 1)
}

// classes sets when the item is due: an item of class c gets every size(c) ÷ share(c)-th visit.
func (d *Decision) classes(it Item, b *Budget) {
	last, _ := it.History.Latest()
	m := EchoRaise(it.Memo, last == schedule.Changed)
	d.Class = echoClass(m.Priority)
	d.Memo = m
	total, open := 0, 0.0
	for c, n := range b.Sizes {
		total += n
		if n > 0 {
			open += EchoShare(c)
		}
	}
	d.Tau = b.Interval.Hours() / 24
	if total > 0 && b.Sizes[d.Class] > 0 {
		d.Tau *= float64(b.Sizes[d.Class]) / float64(total) * open / EchoShare(d.Class)
	}
}

// barbosa uses the static classifier's class first, then the heuristic's moves. The wait is the
// class's period. When there are too few visits, the periods of all classes are stretched
// equally. This is the stated rule of sharing: each class keeps its part size ÷ period, so none
// starves.
func (d *Decision) barbosa(it Item, b *Budget) {
	h := classify.ThesisHeuristic()
	s := classify.Window{Class: it.Static}
	if it.Memo.Class > 0 {
		s = classify.Window{Class: int(it.Memo.Class) - 1, Visits: int(it.Memo.Visits), Changes: int(it.Memo.Changes)}
		last, _ := it.History.Latest()
		if seen := last == schedule.Unchanged || last == schedule.Changed; seen && len(it.History.Runs()) > 1 {
			s = h.Step(s, last == schedule.Changed)
		}
	}
	d.Class = s.Class
	d.Memo = Memo{Class: uint8(s.Class) + 1, Visits: uint8(s.Visits), Changes: uint8(s.Changes)}
	d.Tau = h.Period[s.Class] * b.price(Barbosa, it.Page)
}

// EchoRaise returns the memo of an item after a visit that found something new (changed) or
// not. A first visit gives it the middle priority.
func EchoRaise(m Memo, changed bool) Memo {
	switch {
	case m.Priority == 0:
		m.Priority = echoStart
	case changed:
		m.Priority = min(100, m.Priority+echoStep)
	}
	return m
}

// EchoLower is the opposite for links: a list that did not change lowers its account's
// priority. The lowest priority is 1.
func EchoLower(m Memo) Memo {
	if m.Priority == 0 {
		m.Priority = echoStart
	}
	m.Priority = max(echoStep+1, m.Priority) - echoStep
	return m
}

// EchoLinks is the number of TwitterEcho's classes for an account's links: priorities 100-61,
// 60-21, 20-1. EchoLinkClass returns the class of a memo.
const EchoLinks = 3

// EchoLinkClass returns the class for links of an item's memo.
func EchoLinkClass(m Memo) int {
	switch p := m.Priority; {
	case p > 60:
		return 0
	case p > 20 || p == 0:
		return 1
	}
	return 2
}

// EchoLinkShare is EchoShare for links.
func EchoLinkShare(c int) float64 {
	return float64(int(1)<<(EchoLinks-1-c)) / (1<<EchoLinks - 1)
}

// EchoFrozen reports whether an account whose last post was at last (zero: never) is looked up
// only at night.
func EchoFrozen(last, now time.Time) bool { return !now.Before(last.AddDate(0, 0, echoFrozen)) }

// EchoClass returns the class of an item's memo.
func EchoClass(m Memo) int { return echoClass(max(1, m.Priority)) }
