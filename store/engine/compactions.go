package engine

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// compactions lets Pebble run as many compactions at once as it allows itself. One that
// waits begins when something ends that it may have waited for: a compaction, or a flush,
// after which more may run. Pebble's own scheduler asks ten times a second besides, for
// ever: a peer at rest would not let its machine sleep, and in fake time a month of a
// swarm would be mostly ticks. Nothing is left waiting without them: what waits was
// refused because another runs, and the end of that one wakes the granter.
//
// Its lock is taken after those of the database.
type compactions struct {
	db                  pebble.DBForCompaction
	wake, stop, stopped chan struct{}

	mu      sync.Mutex
	running int
	refused bool // a compaction was, since a place was taken for another
	closed  bool
}

func newCompactions() *compactions {
	return &compactions{wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// Register is called once, by a database that opened.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) {
	c.db = db
	go func() {
		defer close(c.stopped)
		for {
			select {
			case <-c.wake:
				c.grant()
			case <-c.stop:
				return
			}
		}
	}()
}

// Unregister waits for calls of the database that are under way.
func (c *compactions) Unregister() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	close(c.stop)
	<-c.stopped
}

// TrySchedule gives a place to a compaction if one is free.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if c.take() {
		return true, c
	}
	return false, nil
}

func (c *compactions) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.running >= c.db.GetAllowedWithoutPermission() {
		c.refused = true
		return false
	}
	c.running++
	c.refused = false
	return true
}

// giveBack says whether a compaction was refused while the place was taken.
func (c *compactions) giveBack() (refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	return c.refused
}

// grant has the database run what waits, as far as places are free.
func (c *compactions) grant() {
	for {
		if waiting, _ := c.db.GetWaitingCompaction(); !waiting || !c.take() {
			return
		}
		if !c.db.Schedule(c) && !c.giveBack() {
			return // nothing waits any more
		}
	}
}

// UpdateGetAllowedWithoutPermission is called under the database's lock.
func (c *compactions) UpdateGetAllowedWithoutPermission() {
	select {
	case c.wake <- struct{}{}:
	default: // the granter has yet to look: it sees this too
	}
}

// Done gives back the place of a compaction that ended.
func (c *compactions) Done() {
	c.giveBack()
	c.UpdateGetAllowedWithoutPermission()
}

// Started is not needed here.
func (c *compactions) Started() {}

// MeasureCPU is not needed here.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats is not needed here.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}
