package crawler

import (
	"context"
	"runtime/pprof"
	"sync"
)

// hands are goroutines that are used again. The stack of a goroutine that judges a page or writes
// to the store grows. A new goroutine for each page would grow and copy its stack each time. Safe
// for concurrent use.
type hands struct {
	most int // how many idle goroutines are kept

	mu   sync.Mutex
	idle []chan func() // the channels of idle goroutines; the last one gets the next work
	over bool          // no goroutine is kept any more
}

// do runs f on another goroutine, as the go statement does. It does not wait.
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

// work runs f, and then each function that it is given. If f ends the goroutine, a new one is
// started when there is work.
func (h *hands) work(f func()) {
	pprof.SetGoroutineLabels(context.Background()) // the goroutine must not have the labels of the caller
	given := make(chan func(), 1)
	for f != nil {
		f()
		f = nil // so that an idle goroutine does not keep alive what f refers to
		if h.rest(given) {
			f = <-given
		}
	}
}

// rest reports whether the goroutine is kept. If so, it gets its next work from given.
func (h *hands) rest(given chan func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || len(h.idle) == h.most {
		return false
	}
	h.idle = append(h.idle, given)
	return true
}

// end ends each idle goroutine, and each of the others after its work. Later calls of do still run.
func (h *hands) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, hand := range h.idle {
		close(hand)
	}
	h.idle = nil
}
