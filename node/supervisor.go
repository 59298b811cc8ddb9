package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/echo-node/echo-node/node/call"
)

// The parts of a peer, and what becomes of one that ends while the peer runs.
//
// A part in which others trust (the overlay, the index, the crawler, forwarding,
// agreement, replicating, hand-over, turns) is not started again within the process: what it
// had in its hands, a lock or half a step, is known to be whole only when the
// directory is opened. Its error, or its end without one, ends Run with an error
// that names it; a panic ends the process, as a crash, which costs nothing that
// was acknowledged. Whoever runs the program starts it again (systemd, Docker).
//
// A part on which nothing rests (load, repair, backups, streams) is started again after a
// panic, with growing waits, and counted. Its error is the store's, and ends Run.
const (
	restartFirst = time.Second
	restartMost  = 5 * time.Minute
)

// supervise runs a part of the peer; its end without an error is one, too, while ctx is not done.
func (n *Node) supervise(ctx context.Context, name string, run func(context.Context) error) error {
	err := run(ctx)
	switch {
	case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)), n.closing.Load() && err == nil:
		return nil
	case err == nil:
		return fmt.Errorf("%s: ended by itself: start again", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// restarted is run, begun again after each panic.
func (n *Node) restarted(name string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for wait := restartFirst; ; wait = min(2*wait, restartMost) {
			begun := time.Now()
			err, panicked := n.guarded(ctx, name, run)
			if !panicked {
				return err
			}
			n.count.restarts.Add(1)
			if time.Since(begun) > restartMost {
				wait = restartFirst
			}
			if !call.Sleep(ctx, wait, nil) {
				return ctx.Err()
			}
		}
	}
}

func (n *Node) guarded(ctx context.Context, name string, run func(context.Context) error) (err error, panicked bool) {
	defer func() {
		if r := recover(); r != nil {
			n.log.Error("part panicked: it is begun again", "part", name, "panic", r, "stack", string(debug.Stack()))
			panicked = true
		}
	}()
	return run(ctx), false
}

// The watchdog over the agreement, behind which leases, ballots and every
// acknowledgement wait: a lock that is never given back, or a disk that answers no
// write, would leave a peer that is alive and does nothing. Its other replicas go on
// without it; it ends, and is started again.
const (
	stallEvery = 30 * time.Second
	stallLimit = 5 * time.Minute  // far above the slowest step of the agreement
	stallGrace = 10 * time.Second // for a process that was stopped, and is woken now
	maxStall   = 1 << 20          // bytes of stacks that are logged
)

// watch is the watchdog.
func (n *Node) watch(ctx context.Context) error {
	return n.watchOver(ctx, func() {
		n.agreement.RLock()
		defer n.agreement.RUnlock()
	})
}

// watchOver ends the process when pass does not return; see Options.Fatal.
func (n *Node) watchOver(ctx context.Context, pass func()) error {
	for call.Sleep(ctx, stallEvery, nil) {
		begun := time.Now()
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			pass()
		}()
		stalled, err := standsStill(ctx, passed)
		if err != nil {
			return err
		}
		if stalled {
			b := make([]byte, maxStall)
			n.log.Error("the agreement stands still", "since", time.Since(begun), "stacks",
				string(b[:runtime.Stack(b, true)]))
			n.o.fatal(fmt.Errorf("the agreement has stood still for %s: start again; nothing acknowledged is lost",
				stallLimit+stallGrace))
		}
	}
	return ctx.Err()
}

// standsStill waits for passed, but not longer than the limit.
func standsStill(ctx context.Context, passed <-chan struct{}) (bool, error) {
	for _, limit := range []time.Duration{stallLimit, stallGrace} {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-passed:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer.C:
		}
	}
	return true, nil
}

// fatal ends the process.
func (o Options) fatal(err error) {
	if o.Fatal != nil {
		o.Fatal(err)
	}
	panic(err)
}
