package crawler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/echo-node/echo-node/store"
)

// A page that ends the process that judges it would end one peer after the other: its Key stays due, and the next owner
// of its slice fetches it. So no page is judged before the attempt is durable at a majority of the slice's replicas
// (judge). An attempt that is found open by another process was under way at the death of the first. With one such
// death the Key is a suspect: from then on it is judged while nothing else is, and its attempt is open for as long
// only, so that the next death proves which page it was. With two it is left alone (store.StateQuarantined).
//
// What a crash leaves:
//   - before the attempt is durable: nothing, and nothing was judged;
//   - after it, before a majority has it: the same, or an attempt that makes the Key a suspect;
//   - while the page is judged, or before the Commit is durable: an open attempt, and the Key due;
//   - after the Commit: neither, as one batch has both.

// judge is Task.Judge.
func (t *task) judge(ctx context.Context, need int64) (done func(), err error) {
	if err := t.pulse.hold(); err != nil {
		return nil, err
	}
	defer t.pulse.leave()
	if done, err = t.reserve(ctx, need); err != nil {
		return nil, err
	}
	if err := t.attempt(ctx); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// reserve waits for the memory that a judgement may take. A page that is a suspect takes all of it and is so alone,
// until its task ends. Who asks several times (need is 0) is alone among suspects, and only until done.
func (t *task) reserve(ctx context.Context, need int64) (done func(), err error) {
	c, m := t.c, t.c.memory
	if !t.suspect {
		got, err := m.take(ctx, m.judging, need)
		if err != nil {
			return nil, err
		}
		free := sync.OnceFunc(func() { m.give(m.judging, got) })
		t.holds.add(free)
		return free, nil
	}
	if t.alone {
		return func() {}, nil
	}
	if err := c.suspects.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	free := sync.OnceFunc(func() { c.suspects.Release(1) })
	t.holds.add(free)
	t.alone = true
	if need == 0 { // it may ask again, and hold up all pages meanwhile, or be accused of a death that comes then
		return func() {
			t.lived()
			t.alone = false
			free()
		}, nil
	}
	got, err := m.take(ctx, m.judging, m.half)
	if err != nil {
		return nil, err
	}
	t.holds.add(func() { m.give(m.judging, got) })
	return func() {}, nil
}

// trying is the writing of an attempt.
type trying struct {
	written chan struct{} // closed once err is known
	err     error
}

// errEnding is of an attempt whose writing did not return: the disk failed, and whoever is told of that
// (store.Options.Fatal) ended the goroutine.
var errEnding = errors.New("crawler: the store has failed for good")

// begin has it written down that the Key is about to be judged, once a fetch. Gate calls it before the request, so that
// the disk and the replicas learn of it while the site answers; of a suspect only attempt does, when the suspect is
// alone.
func (t *task) begin() {
	a := &trying{written: make(chan struct{}), err: errEnding}
	if !t.trying.CompareAndSwap(nil, a) {
		return
	}
	t.c.hands.do(func() {
		defer close(a.written)
		c := t.c
		err := c.o.Store.Queue.Try(t.step.Slice, t.due.Key, store.Attempt{At: time.Now(), Peer: c.o.Peer, Run: c.run})
		if errors.Is(err, store.ErrNotExist) || errors.Is(err, store.ErrFenced) {
			err = ErrNotOwned
		} else if err != nil {
			err = fmt.Errorf("crawler: %w", err)
		}
		a.err = err
	})
}

// written waits until the attempt that has begun is on disk, and says whether there is one. It waits for this disk
// alone.
func (t *task) written() (open bool, err error) {
	a := t.trying.Load()
	if a == nil {
		return false, nil
	}
	<-a.written
	return a.err == nil, a.err
}

// suspectWait is how long a suspect may wait for the majority. Nothing is judged meanwhile, and a death in that time
// accuses it all the same.
const suspectWait = 5 * time.Second

// errUnheard is of a suspect that no majority has heard of in time: it is tried again after unheardRest.
var errUnheard = errors.New("crawler: no majority of the replicas knows of the attempt at a suspect")

const unheardRest = time.Minute

// attempt waits until a majority of the replicas knows of the attempt. That of a suspect begins once they know of all
// that was before it, so that the wait is short, and is withdrawn when it is not.
func (t *task) attempt(ctx context.Context) error {
	if t.known.Load() {
		return nil
	}
	if t.suspect {
		if err := t.committed(ctx); err != nil {
			return err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, suspectWait, errUnheard)
		defer cancel()
	}
	t.begin()
	if _, err := t.written(); err != nil {
		return err
	}
	if err := t.committed(ctx); err != nil {
		t.lived()
		return err
	}
	t.known.Store(true)
	return nil
}

// committed waits until what was written of the slice is known to a majority of its replicas.
func (t *task) committed(ctx context.Context) error {
	sl := t.step.Slice
	if committed := t.c.o.AtQuorum(sl); committed != nil {
		select {
		case <-committed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if t.c.o.Store.Log.Fenced(sl) { // nobody waits for a majority there any more
		return ErrNotOwned
	}
	return nil
}

// lived says that the attempt has ended, and the process lives.
func (t *task) lived() {
	// one that could not be written is told to whoever waits for it: the judgement, or the Commit
	open, _ := t.written()
	if !open {
		return
	}
	t.known.Store(false)
	t.trying.Store(nil)
	err := t.c.o.Store.Queue.Untry(t.step.Slice, t.due.Key, t.c.run)
	if err != nil && !errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrNotExist) {
		t.c.fail(fmt.Errorf("crawler: %w", err))
	}
}

// endAttempt ends the attempt where no Commit did, and lets go of what the task holds.
func (t *task) endAttempt() {
	if !t.wrote {
		t.lived()
	}
	t.holds.end()
}

// mayTry says whether the Key may be judged, and how. One that processes died at is left alone.
func (t *task) mayTry(now time.Time) bool {
	c, sl, k := t.c, t.step.Slice, t.due.Key
	trial, err := c.o.Store.Queue.Trial(sl, k)
	if err != nil {
		c.fail(fmt.Errorf("crawler: %w", err))
		return false
	}
	if trial = trial.Seen(c.run); !trial.Guilty() {
		if t.suspect = trial.Suspect(); t.suspect {
			c.counts.suspects.Add(1)
			c.o.Logger.Info("key was under way when a process died: it is judged alone", "key", k, "death",
				trial.Deaths[0].At, "peer", trial.Deaths[0].Peer)
		}
		return true
	}
	err = c.o.Store.Queue.Quarantine(sl, k, c.run, now)
	switch {
	case errors.Is(err, store.ErrNotExist) || errors.Is(err, store.ErrFenced):
	case err != nil:
		c.fail(fmt.Errorf("crawler: %w", err))
	default:
		c.counts.quarantined.Add(1)
		c.counts.failure(Failure{Key: k, State: store.StateQuarantined, Reason: trial.Reason(), At: now})
		c.o.Logger.Error("key is left alone", "key", k, "reason", trial.Reason())
		c.o.Committed()
	}
	return false
}
