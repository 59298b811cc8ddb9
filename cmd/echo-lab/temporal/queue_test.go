package temporal

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

// A link cited by three pages comes before one that was cited once and found earlier.
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
