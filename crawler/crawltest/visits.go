package crawltest

import (
	"slices"
	"sync"
)

// Visits is every request that a world saw; Add is its Options.Seen. The zero
// value has seen nothing. Safe for concurrent use.
type Visits struct {
	mu  sync.Mutex
	all []Visit
}

// Add takes note of one.
func (v *Visits) Add(one Visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, one)
}

// Sorted is a copy in order of time.
func (v *Visits) Sorted() []Visit {
	v.mu.Lock()
	all := slices.Clone(v.all)
	v.mu.Unlock()
	slices.SortStableFunc(all, func(a, b Visit) int { return a.At.Compare(b.At) })
	return all
}
