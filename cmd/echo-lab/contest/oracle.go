package contest

import "math"

// seer is the policy that knows every change. Each slot goes to the bad copy that will stay
// good longest once it is renewed. No crawler can do much better. It is greedy, so it shows the
// limit without a proof that it is the limit.
//
// In a timeline the loss is missed posts. Each slot goes to the timeline that will lose a post
// first: its oldest unseen post, when as many newer posts as a page holds have come. With a
// page of one post that is earliest deadline first, which loses the fewest possible posts.
func seer(w *World, o Options, since int64) Result {
	t := newTally(w, since)
	var events, bad queue // future changes; bad copies by urgency
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
			if c := w.Things[i].Changes; at[i] < len(c) {
				events.push(c[at[i]], i)
			}
			bad.push(urgency(w, t, i, at[i]), i)
		}
		if i, ok := choose(w, t, &bad, at); ok {
			t.visit(int(i), int64(now), true)
		} else if int64(now) >= since { // all good: the slot is still used, for any item
			t.visits[0]++
			t.looks[0][min(int((int64(now)-w.From)/secondsPerDay), len(t.days)-1)]++
		}
	}
}

// choose drops entries about states that have passed or were renewed.
func choose(w *World, t *tally, bad *queue, at []int) (int32, bool) {
	for bad.len() > 0 {
		key, i := bad.pop()
		if t.next[i] < at[i] && key == urgency(w, t, i, at[i]) {
			return i, true
		}
	}
	return 0, false
}

// urgency orders the bad copies, the least first. Item i has changed happened times. For a page
// the urgency is minus the time of its next change. For a timeline it is the time when the next
// post is lost.
func urgency(w *World, t *tally, i int32, happened int) int64 {
	c, sign, k := w.Things[i].Changes, int64(-1), happened
	if w.Timeline {
		sign, k = 1, max(t.next[i], happened-w.Page)+w.Page
	}
	if k < len(c) {
		return sign * c[k]
	}
	return sign * (math.MaxInt64 / 2)
}
