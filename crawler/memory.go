package crawler

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// MinJudgeMemory is the least Options.JudgeMemory, in bytes: one half of it holds the largest body
// twice.
const MinJudgeMemory = 64 << 20

// defaultJudgeMemory lets 64 workers judge ordinary pages at once, and a few of the worst pages.
const defaultJudgeMemory = 512 << 20

// memory limits the memory of pages that are read and judged. One half is for bodies that are being
// read or wait for their judgement. The other half is for judging. There are two halves so that a
// slow server delays no judgement.
//
// There is no deadlock. A fetch that holds room for a body may wait for room to judge it, never the
// other way round. No fetch waits for more room of a half in which it already holds some. Waiting
// is first come, first served, so small pages do not overtake a page that needs much for ever. Safe
// for concurrent use.
type memory struct {
	half            int64
	bodies, judging *semaphore.Weighted // bodies that are read or wait; memory while judging
	held, most      atomic.Int64        // bytes held now, and the most that were held at once
	waits, over     atomic.Int64        // fetches that waited, and fetches that needed more than a half
}

func newMemory(total int64) *memory {
	return &memory{half: total / 2, bodies: semaphore.NewWeighted(total / 2), judging: semaphore.NewWeighted(total / 2)}
}

// take waits for need bytes of a half, and returns how many it took. If need is more than the half,
// it waits for the whole half, and is then alone there. It fails only if ctx is done.
func (m *memory) take(ctx context.Context, half *semaphore.Weighted, need int64) (got int64, err error) {
	if need <= 0 { // the answer of a service has limits of its own, and waits for no page
		return 0, nil
	}
	if got = need; got > m.half {
		m.over.Add(1)
		got = m.half
	}
	if !half.TryAcquire(got) {
		m.waits.Add(1)
		if err := half.Acquire(ctx, got); err != nil {
			return 0, err
		}
	}
	now := m.held.Add(got)
	for most := m.most.Load(); now > most && !m.most.CompareAndSwap(most, now); most = m.most.Load() {
	}
	return got, nil
}

// give releases n bytes of a half.
func (m *memory) give(half *semaphore.Weighted, n int64) {
	if n > 0 {
		m.held.Add(-n)
		half.Release(n)
	}
}

// holding is what one fetch holds until its task ends. Safe for concurrent use.
type holding struct {
	mu    sync.Mutex
	ended bool
	frees []func()
}

// add calls free at the end of the task, or at once if the task has ended.
func (h *holding) add(free func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		free()
		return
	}
	h.frees = append(h.frees, free)
}

// end releases all. If a fetch was given up, the memory that it still uses is no longer counted.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, free := range h.frees {
		free()
	}
	h.frees, h.ended = nil, true
}

// room is Task.Room: it waits for need bytes for a body that is about to become large. The caller
// calls keep with the size of the body that it read; the rest is released at once.
func (t *task) room(ctx context.Context, need int64) (keep func(used int64), err error) {
	if err := t.pulse.hold(); err != nil {
		return nil, err
	}
	defer t.pulse.leave()
	m := t.c.memory
	got, err := m.take(ctx, m.bodies, need)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	var left atomic.Int64
	left.Store(got)
	t.holds.add(func() { m.give(m.bodies, left.Swap(0)) })
	return func(used int64) {
		once.Do(func() {
			if spare := got - max(used, 0); spare > 0 && left.CompareAndSwap(got, got-spare) {
				m.give(m.bodies, spare)
			}
		})
	}, nil
}
