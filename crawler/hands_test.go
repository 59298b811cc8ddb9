package crawler

import (
	"context"
	"runtime"
	"runtime/pprof"
	"testing"
	"testing/synctest"
)

// Each function runs once, on another goroutine. A goroutine that ends is replaced. None is left
// after the end.
func TestHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hands{most: 3}
		idle := func() int {
			synctest.Wait()
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.idle)
		}
		ran, hold := make(chan int, 100), make(chan struct{})
		for range 10 {
			h.do(func() { ran <- 1; <-hold })
		}
		if n := idle(); len(ran) != 10 || n != 0 {
			t.Errorf("%d of 10 run at once, %d wait for work", len(ran), n)
		}
		close(hold)
		if n := idle(); n != 3 {
			t.Errorf("%d wait for work, want 3", n)
		}
		h.do(runtime.Goexit)
		if n := idle(); n != 2 {
			t.Errorf("%d wait for work after one has ended, want 2", n)
		}
		for range 5 {
			h.do(func() { ran <- 1 })
			idle()
		}
		if n := idle(); len(ran) != 15 || n != 2 {
			t.Errorf("%d ran, want 15; %d wait for work, want 2", len(ran), n)
		}
		last := make(chan struct{})
		h.do(func() { <-last })
		synctest.Wait()
		h.end()
		h.do(func() { ran <- 1 })
		close(last)
		if n := idle(); len(ran) != 16 || n != 0 { // synctest.Test fails if a goroutine is left here
			t.Errorf("after the end: %d ran, want 16; %d wait for work", len(ran), n)
		}
	})
}

// A goroutine that is used again does not have the labels by which a stuck fetch is found.
func TestHandsHaveNoLabels(t *testing.T) {
	h := &hands{most: 1}
	defer h.end()
	runs, hold := make(chan bool), make(chan struct{})
	defer close(hold)
	pprof.Do(t.Context(), pprof.Labels("key", "another"), func(context.Context) {
		h.do(func() { runs <- true; <-hold })
		<-runs
	})
	if s := stackOf("another"); s != "" {
		t.Errorf("it is taken for a fetch of another Key: %s", s)
	}
}
