package period

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPriority(t *testing.T) {
	for count, want := range map[int]int{0: 100, 1: 50, 2: 33, 3: 25, 4: 20, 9: 10, 99: 1, 100: 0, 1000: 0, -1: 100} {
		if got := Priority(count); got != want {
			t.Errorf("Priority(%d) = %d, want %d", count, got, want)
		}
	}
}

// A link cited by three pages goes before one cited once that was found earlier.
func TestQueueAsksAgain(t *testing.T) {
	q := NewQueue()
	q.Put("early", -float64(Priority(1)))
	for count := range 3 {
		q.Put("late", -float64(Priority(count+1)))
	}
	q.Put("same", -float64(Priority(1)))
	for _, want := range []string{"late", "early", "same"} {
		if got, _, ok := q.Pop(); !ok || got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, _, ok := q.Pop(); ok || q.Len() != 0 {
		t.Error("the queue is not empty")
	}
}

func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, last := NewQueue(), make(map[string]float64)
		for range rapid.IntRange(0, 60).Draw(t, "puts") {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "key")
			last[key] = float64(rapid.IntRange(0, 5).Draw(t, "score"))
			q.Put(key, last[key])
		}
		before := 6.0
		for range last {
			key, score, ok := q.Pop()
			if !ok || score != last[key] || score > before {
				t.Fatalf("%q %v after %v, put with %v", key, score, before, last[key])
			}
			before = score
		}
		if q.Len() != 0 {
			t.Fatal("a key came twice")
		}
	})
}

func TestLinkEvidence(t *testing.T) {
	war := mustScope(t, "1939..1945")
	in := Segment{Dates: []Span{yearSpan(1940)}}
	near := Segment{Dates: []Span{yearSpan(1950)}}
	far := Segment{Dates: []Span{yearSpan(1800)}}
	none := Segment{}
	s := NewScorer(ScorerOptions{})
	score := func(g Segment, l Link, steps int) float64 {
		return s.Score(NewLinkEvidence(war, g, l, 0.5, steps))
	}
	plain := Link{Key: "http://x/a", Anchor: "a batalha"}
	named := Link{Key: "http://x/a", Anchor: "a batalha de 1941"}
	address := Link{Key: "https://pt.wikipedia.org/wiki/Batalha_de_1941", Anchor: "a batalha"}
	other := Link{Key: "http://x/a", Anchor: "a batalha de 1815"}
	order := []float64{score(in, named, 0), score(in, plain, 0), score(near, plain, 0), score(far, plain, 0), score(none, plain, 0), score(none, plain, 1), score(none, other, 1)}
	for i := range order[1:] {
		if order[i] <= order[i+1] {
			t.Errorf("score %d is %v, not above %v", i, order[i], order[i+1])
		}
	}
	if score(in, address, 0) != score(in, named, 0) {
		t.Error("a year in the address counts like one in the anchor")
	}
	e := NewLinkEvidence(war, in, plain, 0.5, 0)
	if more := e.Merge(e); s.Score(more) <= s.Score(e) || more.Valid != 2 {
		t.Error("seen twice is not better than once")
	}
}

// An island reachable only through one undated page is reached, if steps through
// pages out of scope are allowed.
func TestTunnel(t *testing.T) {
	war := mustScope(t, "1939..1945")
	// seed (in scope) -> hub (undated) -> island (in scope)
	for steps, want := range map[int]bool{0: true, -1: false} {
		s := NewScorer(ScorerOptions{MaxSteps: steps})
		hub := NewLinkEvidence(war, Segment{}, Link{Key: "hub"}, 0.5, 0)
		island := NewLinkEvidence(war, Segment{}, Link{Key: "island"}, 0, 1)
		if !s.Follow(hub) || s.Follow(island) != want {
			t.Errorf("MaxSteps %d: island followed is %v", steps, s.Follow(island))
		}
		if s.Score(island) >= s.Score(hub) {
			t.Error("a step further must hope for less")
		}
	}
}

func TestLearn(t *testing.T) {
	s := NewScorer(ScorerOptions{Rate: 0.1})
	good, bad := LinkEvidence{Seen: 1, Inherit: true}, LinkEvidence{Seen: 1, Valid: 1, Share: 1, Near: 1}
	for range 300 {
		s.Learn(good, true)
		s.Learn(bad, false)
	}
	if s.Score(good) < 0.8 || s.Score(bad) > 0.2 {
		t.Errorf("learned %v and %v", s.Score(good), s.Score(bad))
	}
}
