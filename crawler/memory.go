package crawler

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// MinJudgeMemory is the least Options.JudgeMemory: the largest body fits twice into one half of it.
const MinJudgeMemory = 64 << 20

// defaultJudgeMemory lets 64 workers judge ordinary pages at once, and a few of the worst.
const defaultJudgeMemory = 512 << 20

// memory is the budget of what pages take while they are read and judged. One half is for bodies that are being read or
// wait to be judged, the other for judging. They are two, so that a slow server holds up no judgement. Who holds room
// for a body may wait for room to judge it, never the other way round, and nobody waits for more of what he holds: so
// nobody waits for good. Waiting is first come, first served: a page that needs much is not passed by small ones for
// ever.
type memory struct {
	half            int64
	bodies, judging *semaphore.Weighted
	held, most      atomic.Int64 // bytes now, and the most there were
	waits, over     atomic.Int64
}

func newMemory(total int64) *memory {
	return &memory{half: total / 2, bodies: semaphore.NewWeighted(total / 2), judging: semaphore.NewWeighted(total / 2)}
}

// take waits for need bytes of a half. Who needs more than there is waits for all of it, and is then alone.
func (m *memory) take(ctx context.Context, half *semaphore.Weighted, need int64) (got int64, err error) {
	if need <= 0 { // an answer of a service, which has bounds of its own, waits behind no page
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

func (m *memory) give(half *semaphore.Weighted, n int64) {
	if n > 0 {
		m.held.Add(-n)
		half.Release(n)
	}
}

// holding is what one fetch holds until its task ends.
type holding struct {
	mu    sync.Mutex
	ended bool
	frees []func()
}

// add has free called at the end of the task, or now when that was.
func (h *holding) add(free func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		free()
		return
	}
	h.frees = append(h.frees, free)
}

// end lets go of all. What a fetch that was given up still uses is not counted any more.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, free := range h.frees {
		free()
	}
	h.frees, h.ended = nil, true
}

// room is Task.Room: a body is about to become large.
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
