package schedule

import "time"

// Next is when to look again at an item with history h after its last visit, and
// why: what the frontier asks after each fetch. It is
// pure and safe for concurrent use.
//
// The crawl keeps the encoded history with the item, and for each peer one Budget
// and one Meter. After a fetch it adds the outcome to the history, asks Decide (Next
// is its short form), tells the Meter (Planned, Visited), and commits history and due
// time in the batch of the record. Every hundred visits or so it renews the Budget's
// Price from the Meter and calls Guard; every mean interval it fits the Model to a
// few hundred histories. The Budget and Meter are derived: after a crash they start
// anew from FairPrice and settle within two mean intervals. A site short of visits
// has a Meter of its own whose Price is added as SitePrice.
func Next(h *History, now time.Time, b *Budget) (at time.Time, why string) {
	d := Decide(Item{History: h}, b, now)
	return d.At, d.Why()
}

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

// NextPosts is Next for a timeline whose page holds page posts.
func NextPosts(h *History, page int, now time.Time, b *Budget) (at time.Time, why string) {
	d := Decide(Item{History: h, Page: max(1, page)}, b, now)
	return d.At, d.Why()
}
