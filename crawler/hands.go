package crawler

import (
	"context"
	"runtime/pprof"
	"sync"
)

// hands are goroutines that are used again: the stack of one that judges a page or writes to the store grows, and
// would be grown and copied for each page anew. Safe for concurrent use.
type hands struct {
	most int // that are kept with nothing to do

	mu   sync.Mutex
	idle []chan func() // who waits for work, the last to come first in turn
	over bool
}

// do runs f on a goroutine of its own, as go does.
func (h *hands) do(f func()) {
	h.mu.Lock()
	last := len(h.idle) - 1
	if last < 0 {
		h.mu.Unlock()
		go h.work(f)
		return
	}
	hand := h.idle[last]
	h.idle = h.idle[:last]
	h.mu.Unlock()
	hand <- f
}

// work runs f, and what it is given afterwards. Where f ends the goroutine, another takes its place when there is work.
func (h *hands) work(f func()) {
	pprof.SetGoroutineLabels(context.Background()) // and not the labels of the caller
	given := make(chan func(), 1)
	for f != nil {
		f()
		f = nil // what it holds is not kept alive by who waits
		if h.rest(given) {
			f = <-given
		}
	}
}

// rest says whether who is given work by given is kept.
func (h *hands) rest(given chan func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || len(h.idle) == h.most {
		return false
	}
	h.idle = append(h.idle, given)
	return true
}

// end lets those go who have nothing to do, and each of the others once it has done its work.
func (h *hands) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, hand := range h.idle {
		close(hand)
	}
	h.idle = nil
}
