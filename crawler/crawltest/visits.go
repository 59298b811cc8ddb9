package crawltest

import (
	"slices"
	"sync"
)

// Visits records the requests to a world: use Add as Options.Seen. The zero value is empty and
// ready to use. Visits is safe for concurrent use.
type Visits struct {
	mu  sync.Mutex
	all []Visit
}

// Add appends one visit.
func (v *Visits) Add(one Visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, one)
}

// Sorted returns a copy in order of time.
func (v *Visits) Sorted() []Visit {
	v.mu.Lock()
	all := slices.Clone(v.all)
	v.mu.Unlock()
	slices.SortStableFunc(all, func(a, b Visit) int { return a.At.Compare(b.At) })
	return all
}
