package crawler

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// stuckSource hangs for some Keys, after the request was allowed.
type stuckSource struct {
	*fakeSource
	hang  func(ctx context.Context, t Task) error // nil = it does not hang
	mu    sync.Mutex
	tries []time.Time // fetches of Keys that hung
}

func (s *stuckSource) Fetch(ctx context.Context, t Task) (Result, error) {
	if strings.Contains(string(t.Due.Key), "hang") {
		if err := t.Gate(ctx); err != nil {
			return Result{Site: t.Site}, err
		}
		s.mu.Lock()
		s.tries = append(s.tries, time.Now())
		s.mu.Unlock()
		if err := s.hang(ctx, t); err != nil {
			return Result{Site: t.Site}, err
		}
	}
	return s.fakeSource.Fetch(ctx, t)
}

// watched crawls for d, with two workers: a page that hangs, two other pages of its site, and one
// page of another site.
func watched(t *testing.T, d time.Duration, o Options, hang func(ctx context.Context, t Task) error) (*stuckSource,
	*Crawler, *db.Store, string) {
	t.Helper()
	s := memStore(t)
	t.Cleanup(func() { s.Close() })
	src := &stuckSource{fakeSource: newFake(), hang: hang}
	admit(t, s, key(t, "https://a.org/hang"), key(t, "https://a.org/1"), key(t, "https://a.org/2"),
		key(t, "https://b.org/1"))
	var log syncBuffer
	o.Logger, o.Workers = slog.New(slog.NewTextHandler(&log, nil)), 2
	c := crawl(t, s, src, o, d)
	return src, c, s, log.String()
}

// syncBuffer is a Writer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// others checks that each page that does not hang was fetched once.
func others(t *testing.T, f *stuckSource) {
	t.Helper()
	for _, u := range []string{"https://a.org/1", "https://a.org/2", "https://b.org/1"} {
		if n := f.count(key(t, u)); n != 1 {
			t.Errorf("%s was fetched %d times", u, n)
		}
	}
}

// A fetch that hangs until its context ends is cancelled. Its stack is logged once each time. The
// Key is tried again, and later once a day. The other pages are fetched.
func TestStuckFetchIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, c, s, log := watched(t, 3*time.Hour, Options{}, func(ctx context.Context, _ Task) error {
			<-ctx.Done()
			return ctx.Err()
		})
		others(t, src)
		due, err := s.Queue.DueOf(key(t, "https://a.org/hang"))
		if err != nil {
			t.Fatal(err)
		}
		if due.State != store.StateRefused || due.Attempts != 5 || due.At.IsZero() ||
			!strings.Contains(due.Reason, "no progress for 5m0s") {
			t.Errorf("due: %+v", due)
		}
		if len(src.tries) != 5 {
			t.Errorf("tried %d times", len(src.tries))
		}
		st := c.Stats()
		if st.Stuck != 5 || st.Abandoned != 0 || st.Stops["stuck"] != 5 {
			t.Errorf("stuck %d, abandoned %d, stops %v", st.Stuck, st.Abandoned, st.Stops)
		}
		if n := strings.Count(log, "fetch is stuck"); n != 5 {
			t.Errorf("said %d times", n)
		}
		if !strings.Contains(log, "TestStuckFetchIsCancelled") || !strings.Contains(log, "stuckSource).Fetch") {
			t.Errorf("no stack: %.2000s", log)
		}
	})
}

// A fetch that does not end after the cancel is given up. Its worker and its site go on after the
// longest time that a request may last. Its Gate allows nothing more. When it ends later, that
// changes nothing.
func TestFetchThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		late := make(chan error, 10)
		var tried atomic.Bool
		src, c, s, log := watched(t, 20*time.Minute, Options{}, func(ctx context.Context, task Task) error {
			if tried.Swap(true) {
				return nil // the second try
			}
			<-release
			late <- task.Gate(context.Background())
			panic("late")
		})
		others(t, src)
		if len(src.tries) != 2 || src.count(key(t, "https://a.org/hang")) != 1 {
			t.Errorf("tried at %v", src.tries)
		}
		began := src.tries[0]
		for _, at := range src.askedAt(key(t, "https://a.org/1").Site()) {
			if at.After(began) && at.Before(began.Add(defaultStuck+stuckGrace+stuckRest)) {
				t.Errorf("the site was asked %s after the request that hung", at.Sub(began))
			}
		}
		if st := c.Stats(); st.Stuck != 1 || st.Abandoned != 1 || st.Fetching != 0 {
			t.Errorf("%+v", st)
		}
		if due, err := s.Queue.DueOf(key(t, "https://a.org/hang")); err != nil || due.State != store.StateDone {
			t.Errorf("due: %+v %v", due, err)
		}
		if !strings.Contains(log, "does not end: given up") {
			t.Errorf("said: %.1000s", log)
		}
		close(release)
		synctest.Wait()
		if err := <-late; !errors.Is(err, errStuck) {
			t.Errorf("its gate said %v", err)
		}
		if st := c.Stats(); st.Abandoned != 0 {
			t.Errorf("%d are still counted", st.Abandoned)
		}
	})
}

// If as many fetches as workers do not end, the crawl ends with an error that says so.
func TestFetchesThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memStore(t)
		defer s.Close()
		release := make(chan struct{})
		src := &stuckSource{fakeSource: newFake(), hang: func(context.Context, Task) error { <-release; return nil }}
		admit(t, s, key(t, "https://a.org/hang"), key(t, "https://b.org/hang"))
		c, err := New(Options{Store: s, Sources: []Source{src}, Workers: 2, Stuck: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c.SetSlices(s.Charter().Slices())
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "2 fetches do not end") ||
			!strings.Contains(err.Error(), "start again") {
			t.Errorf("Run: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

// Run does not wait for ever for a fetch that ignores its context.
func TestRunEndsBesideStuckFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		begun := time.Now()
		_, c, s, _ := watched(t, time.Minute, Options{}, func(context.Context, Task) error { <-release; return nil })
		if took := time.Since(begun); took != time.Minute+stuckGrace {
			t.Errorf("Run took %s", took)
		}
		if due, err := s.Queue.DueOf(key(t, "https://a.org/hang")); err != nil || due.State != store.StatePending ||
			due.Attempts != 0 {
			t.Errorf("due: %+v %v", due, err)
		}
		if st := c.Stats(); st.Stuck != 0 {
			t.Errorf("%d stuck", st.Stuck)
		}
		close(release)
		synctest.Wait()
	})
}

// A long wait for the site's pace, or for the volunteer's rate, does not count as stuck. Neither do
// many requests that each take less than the limit.
func TestSlowFetchIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		src, c, _, _ := watched(t, 6*time.Hour, Options{Delay: 20 * time.Minute, Limits: Limits{MaxRate: 0.001}},
			func(ctx context.Context, task Task) error {
				for ; calls < 4; calls++ {
					if err := fetch.Sleep(ctx, defaultStuck-time.Second); err != nil {
						return err
					}
					if err := task.Gate(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		if st := c.Stats(); st.Stuck != 0 || calls != 4 || src.count(key(t, "https://a.org/hang")) != 1 {
			t.Errorf("%d stuck, %d calls", st.Stuck, calls)
		}
	})
}

// A panic in Place costs the placement. A Source that panics, or ends its goroutine, costs the try.
// Neither ends the peer.
func TestPanicsAreOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		place := placing{place: func(*store.Record) *store.Placement { panic("judge") }}
		src, c, s, log := watched(t, time.Hour, Options{Swarm: place}, func(context.Context, Task) error {
			if tries++; tries < 3 {
				panic("source")
			}
			return nil
		})
		others(t, src)
		if due, err := s.Queue.DueOf(key(t, "https://a.org/hang")); err != nil || due.State != store.StateDone ||
			tries != 3 {
			t.Errorf("due: %+v %v after %d tries", due, err, tries)
		}
		if got := c.Stats().Stops["panic"]; got != 2+4 {
			t.Errorf("%d panics are counted", got)
		}
		if !strings.Contains(log, "source panicked") || !strings.Contains(log, "placing panicked") {
			t.Errorf("said: %.1000s", log)
		}
	})
}
