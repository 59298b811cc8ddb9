package frontier

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The queue returns sites in the order of a sorted list, after any mix of pushes, removals, moves
// and sweeps.
func TestQueueIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, turns := newQueue(), uint64(0)
		sites := make([]site, 40)
		var want []*site // by key, then by order of pushing
		key := rapid.Custom(func(t *rapid.T) int64 {
			width := int64(1) << rapid.SampledFrom([]int{2, bucketBits, 40, 61}).Draw(t, "width")
			return rapid.Int64Range(-width, width).Draw(t, "key")
		})
		some := func(t *rapid.T) *site { return &sites[rapid.IntRange(0, len(sites)-1).Draw(t, "site")] }
		forget := func(s *site) {
			if i := slices.Index(want, s); i >= 0 {
				want = slices.Delete(want, i, i+1)
				q.take(s)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				s := some(t)
				forget(s)
				turns++
				s.key, s.turn = key.Draw(t, "key"), turns
				q.push(s)
				i, _ := slices.BinarySearchFunc(want, s,
					func(a, b *site) int { return cmp.Or(cmp.Compare(a.key, b.key), -1) })
				want = slices.Insert(want, i, s)
			},
			"take": func(t *rapid.T) { forget(some(t)) },
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					return
				}
				if s := q.pop(); s != want[0] || s.in != nil {
					t.Fatalf("popped %d, want %d", s.key, want[0].key)
				}
				want = want[1:]
			},
			"": func(t *rapid.T) {
				if q.n != len(want) || q.held > 2*len(sites)+64+1 {
					t.Fatalf("%d sites of %d, %d entries", q.n, len(want), q.held)
				}
			},
		})
		for _, s := range want {
			if got := q.pop(); got != s {
				t.Fatalf("popped %d, want %d", got.key, s.key)
			}
		}
		if q.first() != nil {
			t.Fatal("more than was pushed")
		}
	})
}
