package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The effect of a part's end on Run.
func TestPartEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name         string
		run          func(context.Context) error
		stop, closes bool
		want         string // "" = no error
	}{
		{name: "error", run: func(context.Context) error { return broken }, want: "p: broken"},
		{name: "error while stopping", run: func(context.Context) error { return broken }, stop: true,
			want: "p: broken"},
		{name: "no error", run: func(context.Context) error { return nil }, want: "p: ended by itself"},
		{name: "stopped", run: func(ctx context.Context) error { return ctx.Err() }, stop: true},
		{name: "stopped quietly", run: func(context.Context) error { return nil }, stop: true},
		{name: "another's deadline", run: func(context.Context) error { return context.DeadlineExceeded },
			want: "p: context deadline"},
		{name: "closed", run: func(context.Context) error { return nil }, closes: true},
		{name: "error while closed", run: func(context.Context) error { return broken }, closes: true,
			want: "p: broken"},
	} {
		n := &Node{}
		n.closing.Store(c.closes)
		ctx, cancel := context.WithCancel(t.Context())
		if c.stop {
			cancel()
		}
		err := n.supervise(ctx, "p", c.run)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		cancel()
	}
}

// A part on which no other relies is restarted after each panic, with growing delays. After a long
// run the delay is short again. Its error ends it.
func TestRestartedPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := &Node{log: slog.New(slog.NewTextHandler(&log, nil))}
		begun := time.Now()
		var at []time.Duration
		broken := errors.New("broken")
		run := n.restarted("p", func(ctx context.Context) error {
			at = append(at, time.Since(begun))
			switch len(at) {
			case 4:
				time.Sleep(restartMost + time.Second)
			case 6:
				return broken
			}
			panic("oh")
		})
		if err := run(t.Context()); err != broken {
			t.Errorf("ended with %v", err)
		}
		var waits []time.Duration
		for i := 1; i < len(at); i++ {
			waits = append(waits, at[i]-at[i-1])
		}
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, restartMost + 2*time.Second,
			2 * time.Second}
		for i := range want {
			if i >= len(waits) || waits[i] != want[i] {
				t.Fatalf("waits %v, want %v", waits, want)
			}
		}
		if n.counts.Restarts.Load() != 5 || strings.Count(log.String(), "panicked") != 5 ||
			!strings.Contains(log.String(), "TestRestartedPart") {
			t.Errorf("%d restarts; %.500s", n.counts.Restarts.Load(), log.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.restarted("p", func(context.Context) error { panic("oh") })(ctx); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("stopped: %v", err)
		}
	})
}

// An agreement that stands still for too long ends the process, with the stacks in the log. A slow
// one does not.
func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		held time.Duration
		ends bool
	}{{stallLimit + stallGrace - time.Second, false}, {stallLimit + stallGrace + time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			n := &Node{log: slog.New(slog.NewTextHandler(&log, nil))}
			ctx, cancel := context.WithCancel(t.Context())
			var fatal error
			n.o.Fatal = func(err error) { fatal = err; cancel(); runtime.Goexit() }
			done := make(chan error, 1)
			go func() {
				err := context.Canceled // from a process that has ended
				defer func() { done <- err }()
				err = n.watchOver(ctx, func() { time.Sleep(c.held) })
			}()
			time.Sleep(stallEvery + c.held)
			synctest.Wait()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("watch: %v", err)
			}
			if (fatal != nil) != c.ends || c.ends && !strings.Contains(log.String(), "TestWatchdog") {
				t.Errorf("held for %s: %v; %.300s", c.held, fatal, log.String())
			}
		})
	}
}
