package schedule

import "time"

// Explain returns the reasons for a time that was set before. The item with history h is due at
// that time. The reasons use the present model and prices; the time does not change.
func Explain(h *History, at time.Time, b *Budget) Decision {
	d := Decide(Item{History: h}, b, h.Last())
	if d.Bound != "" {
		return d
	}
	d.At, d.Tau = at, max(0, at.Sub(h.Last()).Hours()/24)
	belief := b.Model.Believe(h)
	d.Chance = 1 - belief.Survive(d.Tau)
	return d
}
