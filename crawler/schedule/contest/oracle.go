package contest

import "math"

// seer is the policy that knows every change: each slot goes to the bad copy that
// will stay good longest once it is renewed. No crawler can do better by much; it
// is greedy, so it shows the limit without being proved to be it.
func seer(w *World, o Options, since int64) Result {
	t := newTally(w, since)
	var events, bad queue // changes to come; bad copies by minus the time of the next change
	alive := func(now int64) (n int) {
		for i := range w.Things {
			if w.Things[i].Born <= now {
				n++
			}
		}
		return n
	}
	for i := range w.Things {
		if c := w.Things[i].Changes; len(c) > 0 {
			events.push(c[0], int32(i))
		}
	}
	at := make([]int, len(w.Things)) // changes that happened
	period := 30 * secondsPerDay / o.Budget
	now, counted := float64(w.From), int64(math.MinInt64)
	n := 0
	for {
		if int64(now) >= counted+secondsPerDay {
			n, counted = max(1, alive(int64(now))), int64(now)
		}
		if now += period / float64(n); now >= float64(w.To) {
			return t.result()
		}
		for events.len() > 0 && events.at[0] <= int64(now) {
			_, i := events.pop()
			at[i]++
			next := int64(math.MaxInt64 / 2)
			if c := w.Things[i].Changes; at[i] < len(c) {
				next = c[at[i]]
				events.push(next, i)
			}
			bad.push(-next, i)
		}
		if i, ok := choose(w, t, &bad, at); ok {
			t.visit(int(i), int64(now), true)
		} else if int64(now) >= since { // all good: the slot is spent anyway, on anything
			t.visits[0]++
		}
	}
}

// choose drops what was said of states that have passed or were renewed.
func choose(w *World, t *tally, bad *queue, at []int) (int32, bool) {
	for bad.len() > 0 {
		key, i := bad.pop()
		next := int64(math.MaxInt64 / 2)
		if c := w.Things[i].Changes; at[i] < len(c) {
			next = c[at[i]]
		}
		if -key == next && t.next[i] < at[i] {
			return i, true
		}
	}
	return 0, false
}
