package schedule

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the time d days after t0.
func at(d float64) time.Time { return t0.Add(time.Duration(d * float64(day))) }

// story returns a history of visits at a fixed interval from a word: u, c, e, g, r.
func story(word string, every float64) *History {
	h := new(History)
	for i, c := range word {
		o := map[rune]Outcome{'u': Unchanged, 'c': Changed, 'e': Failed, 'g': Gone, 'r': Redirect}[c]
		h.Add(Event{At: at(float64(i) * every), Outcome: o})
	}
	return h
}

// Totals counts the visits that can show a change, without the first.
func TestHistoryTotals(t *testing.T) {
	for _, c := range []struct {
		word            string
		visits, changes int
	}{
		{"", 0, 0},
		{"u", 0, 0},    // the first visit has nothing to compare with
		{"c", 0, 0},    // even if the crawl calls it a change
		{"uuu", 2, 0},  // two visits after it
		{"ccc", 2, 2},  //
		{"ucec", 2, 2}, // an error does not count as a visit
		{"eeuc", 1, 1}, // nor can it be the first
		{"ugrc", 1, 1},
	} {
		h := story(c.word, 1)
		if v, x := h.Totals(); v != c.visits || x != c.changes {
			t.Errorf("%q: totals %d/%d, want %d/%d", c.word, x, v, c.changes, c.visits)
		}
	}
}

// The time of failed visits counts in the gap before the next good visit.
func TestErrorsLendTheirTimeToTheNextLook(t *testing.T) {
	h := story("ueeec", 1)
	var got []Run
	for g := range h.Gaps {
		got = append(got, g)
	}
	if len(got) != 1 || got[0].Span != 4*day || got[0].Changes != 1 {
		t.Fatalf("gaps %+v, want one change over four days", got)
	}
	if h.Failures(Failed) != 0 || story("uegg", 1).Failures(Gone) != 2 {
		t.Fatal("failures in a row miscounted")
	}
}

// An error after a death does not revive an item; a good visit does.
func TestDead(t *testing.T) {
	for word, want := range map[string]bool{"": false, "u": false, "ug": true, "uge": true, "ugu": false, "ur": false,
		"e": false} {
		if got := story(word, 1).Dead(); got != want {
			t.Errorf("%q: dead %v", word, got)
		}
	}
}

// A visit before the last one has span 0, and does not change the last time.
func TestClockSetBack(t *testing.T) {
	h := story("uu", 1)
	h.Add(Event{At: at(-3), Outcome: Changed})
	if r := h.Runs()[2]; r.Span != 0 || !h.Last().Equal(at(1)) {
		t.Fatalf("span %v last %v", r.Span, h.Last())
	}
}

// A long history stays below its limits and loses no visit. Recent visits stay exact.
func TestHistoryIsBounded(t *testing.T) {
	h := new(History)
	for i := range 10_000 {
		o := Unchanged
		if i%7 == 0 {
			o = Changed
		}
		h.Add(Event{At: at(float64(i)), Outcome: o, Posts: i % 5})
	}
	if n := len(h.Runs()); n > MaxRuns {
		t.Fatalf("%d runs", n)
	}
	if n := len(h.Append(nil)); n > 200 {
		t.Errorf("%d bytes", n)
	}
	visits, changes := h.Totals()
	if visits != 9_999 || changes != 10_000/7 {
		t.Errorf("folding lost visits: %d/%d", changes, visits)
	}
	for _, r := range h.Runs()[len(h.Runs())-recentRuns:] {
		if r.Visits != 1 {
			t.Errorf("a recent visit was folded: %+v", r)
		}
	}
}

// A visit a day later takes 3 bytes, one a month later 4 bytes.
func TestBytesPerVisit(t *testing.T) {
	daily, monthly := story("uuuuuuuuuuuuuuuu", 1), story("uuuuuuuuuuuuuuuu", 30)
	head := len(story("u", 1).Append(nil)) - 1
	if n := len(daily.Append(nil)) - head; n > 16*3 {
		t.Errorf("daily: %d bytes for 16 visits", n)
	}
	if n := len(monthly.Append(nil)) - head; n > 16*4 {
		t.Errorf("monthly: %d bytes for 16 visits", n)
	}
}

// A history that is stored and read again is the same.
func TestHistoryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := new(History)
		now := t0
		for range rapid.IntRange(0, 80).Draw(t, "visits") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 4e7).Draw(t, "gap")) * time.Second)
			h.Add(Event{At: now, Outcome: Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")),
				Posts: rapid.IntRange(0, 300).Draw(t, "posts")})
		}
		b, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back History
		if err := back.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Append(nil), b) || !back.Last().Equal(h.Last()) || !back.First().Equal(h.First()) {
			t.Fatalf("%x came back as %x", b, back.Append(nil))
		}
	})
}

// Damaged histories give ErrHistory and an empty history.
func TestDecodeRefuses(t *testing.T) {
	good := story("ucugre", 1).Append(nil)
	var h History
	for i := 1; i < len(good); i++ {
		if err := h.Decode(good[:i]); !errors.Is(err, ErrHistory) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	for name, b := range map[string][]byte{
		"version":  append([]byte{9}, good[1:]...),
		"trailing": append(bytes.Clone(good), 0),
		"too many": {1, 5, 200},
		"padded":   {1, 0x80, 0},
		"folded 1": {1, 5, 1, 6, 0, 1, 0, 0},
		"kind 7":   {1, 5, 1, 7},
	} {
		if err := h.Decode(b); !errors.Is(err, ErrHistory) || len(h.Runs()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDecode checks that a decoded history is within the limits and encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(story("ucugreeeee", 3).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h History
		if h.Decode(b) != nil {
			return
		}
		if len(h.Runs()) > MaxRuns {
			t.Fatal("over the cap")
		}
		if out := h.Append(nil); len(b) > 0 && !bytes.Equal(out, b) {
			t.Fatalf("%x encodes to %x", b, out)
		}
		h.Add(Event{At: t0, Outcome: Changed})
		h.Totals()
	})
}
