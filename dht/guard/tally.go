package guard

import (
	"maps"
	"sync"
)

// Tally counts events by name. The names come from this program and never from a peer, so they are
// few. The zero value is empty. All methods are safe for concurrent use.
type Tally struct {
	mu sync.Mutex
	n  map[string]uint64
}

// Add adds one to the count of name.
func (t *Tally) Add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]uint64{}
	}
	t.n[name]++
}

// All returns a copy of the counts so far, by name.
func (t *Tally) All() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.n)
}
