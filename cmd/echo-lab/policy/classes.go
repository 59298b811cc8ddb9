package policy

import (
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/classify"
	"github.com/echo-node/echo-node/crawler/schedule"
)

// Memo is what a policy with classes remembers of an item between visits. The zero
// value is an item not classified yet.
type Memo struct {
	Class    uint8 // 1 + class; 0 = none yet
	Visits   uint8 // in the present window (Barbosa)
	Changes  uint8
	Priority uint8 // 1 to 100 (Classes)
}

// TwitterEcho's rule: priorities 1 to 100 in six classes; a new post raises an
// account's priority, none lowers it; a round draws from every class, more from
// the higher, the longest unchecked first. The dissertation prints neither the step
// nor the shares: the step here is 5 and the shares halve from class to class.
const (
	EchoClasses = 6
	echoStart   = 50
	echoStep    = 5
	echoFrozen  = 30 // days without a post: checked only at night, the last share
)

// echoClass is the class of a priority: 100, 99-81, 80-61, 60-41, 40-21, 20-1.
func echoClass(priority uint8) int {
	if priority >= 100 {
		return 0
	}
	return 5 - (int(priority)-1)/20
}

// EchoShare is the part of all visits that class c gets while no class is empty.
func EchoShare(c int) float64 {
	return float64(int(1)<<(EchoClasses-1-c)) / (1<<EchoClasses - 1)
}

// classes: an item of class c comes round every size(c) ÷ share(c) visits.
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

// barbosa: the static classifier's class first, then the heuristic's moves; the
// class's period, stretched alike for all when visits are short (the stated rule of
// sharing: each class keeps its part size ÷ period, so none starves).
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

// EchoRaise is the memo of an item after a visit that found something new or did
// not; a first visit gives it the priority in the middle.
func EchoRaise(m Memo, changed bool) Memo {
	switch {
	case m.Priority == 0:
		m.Priority = echoStart
	case changed:
		m.Priority = min(100, m.Priority+echoStep)
	}
	return m
}

// EchoLower is its reverse for links, where a list that did not change costs its
// account priority: the least is 1.
func EchoLower(m Memo) Memo {
	if m.Priority == 0 {
		m.Priority = echoStart
	}
	m.Priority = max(echoStep+1, m.Priority) - echoStep
	return m
}

// EchoLinks are the classes of TwitterEcho's look at an account's links: priorities
// 100-61, 60-21, 20-1; EchoLinkClass is the one of a memo.
const EchoLinks = 3

// EchoLinkClass is the class for links that an item's memo puts it in.
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

// EchoFrozen says whether an account whose last post was at last (zero: never) is
// looked at only at night.
func EchoFrozen(last, now time.Time) bool { return !now.Before(last.AddDate(0, 0, echoFrozen)) }

// EchoClass is the class an item's memo puts it in.
func EchoClass(m Memo) int { return echoClass(max(1, m.Priority)) }
