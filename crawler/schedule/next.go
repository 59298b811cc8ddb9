package schedule

import "time"

// Next is when to look again at an item with history h after its last visit, and
// why, under the default policy: what the frontier asks after each fetch. It is
// pure and safe for concurrent use.
func Next(h *History, now time.Time, b *Budget) (at time.Time, why string) {
	d := Decide(Default, Item{History: h}, b, now)
	return d.At, d.Why()
}

// NextPosts is Next for a timeline whose page holds page posts.
func NextPosts(h *History, page int, now time.Time, b *Budget) (at time.Time, why string) {
	d := Decide(Default, Item{History: h, Page: max(1, page)}, b, now)
	return d.At, d.Why()
}
