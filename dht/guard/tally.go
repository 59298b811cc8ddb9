package guard

import (
	"maps"
	"sync"
)

// Tally counts by name. The names are this program's own, so they are few. All
// methods are safe for concurrent use.
type Tally struct {
	mu sync.Mutex
	n  map[string]uint64
}

// Add counts one.
func (t *Tally) Add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]uint64{}
	}
	t.n[name]++
}

// All are the counts so far, by name.
func (t *Tally) All() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.n)
}
