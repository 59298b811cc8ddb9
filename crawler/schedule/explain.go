package schedule

import "time"

// Explain is the decision behind a time that was set before: at, for an item of
// history h. What the rule goes by is today's; the time stays.
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
