package contest

import (
	"fmt"
	"slices"
)

// Visit is one look at an item.
type Visit struct {
	Thing int   // index in World.Things
	At    int64 // Unix seconds
}

// Judge returns the result of a real crawler's visits in w, measured like those of Run, after
// the share warm of the world's time. The visits may be in any order. Visits outside the
// world's time, or before their item's birth, are not counted. visits is not changed.
func Judge(w *World, visits []Visit, warm float64) (Result, error) {
	if !(warm >= 0 && warm < 1) || w.To <= w.From {
		return Result{}, fmt.Errorf("contest: judge: warm-up %g, %d to %d", warm, w.From, w.To)
	}
	visits = slices.Clone(visits)
	slices.SortStableFunc(visits, func(a, b Visit) int { return int(a.At - b.At) })
	t := newTally(w, w.From+int64(warm*float64(w.To-w.From)))
	for _, v := range visits {
		if v.Thing < 0 || v.Thing >= len(w.Things) {
			return Result{}, fmt.Errorf("contest: judge: no item %d", v.Thing)
		}
		if v.At >= w.Things[v.Thing].Born && v.At < w.To {
			t.visit(v.Thing, v.At, true)
		}
	}
	return t.result(), nil
}
