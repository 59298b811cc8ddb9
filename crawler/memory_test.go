package crawler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// 64 workers, each with the worst page, stay within the limit, and all get their turn. A worker
// that waits for much memory is not overtaken by those that need little.
func TestAttackPagesThatNeedMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		m := newMemory(512 * mib)
		var now, most, done atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			need := int64(64 * mib)
			if i%16 == 0 {
				need = 1 << 40 // more than there is: it takes all
			}
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				got, err := m.take(t.Context(), m.judging, need)
				if err != nil {
					t.Error(err)
					return
				}
				if sum := now.Add(got); sum > most.Load() {
					most.Store(sum)
				}
				time.Sleep(time.Second)
				now.Add(-got)
				m.give(m.judging, got)
				done.Add(1)
			})
		}
		wg.Wait()
		if done.Load() != 64 || most.Load() > m.half || most.Load() < m.half/2 {
			t.Errorf("%d judged, at most %d MiB of %d at once", done.Load(), most.Load()/mib, m.half/mib)
		}
		if m.held.Load() != 0 || m.most.Load() > m.half || m.over.Load() != 4 || m.waits.Load() == 0 {
			t.Errorf("held %d, at most %d, over %d, waits %d", m.held.Load(), m.most.Load(), m.over.Load(),
				m.waits.Load())
		}

		all, err := m.take(t.Context(), m.judging, m.half)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 2)
		for _, who := range []struct {
			name string
			need int64
		}{{"much", m.half}, {"little", 1}} {
			wg.Go(func() {
				got, err := m.take(t.Context(), m.judging, who.need)
				if err != nil {
					t.Error(err)
				}
				order <- who.name
				m.give(m.judging, got)
			})
			synctest.Wait()
		}
		// a request for nothing waits for nothing
		if got, err := m.take(t.Context(), m.judging, 0); got != 0 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		m.give(m.judging, 1) // enough for a small request
		synctest.Wait()
		if len(order) > 0 {
			t.Error("little passed much")
		}
		m.give(m.judging, all-1)
		wg.Wait()
		if first := <-order; first != "much" {
			t.Errorf("%s was first", first)
		}
	})
}

// The wait for memory ends with the context.
func TestMemoryWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(MinJudgeMemory)
		all, err := m.take(t.Context(), m.bodies, m.half)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.take(ctx, m.bodies, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if m.held.Load() != all {
			t.Errorf("held %d, want %d", m.held.Load(), all)
		}
	})
}

// hungry is a Source whose pages need much memory. It counts how many are judged at once.
type hungry struct {
	need              int64
	now, most, judged atomic.Int64
	body              int64
}

func (*hungry) Name() string               { return "hungry" }
func (*hungry) Handles(partition.Key) bool { return true }

// Fetch needs room for a body, then room to judge it, and holds that for 100 ms.
func (h *hungry) Fetch(ctx context.Context, t Task) (Result, error) {
	if err := t.Gate(ctx); err != nil {
		return Result{}, err
	}
	keep, err := t.Room(ctx, h.body)
	if err != nil {
		return Result{}, err
	}
	keep(h.body / 2)
	done, err := t.Judge(ctx, h.need)
	if err != nil {
		return Result{}, err
	}
	defer done()
	defer h.now.Add(-1)
	if n := h.now.Add(1); n > h.most.Load() {
		h.most.Store(n)
	}
	time.Sleep(100 * time.Millisecond)
	h.judged.Add(1)
	return Result{Site: t.Site, Next: store.Next{State: store.StateDone}, Reqs: 1}, nil
}

var _ fetch.Room = (&task{}).room

// As many pages are judged at once as memory allows, for any number of workers. All are judged, and
// all memory is released.
func TestAttackWorkersThatNeedMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memStore(t)
		t.Cleanup(func() { s.Close() })
		var keys []partition.Key
		for i := range 64 {
			keys = append(keys, key(t, fmt.Sprintf("https://site%d.org/", i)))
		}
		admit(t, s, keys...)
		src := &hungry{need: 8 << 20, body: 4 << 20}
		c := crawl(t, s, src, Options{JudgeMemory: MinJudgeMemory}, time.Minute)
		if src.judged.Load() != 64 || src.most.Load() != 4 {
			t.Errorf("%d judged, at most %d at once, want 64 and 4", src.judged.Load(), src.most.Load())
		}
		if m := c.Stats().Memory; m.Held != 0 || m.Most > m.Limit || m.Most < m.Limit/2 || m.Waits == 0 ||
			m.Limit != MinJudgeMemory {
			t.Errorf("%+v", m)
		}
	})
}
