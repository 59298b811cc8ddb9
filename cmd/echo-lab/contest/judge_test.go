package contest

import (
	"math"
	"testing"
)

// External visits are measured like those of a play: by hand on two items.
func TestJudge(t *testing.T) {
	const day = secondsPerDay
	w := World{Name: "two", From: 100 * day, To: 110 * day, Page: 1, Things: []Thing{
		{Name: "a", Born: 100 * day, Changes: []int64{102 * day, 107 * day}},
		{Name: "b", Born: 105 * day},
	}}
	visits := []Visit{{0, 108 * day}, {0, 104 * day}, {1, 104 * day}, {1, 109 * day}, {0, 110 * day}}
	r, err := Judge(&w, visits, 0)
	if err != nil {
		t.Fatal(err)
	}
	// a: good except on days 102-104 and 107-108; b: always, in its five days.
	if want := (7.0 + 5.0) / 15; math.Abs(r.Freshness-want) > 1e-9 || r.Visits != 3 || r.Hits != 2 || r.Missed != 0 {
		t.Errorf("%+v, want freshness %g of 3 visits", r, want)
	}
	if r, err = Judge(&w, visits, 0.5); err != nil || r.Visits != 2 || math.Abs(r.Freshness-9.0/10) > 1e-9 {
		t.Errorf("from the middle on: %+v, %v", r, err)
	}
	if _, err := Judge(&w, []Visit{{2, 101 * day}}, 0); err == nil {
		t.Error("a visit of an item that is none is taken")
	}
	if visits[0].At != 108*day {
		t.Error("the caller's visits were sorted")
	}
}
