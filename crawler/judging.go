package crawler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/echo-node/echo-node/store"
)

// A page that kills the process that judges it would kill one peer after the other. Its Key stays
// due, and the next owner of its slice fetches it. So no page is judged before the attempt is
// durable at a majority of the slice's replicas (judge).
//
// If another process finds an open attempt, the attempt was under way when the first process died.
// After one such death the Key is a suspect. From then on nothing else is judged beside it, and its
// attempt is open only while it is judged. So the next death proves which page it was. After two
// deaths it is left alone (store.StateQuarantined).
//
// What a crash leaves:
//   - before the attempt is durable: nothing, and nothing was judged;
//   - after it, before a majority has it: the same, or an attempt that makes the Key a suspect;
//   - while the page is judged, or before the Commit is durable: an open attempt, and the Key due;
//   - after the Commit: neither, because one batch writes the commit and ends the attempt.

// judge is Task.Judge: it waits for need bytes of memory and until the attempt is durable. The
// caller calls done after the judgement.
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

// reserve waits for the memory that a judgement may take. A suspect takes all of it, and so is
// judged alone, until its task ends. A suspect that may ask several times (need is 0) takes no
// memory. It excludes only other suspects, and only until done is called.
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
	if need == 0 { // it may ask again: it must not hold up all pages until then, nor be blamed for a death in between
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

// trying is the write of an attempt.
type trying struct {
	written chan struct{} // closed when err is set
	err     error
}

// errEnding is the result of an attempt whose write did not return: the disk failed, and
// store.Options.Fatal ended the goroutine.
var errEnding = errors.New("crawler: the store has failed for good")

// begin starts to write that the Key is about to be judged; it does nothing if an attempt is open.
// Gate calls it before the request. So the disk and the replicas store the attempt while the site
// answers. For a suspect, only attempt calls it, when the suspect is alone.
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

// written waits until the attempt that has begun is on this peer's disk. open says whether there is
// an attempt. It does not wait for other replicas.
func (t *task) written() (open bool, err error) {
	a := t.trying.Load()
	if a == nil {
		return false, nil
	}
	<-a.written
	return a.err == nil, a.err
}

// suspectWait is how long a suspect may wait for the majority. Nothing is judged in that time, and
// a death in that time counts against the suspect.
const suspectWait = 5 * time.Second

// errNotStored means that no majority stored the attempt at a suspect in time. The suspect is tried
// again after unheardRest.
var errNotStored = errors.New("crawler: no majority of the replicas knows of the attempt at a suspect")

const unheardRest = time.Minute

// attempt waits until a majority of the replicas has the attempt. The attempt at a suspect begins
// when the majority has all that was written before, so that the wait is short. It is withdrawn if
// the wait is longer than suspectWait.
func (t *task) attempt(ctx context.Context) error {
	if t.known.Load() {
		return nil
	}
	if t.suspect {
		if err := t.committed(ctx); err != nil {
			return err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, suspectWait, errNotStored)
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

// committed waits until a majority of the slice's replicas has all that was written in it.
func (t *task) committed(ctx context.Context) error {
	sl := t.step.Slice
	if committed := t.c.o.Swarm.AtQuorum(sl); committed != nil {
		select {
		case <-committed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if t.c.o.Store.Log.Fenced(sl) { // AtQuorum does not wait in such a slice
		return ErrNotOwned
	}
	return nil
}

// lived ends an open attempt, because the process has survived it.
func (t *task) lived() {
	// If its write failed, the judgement or the Commit returns that error.
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

// endAttempt ends the attempt if no Commit did, and releases what the task holds.
func (t *task) endAttempt() {
	if !t.wrote {
		t.lived()
	}
	t.holds.end()
}

// mayTry reports whether the Key may be judged. It marks a Key as a suspect after one death. After
// two deaths it quarantines the Key and returns false.
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
		c.o.Swarm.Committed()
	}
	return false
}
