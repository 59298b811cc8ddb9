package engine

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// compactions lets Pebble run as many compactions at once as Pebble allows. A waiting compaction
// starts after a compaction or a flush ends; after a flush, more may be allowed. Pebble's own
// scheduler also looks ten times a second, for ever. With it, the machine of an idle peer could not
// sleep, and a simulated month of a swarm would be mostly ticks. No compaction waits for ever
// without these ticks: it was refused because another one ran, and the end of that one wakes the
// goroutine that grants.
//
// Its lock is taken after those of the database.
type compactions struct {
	db                  pebble.DBForCompaction
	wake, stop, stopped chan struct{}

	mu      sync.Mutex
	running int
	refused bool // a compaction was refused since a place was last taken
	closed  bool
}

func newCompactions() *compactions {
	return &compactions{wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// Register is called once, by the database when it has opened.
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

// Unregister waits for the calls into the database that still run.
func (c *compactions) Unregister() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	close(c.stop)
	<-c.stopped
}

// TrySchedule gives a compaction a place if one is free.
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

// giveBack frees a place. It reports whether a compaction was refused while the place was taken.
func (c *compactions) giveBack() (refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	return c.refused
}

// grant lets the database start waiting compactions while places are free.
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
	default: // a wake-up is already waiting, and it covers this change too
	}
}

// Done frees the place of a compaction that ended.
func (c *compactions) Done() {
	c.giveBack()
	c.UpdateGetAllowedWithoutPermission()
}

// Started does nothing.
func (c *compactions) Started() {}

// MeasureCPU does nothing.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats does nothing.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}
