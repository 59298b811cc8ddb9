// Package life counts what one peer has under way, so that its Close can wait for the end of all.
package life

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrClosed is wrapped by the errors of what is asked of a peer that was closed.
var ErrClosed = errors.New("closed")

// Life is that of one peer. All methods are safe for concurrent use.
type Life struct {
	ctx    context.Context // ends with Finish
	cancel context.CancelFunc

	mu      sync.Mutex
	over    bool
	running sync.WaitGroup // Add under mu, and only while not over
}

// New begins a life. The caller finishes it.
func New() *Life {
	l := &Life{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context ends with Finish.
func (l *Life) Context() context.Context { return l.ctx }

// Begin counts a goroutine that Wait will wait for; false after Finish. Who began calls End.
func (l *Life) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.running.Add(1)
	return true
}

// End is the end of what began.
func (l *Life) End() { l.running.Done() }

// Finish lets nothing more begin, and ends the Context.
func (l *Life) Finish() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.cancel()
}

// Wait waits, after Finish, for the end of all that began.
func (l *Life) Wait() { l.running.Wait() }

// Notify puts a token into c, whose capacity is 1, unless there is one.
func Notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sleep waits for wait or the end of ctx, and says whether ctx goes on.
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
