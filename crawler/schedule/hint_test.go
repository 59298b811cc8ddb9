package schedule

import (
	"math"
	"testing"
	"time"
)

// A more reliable hint makes the next visit sooner. The visit is never later, and never
// before now. Just after a visit a hint has no effect.
func TestAfterHint(t *testing.T) {
	b := &Budget{Interval: 10 * day, Model: NewModel()}
	h := story("ucuuucu", 10)
	plain := Decide(Item{History: h}, b, h.Last())
	half := h.Last().Add(time.Duration(plain.Tau / 2 * float64(day)))
	before, chance := plain.At, 0.0
	for _, ratio := range []float64{0.1, 1, 1.5, 3, 10, 50} {
		d := AfterHint(Item{History: h, Reported: 0.5}, b, ratio, half)
		if d.At.After(before) || d.At.Before(half) || ratio > 1 && !(d.Chance > chance) {
			t.Errorf("odds %g: due %s with chance %.2f, at lower odds %s with %.2f", ratio, d.At, d.Chance, before,
				chance)
		}
		if ratio <= 1 && !d.At.Equal(plain.At) {
			t.Errorf("odds %g move the visit to %s from %s", ratio, d.At, plain.At)
		}
		if before = d.At; ratio > 1 {
			chance = d.Chance
		}
	}
	if !before.Equal(half) {
		t.Errorf("a word of odds 50 half-way: due %s, it is %s", before, half)
	}
	if d := AfterHint(Item{History: h}, b, 50, h.Last()); !d.At.Equal(plain.At) {
		t.Errorf("a word just after the visit moves the next to %s", d.At)
	}
	gone := story("ucu", 10)
	gone.Add(Event{At: gone.Last().Add(day), Outcome: Gone})
	late := gone.Last().Add(time.Hour)
	if d := AfterHint(Item{History: gone}, b, 50, late); !d.At.Equal(Decide(Item{History: gone}, b, gone.Last()).At) {
		t.Error("a word brings back what is gone")
	}
}

// An item with hints is planned with the remaining rate. A list that reports more changes is
// visited sooner, by the square root.
func TestToldAndTells(t *testing.T) {
	var one, half Belief
	one[12], half[11] = 1, 1
	const price, interval = 0.3, 10.0
	v := Value{Age: 0.1}
	told, slow := (&Item{Reported: 0.5}).due(&one, v, price, interval), v.due(&half, price, interval)
	if math.Abs(told/slow-1) > 0.03 {
		t.Errorf("told of half of its changes every %.2f days, with half of them every %.2f", told, slow)
	}
	few, many := (&Item{Tells: 100}).due(&one, v, price, interval), (&Item{Tells: 400}).due(&one, v, price, interval)
	if want := math.Sqrt(2 * price / 100); math.Abs(few/want-1) > 0.05 || math.Abs(few/many-2) > 0.1 {
		t.Errorf("a list of 100 news a day every %.4f days, want %.4f; of 400 every %.4f", few, want, many)
	}
	b := &Budget{Interval: 10 * day, Model: NewModel()}
	h := story("ucucucu", 10)
	last := 0.0
	for _, share := range []float64{-1, 0, 0.3, MaxTold, 5} {
		d := Decide(Item{History: h, Reported: share}, b, h.Last())
		if !(d.Tau >= last) || d.Tau > 1000 {
			t.Errorf("told of %g: every %.1f days, of less %.1f", share, d.Tau, last)
		}
		last = d.Tau
	}
}

// If visits come before their planned time, the price rises until the visits match the budget.
func TestMeterCountsVisitsBroughtForward(t *testing.T) {
	at := func(share float64) float64 {
		m := NewMeter(1)
		const items = 100
		for range items {
			m.Planned(Decision{}, Decision{Tau: 10})
		}
		for range 5 * items {
			m.Lived(share, items)
			m.Visited(0, 10*day, items)
		}
		return m.Price()
	}
	if p := at(1); math.Abs(p-1) > 1e-9 {
		t.Errorf("visits in their time: price %g", p)
	}
	if p := at(0.5); p < 2 {
		t.Errorf("visits after half of their time: price %g", p)
	}
}
