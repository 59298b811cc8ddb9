// Package life counts the goroutines of one peer, so that its Close can wait until all of them have
// ended.
package life

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrClosed is wrapped by the errors of calls to a peer that was closed.
var ErrClosed = errors.New("closed")

// Life is the lifetime of one peer. All methods are safe for concurrent use.
type Life struct {
	ctx    context.Context // ends with Finish
	cancel context.CancelFunc

	mu      sync.Mutex
	over    bool
	running sync.WaitGroup // Add is called under mu, and only while over is false
}

// New starts a Life. The caller ends it with Finish.
func New() *Life {
	l := &Life{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context returns a context that ends with Finish.
func (l *Life) Context() context.Context { return l.ctx }

// Begin counts a goroutine for which Wait waits. It returns false after Finish. After true, the
// caller must call End.
func (l *Life) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.running.Add(1)
	return true
}

// End says that a goroutine that called Begin has ended.
func (l *Life) End() { l.running.Done() }

// Finish makes Begin return false from now on, and ends the Context. It does not wait.
func (l *Life) Finish() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.cancel()
}

// Wait waits until every goroutine that called Begin has ended. Call it after Finish.
func (l *Life) Wait() { l.running.Wait() }

// Notify puts a token into c if there is none. The capacity of c must be 1. Notify does not block.
func Notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sleep waits for the duration wait, or until ctx ends. It returns false if ctx ended first.
func Sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
