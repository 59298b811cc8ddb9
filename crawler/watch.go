package crawler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/store"
)

// A fetch is watched. If it makes no progress for Options.Stuck, its stack is logged and its
// context is cancelled. If it has not ended stuckGrace later, it is given up. Then its Key is tried
// again as after any failure, its worker fetches something else, and its site is asked again after
// stuckRest. The site is never asked twice at once: requests of the old fetch end with its context,
// and its Gate allows no new ones.
//
// Progress is a return from Gate, Judge or Room, or the end. Time spent waiting in Gate (for the
// site's pace or the volunteer's limits), Judge and Room does not count, because it may be long.
const (
	defaultStuck = 5 * time.Minute  // far above what one request, its wait and its judgement take
	stuckGrace   = 30 * time.Second // also for fetches under way when Run ends
	stuckRest    = time.Minute      // as long as a request of package fetch can last
	maxStack     = 64 << 10         // bytes of the stack that are logged
	// lastTry is how long a Key waits if every attempt panicked or was stuck. That is a fault of
	// this program, and the next version may not have it.
	lastTry = 24 * time.Hour
)

// errStuck is why the context of a fetch was cancelled, and what its Gate returns then.
var errStuck = errors.New("crawler: the fetch made no progress and was given up")

// pulse is the progress of a fetch, as others see it. Safe for concurrent use.
type pulse struct {
	mu      sync.Mutex
	gated   int       // calls of Gate
	waiting int       // calls of Gate and hold that have not returned
	last    time.Time // when it last made progress
	ended   bool      // the fetch has returned
	left    bool      // it was given up
}

// enter begins a call of Gate; first says that it is the first call. It fails if the fetch was
// given up.
func (p *pulse) enter() (first bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return false, errStuck
	}
	p.gated++
	p.waiting++
	return p.gated == 1, nil
}

// hold begins a wait that is no fault of the fetch: for memory, or until a majority has its
// attempt. It fails if the fetch was given up.
func (p *pulse) hold() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return errStuck
	}
	p.waiting++
	return nil
}

// leave ends a call of Gate or hold.
func (p *pulse) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	p.last = time.Now()
}

// calls returns how often Gate was called.
func (p *pulse) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gated
}

// idle returns how long there has been no progress at now; 0 while a call waits.
func (p *pulse) idle(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting > 0 {
		return 0
	}
	return now.Sub(p.last)
}

// abandon gives the fetch up; false if it has ended.
func (p *pulse) abandon() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = !p.ended
	return p.left
}

// end marks the fetch as ended; late says that it was given up before.
func (p *pulse) end() (late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	return p.left
}

// answer is what Source.Fetch returned.
type answer struct {
	res Result
	err error
}

// ask lets src fetch, and watches it. A panic in src is a failed fetch; the peer goes on.
func (t *task) ask(ctx context.Context, src Source, now time.Time) (Result, error) {
	checkpoint, err := t.checkpoint()
	if err != nil {
		return Result{}, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.pulse.last = time.Now()
	answered := make(chan answer, 1)
	t.c.hands.do(func() {
		pprof.Do(inner, pprof.Labels("key", string(t.due.Key)), func(ctx context.Context) {
			t.call(ctx, src, Task{Due: t.due, Site: t.site, Now: now, Checkpoint: checkpoint, Gate: t.gate,
				Judge: t.judge, Room: t.room, Others: t.others}, answered)
		})
	})
	if a, ok := t.await(ctx, answered); ok {
		return a.res, a.err
	}
	ending := ctx.Err() != nil
	if !ending {
		t.c.counts.stuck.Add(1)
		t.c.o.Logger.Error("fetch is stuck", "source", src.Name(), "key", t.due.Key, "limit", t.c.o.Stuck, "stack",
			stackOf(string(t.due.Key)))
		cancel(errStuck)
	}
	grace := time.NewTimer(stuckGrace)
	defer grace.Stop()
	var a answer
	select {
	case a = <-answered:
	case <-grace.C:
		if t.pulse.abandon() {
			return t.given(ctx, src)
		}
		a = <-answered
	}
	if a.err == nil || errors.Is(a.err, ErrNotOwned) || ending {
		return a.res, a.err
	}
	return t.fault("stuck", "no progress for "+t.c.o.Stuck.String()), nil
}

// call calls Fetch, and sends one answer even if Fetch panics or ends the goroutine.
func (t *task) call(ctx context.Context, src Source, job Task, answered chan<- answer) {
	var a answer
	returned := false
	defer func() {
		if r := recover(); r != nil || !returned {
			t.c.o.Logger.Error("source panicked", "source", src.Name(), "key", t.due.Key, "panic", r, "stack",
				string(debug.Stack()))
			a = answer{res: t.fault("panic", "panic in the source")}
		}
		if t.pulse.end() {
			t.c.counts.abandoned.Add(-1)
			t.c.o.Logger.Info("a fetch that was given up has ended", "key", t.due.Key, "err", a.err)
		}
		answered <- a
	}()
	a.res, a.err = src.Fetch(ctx, job)
	returned = true
}

// await waits for the answer while there is progress. ok is false if there is no progress, or if
// ctx is done.
func (t *task) await(ctx context.Context, answered <-chan answer) (a answer, ok bool) {
	timer := time.NewTimer(t.c.o.Stuck)
	defer timer.Stop()
	for {
		select {
		case a := <-answered:
			return a, true
		case <-ctx.Done():
			return answer{}, false
		case now := <-timer.C:
			idle := t.pulse.idle(now)
			if idle >= t.c.o.Stuck {
				return answer{}, false
			}
			timer.Reset(t.c.o.Stuck - idle)
		}
	}
}

// given returns the result of a fetch that does not end. If there are as many of them as workers,
// that is no accident, and Run ends.
func (t *task) given(ctx context.Context, src Source) (Result, error) {
	c := t.c
	n := c.counts.abandoned.Add(1)
	c.o.Logger.Error("fetch does not end: given up", "source", src.Name(), "key", t.due.Key, "such", n)
	if ctx.Err() != nil {
		return Result{Site: t.site}, ctx.Err()
	}
	if int(n) >= c.o.Workers {
		c.fail(fmt.Errorf("crawler: %d fetches do not end, the last of %s by source %s: start again", n, t.due.Key,
			src.Name()))
	}
	res := t.fault("stuck", "no progress for "+c.o.Stuck.String()+", and it does not end")
	if rest := time.Now().Add(stuckRest); rest.After(res.Site.NextAllowed) {
		res.Site.NextAllowed = rest
	}
	return res, nil
}

// fault returns the result of a fetch that failed by a fault of this program. The Key is tried
// again after growing waits, then once a day.
func (t *task) fault(stop, reason string) Result {
	now := time.Now()
	next := fetch.Retry{}.Again(t.due, now, reason)
	if next.State == store.StateRefused {
		next.At = now.Add(lastTry)
	}
	return Result{Site: t.site, Next: next, Stop: stop, Planned: true}
}

// stackOf returns the current stacks of the goroutines that fetch key, at most maxStack bytes.
func stackOf(key string) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	label := []byte(`"key":` + strconv.Quote(key))
	var out []byte
	for part := range bytes.SplitSeq(all.Bytes(), []byte("\n\n")) {
		if bytes.Contains(part, label) {
			out = append(append(out, part...), "\n\n"...)
		}
	}
	return string(out[:min(len(out), maxStack)])
}
