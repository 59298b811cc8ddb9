package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Busy time passes in busy hours, and After is the inverse of Busy.
func TestRhythm(t *testing.T) {
	var counts [weekHours]float64
	for h := range counts {
		if h%24 >= 8 && h < 120 { // weekdays from eight
			counts[h] = 1000
		}
	}
	r, err := NewRhythm(counts, 0)
	if err != nil {
		t.Fatal(err)
	}
	mondayNight := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	if HourOfWeek(mondayNight) != 3 || HourOfWeek(mondayNight.Add(-4*time.Hour)) != 167 {
		t.Fatal("hour of week")
	}
	night, noon := r.Busy(mondayNight, mondayNight.Add(time.Hour)),
		r.Busy(mondayNight.Add(9*time.Hour), mondayNight.Add(10*time.Hour))
	if night > noon/10 || night <= 0 {
		t.Errorf("an hour at night is worth %s, at noon %s", night, noon)
	}
	if all := r.Busy(mondayNight, mondayNight.Add(week)); (all - week).Abs() > time.Second {
		t.Errorf("a week is worth %s", all)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := t0.Add(time.Duration(rapid.Int64Range(-1e8, 1e8).Draw(t, "at")) * time.Second)
		d := time.Duration(rapid.Int64Range(0, 3e6).Draw(t, "wait")) * time.Second
		if back := r.Busy(a, r.After(a, d)); (back - d).Abs() > time.Millisecond {
			t.Fatalf("after %s at %s: %s", d, a, back)
		}
	})
	var none Rhythm
	if none.After(t0, day) != t0.Add(day) || none.Busy(t0, at(2)) != 2*day {
		t.Error("the zero rhythm is not flat")
	}
	counts[5] = -1
	if _, err := NewRhythm(counts, 0); err == nil {
		t.Error("a negative count")
	}
}
