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

// The parts of a peer, and what happens when one ends while the peer runs.
//
// Other parts rely on most of them: the overlay, the index, the crawler, forwarding, agreement,
// replication, hand-over and host leases. Such a part is not restarted within the process. Its
// state, such as a lock or half a step, is known to be whole only after the directory is opened
// again. If it returns, with or without an error, Run ends with an error that names it. A panic
// ends the process like a crash, which loses nothing that was acknowledged. The program that
// started this one (systemd, Docker) starts it again.
//
// No other part relies on these: repair, limits, streams, recall, scrub, backups. Each is restarted
// after a panic, with growing delays, and counted. Its error comes from the store and ends Run.
const (
	restartFirst = time.Second
	restartMost  = 5 * time.Minute
)

// supervise runs a part of the peer. If the part ends without an error before ctx does, that is an
// error, too.
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

// restarted returns a run that is restarted after each panic.
func (n *Node) restarted(name string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for wait := restartFirst; ; wait = min(2*wait, restartMost) {
			begun := time.Now()
			err, panicked := n.guarded(ctx, name, run)
			if !panicked {
				return err
			}
			n.counts.Restarts.Add(1)
			if time.Since(begun) > restartMost {
				wait = restartFirst
			}
			if !call.Sleep(ctx, wait, nil) {
				return ctx.Err()
			}
		}
	}
}

// guarded calls run and reports whether it panicked.
func (n *Node) guarded(ctx context.Context, name string, run func(context.Context) error) (err error, panicked bool) {
	defer func() {
		if r := recover(); r != nil {
			n.log.Error("part panicked: it is begun again", "part", name, "panic", r, "stack", string(debug.Stack()))
			panicked = true
		}
	}()
	return run(ctx), false
}

// The watchdog over the agreement. Leases, ballots and every acknowledgement wait for the
// agreement. A lock that is never released, or a disk that never finishes a write, would leave a
// peer that is alive and does nothing. Its other replicas continue without it. The process ends and
// is restarted.
const (
	stallEvery = 30 * time.Second
	stallLimit = 5 * time.Minute  // far above the slowest step of the agreement
	stallGrace = 10 * time.Second // for a process that was stopped and now continues
	maxStall   = 1 << 20          // bytes of stacks in the log
)

// watch is the watchdog.
func (n *Node) watch(ctx context.Context) error {
	return n.watchOver(ctx, func() {
		n.agreement.RLock()
		defer n.agreement.RUnlock()
	})
}

// watchOver ends the process if pass does not return; see Options.Fatal.
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

// standsStill waits for passed, and reports whether it did not come within the limits.
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
