package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
)

const day = 24 * time.Hour

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d float64) time.Time { return t0.Add(time.Duration(d * float64(day))) }

func budget(every float64) *Budget {
	return &Budget{Budget: schedule.Budget{Interval: time.Duration(every * float64(day)), Model: schedule.NewModel()}}
}

func item(h *schedule.History) Item { return Item{Item: schedule.Item{History: h}} }

// story makes a history of visits from a word: u, c, e, g, r.
func story(word string, every float64) *schedule.History {
	h := new(schedule.History)
	for i, c := range word {
		o := map[rune]schedule.Outcome{'u': schedule.Unchanged, 'c': schedule.Changed, 'e': schedule.Failed,
			'g': schedule.Gone, 'r': schedule.Redirect}[c]
		h.Add(schedule.Event{At: at(float64(i) * every), Outcome: o})
	}
	return h
}

func TestNeverVisitedIsDueNow(t *testing.T) {
	for _, p := range All() {
		d := Decide(p, item(new(schedule.History)), budget(10), t0)
		if !d.At.Equal(t0) || d.Why() != "never visited" {
			t.Errorf("%s: %v %q", p, d.At, d.Why())
		}
	}
}

// Decide is pure, returns a future time, and gives a reason, for every policy and any history.
func TestDecide(t *testing.T) {
	for _, p := range All() {
		for _, word := range []string{"u", "uc", "uuuu", "ucccc", "ucucu", "ug", "ue", "ur", "eee"} {
			h := story(word, 5)
			b := budget(10)
			it := item(h)
			it.Weight = 1
			d := Decide(p, it, b, h.Last())
			if d.At.Before(h.Last()) || d.Why() == "" || !(d.Tau >= 0) {
				t.Errorf("%s %q: %+v", p, word, d)
			}
			if again := Decide(p, it, b, h.Last()); again != d {
				t.Errorf("%s %q: two answers", p, word)
			}
		}
	}
}

func TestWeightBuysVisits(t *testing.T) {
	h := story("uucuuucuuu", 10)
	b := budget(10)
	tau := func(w float64) float64 {
		return Decide(Important, Item{Item: schedule.Item{History: h, Weight: w}}, b, h.Last()).Tau
	}
	if !(tau(4) < tau(1) && tau(1) < tau(0.25)) {
		t.Errorf("weights 4, 1, 1/4: every %g, %g, %g days", tau(4), tau(1), tau(0.25))
	}
}

// TwitterEcho's classes: 100, 99-81, … 20-1; a post raises, nothing lowers.
func TestEchoClasses(t *testing.T) {
	for p, c := range map[uint8]int{100: 0, 99: 1, 81: 1, 80: 2, 61: 2, 60: 3, 41: 3, 40: 4, 21: 4, 20: 5, 1: 5} {
		if got := echoClass(p); got != c {
			t.Errorf("priority %d: class %d, want %d", p, got, c)
		}
	}
	shares := 0.0
	for c := range EchoClasses {
		shares += EchoShare(c)
	}
	if math.Abs(shares-1) > 1e-12 {
		t.Errorf("shares sum to %g", shares)
	}
	b := budget(10)
	b.Sizes = [EchoClasses]int{10, 0, 10, 30, 0, 50}
	it := item(story("u", 1))
	d := Decide(Classes, it, b, t0)
	if d.Class != 3 {
		t.Fatalf("a new account is of class %d", d.Class)
	}
	for range 12 { // up to 100 and no further
		it.History.Add(schedule.Event{At: it.History.Last().Add(day), Outcome: schedule.Changed})
		it.Memo = d.Memo
		d = Decide(Classes, it, b, t0)
	}
	high := d.Tau
	it.History.Add(schedule.Event{At: it.History.Last().Add(day)})
	it.Memo = d.Memo
	if d = Decide(Classes, it, b, t0); d.Class != 0 || d.Memo.Priority != 100 || d.Tau != high {
		t.Errorf("silence lowered %+v", d)
	}
	// The classes together draw the whole budget, and every class draws something.
	total, visits := 0, 0.0
	for c, n := range b.Sizes {
		if n == 0 {
			continue
		}
		it.Memo = Memo{Priority: []uint8{100, 90, 70, 50, 30, 10}[c]}
		total += n
		visits += float64(n) / Decide(Classes, it, b, t0).Tau
	}
	if math.Abs(visits-float64(total)/10) > 1e-9 {
		t.Errorf("%g visits a day, budget %g", visits, float64(total)/10)
	}
}

func TestBarbosaMoves(t *testing.T) {
	b := budget(10)
	h := story("u", 1)
	it := item(h)
	it.Static = 1
	d := Decide(Barbosa, it, b, t0)
	if d.Class != 1 || d.Tau != 3 {
		t.Fatalf("starts %+v, want the static class", d)
	}
	for i := range 2 {
		h.Add(schedule.Event{At: at(float64(3 * (i + 1))), Outcome: schedule.Changed})
		d = Decide(Barbosa, Item{Item: schedule.Item{History: h}, Memo: d.Memo}, b, t0)
	}
	if d.Class != 0 || d.Tau != 1 || !strings.Contains(d.Why(), "class 0") {
		t.Errorf("after two changes %+v %s", d, d.Why())
	}
	before := d.Memo
	h.Add(schedule.Event{At: at(8), Outcome: schedule.Failed})
	if d = Decide(Barbosa, Item{Item: schedule.Item{History: h}, Memo: d.Memo}, b, t0); d.Memo != before {
		t.Error("an error moved a page")
	}
}

func TestFloorCeilingRhythm(t *testing.T) {
	b := budget(10)
	b.Floor, b.Ceiling = 20*day, 21*day
	h := story("ucccccccc", 1)
	d := Decide(Uniform, item(h), b, h.Last())
	if d.Tau != 20 || !strings.Contains(d.Why(), "no sooner") {
		t.Errorf("%g %s", d.Tau, d.Why())
	}
	b.Interval = 50 * day
	if d = Decide(Uniform, item(h), b, h.Last()); d.Tau != 21 || !strings.Contains(d.Why(), "at least") {
		t.Errorf("%g %s", d.Tau, d.Why())
	}
	early := h.Last().Add(-time.Hour) // the clock was set back
	if d = Decide(Uniform, item(h), b, early); d.At.After(early.Add(21 * day)) {
		t.Errorf("due %v after a clock was set back to %v", d.At, early)
	}
}

// The phase shortens a first wait and no later one, and not below the floor. It does not change
// how often the item is visited. Items that are gone or failed have a wait of their own.
func TestPhaseOfFirstWait(t *testing.T) {
	b := budget(10)
	for _, tt := range []struct {
		word  string
		phase float64
		share float64
	}{{"u", 0.25, 0.25}, {"u", 0, 1}, {"u", 1, 1}, {"uu", 0.25, 1}, {"uc", 0.25, 1}, {"ug", 0.25, 1}, {"ue", 0.25, 1},
		{"eu", 0.5, 0.5}} {
		h := story(tt.word, 10)
		for _, p := range All() {
			d, whole := Decide(p, Item{Item: schedule.Item{History: h, Phase: tt.phase}}, b, h.Last()),
				Decide(p, item(h), b, h.Last())
			got, want := d.At.Sub(h.Last()).Hours()/24, tt.share*whole.At.Sub(h.Last()).Hours()/24
			if math.Abs(got-want) > 1e-6 || d.Tau != whole.Tau {
				t.Errorf("%s of %q, phase %g: after %g days (every %g), want %g (every %g)", p, tt.word, tt.phase, got,
					d.Tau, want, whole.Tau)
			}
		}
	}
}

// Cho and Garcia-Molina 2003, example of section 4: five pages that change 1 to 5 times a day,
// five visits a day. The optimum is 1.15, 1.36, 1.35, 1.14 and 0 visits: the page that changes
// most gets none.
func TestOptimumOfFivePages(t *testing.T) {
	want := []float64{1.15, 1.36, 1.35, 1.14, 0}
	lo, hi := 1e-6, 1.0
	var visits [5]float64
	for range 60 {
		price := math.Sqrt(lo * hi)
		total := 0.0
		for i := range visits {
			visits[i] = 1 / KnownRate(float64(i+1), price)
			total += visits[i]
		}
		if total > 5 {
			lo = price
		} else {
			hi = price
		}
	}
	for i, w := range want {
		if math.Abs(visits[i]-w) > 0.03 {
			t.Errorf("page %d: %.3f visits a day, want %.2f", i+1, visits[i], w)
		}
	}
}
