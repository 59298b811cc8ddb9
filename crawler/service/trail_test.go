package service

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Trail leaves any ring of cursors within the bound of Brent's method. This holds for any length of
// the ring, and if the Trail is encoded and decoded in between.
func TestRingsAreLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tail, ring := rapid.IntRange(0, 60).Draw(t, "tail"), rapid.IntRange(1, 60).Draw(t, "ring")
		fresh := rapid.Bool().Draw(t, "items that are always new")
		cursors := rapid.Bool().Draw(t, "cursors that are always new")
		if fresh && cursors {
			fresh = false // otherwise it is no ring
		}
		var tr Trail
		lim := Limits{Empty: 1000}.WithDefaults()
		at := func(n int) int { // the page number of request n
			if n >= tail {
				n = tail + (n-tail)%ring
			}
			return n
		}
		bound := 2*max(tail, ring) + 2*ring + 4
		for n := 0; ; n++ {
			if n > bound {
				t.Fatalf("tail %d, ring %d: still going after %d pages", tail, ring, n)
			}
			item, next := at(n), at(n+1)
			if fresh {
				item = n
			}
			if cursors {
				next = n + 1
			}
			_, stop, over := tr.Took([]string{strconv.Itoa(item)}, "c"+strconv.Itoa(next), lim)
			if over {
				if stop != CursorRepeats || n < ring {
					t.Fatalf("tail %d, ring %d: %q after %d", tail, ring, stop, n)
				}
				return
			}
			tr.Known = Known{} // as after a resume
		}
	})
}

// A list without a fault is never stopped, and each of its items is new once.
func TestLongListsAreNotStopped(t *testing.T) {
	var tr Trail
	lim := Limits{}.WithDefaults()
	const pages, size = 3000, 10
	for n := range pages {
		ids := make([]string, size)
		for i := range ids {
			ids[i] = fmt.Sprint(n*size + i)
		}
		next := "max_id=" + strconv.Itoa(n)
		if n == pages-1 {
			next = ""
		}
		fresh, stop, over := tr.Took(ids, next, lim)
		if stop != "" || over != (n == pages-1) {
			t.Fatalf("page %d: %q %v", n, stop, over)
		}
		for _, f := range fresh {
			if !f {
				t.Fatalf("page %d: not new", n)
			}
		}
	}
	if tr.Seen != pages*size || len(tr.Known.young)+len(tr.Known.old) > maxKnown {
		t.Errorf("%d seen, %d known", tr.Seen, len(tr.Known.young)+len(tr.Known.old))
	}
}
