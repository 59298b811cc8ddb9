package engine

import (
	"github.com/cockroachdb/pebble/v2"
)

// compactions grants Pebble its compactions when something ends that one may
// have waited for: a compaction, or a flush, after which more may run at once.
// Pebble's own scheduler asks ten times a second besides, for ever: a peer at
// rest would not let its machine sleep, and in fake time a month of a swarm
// would be mostly ticks. Nothing is left waiting without them: what waits was
// refused because another runs, whose end grants it.
//
// The one that it embeds is for tests by name only: it is Pebble's own without
// the ticks, and without an ear for flushes, which is what is added here.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	flushed, stop, stopped chan struct{}
}

func newCompactions() *compactions {
	return &compactions{
		ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(),
		flushed:                   make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// Register is called once, by a database that opened.
func (c *compactions) Register(goroutines int, db pebble.DBForCompaction) {
	c.ConcurrencyLimitScheduler.Register(goroutines, db)
	go func() {
		defer close(c.stopped)
		for {
			select {
			case <-c.flushed:
				c.grant(db)
			case <-c.stop:
				return
			}
		}
	}()
}

func (c *compactions) grant(db pebble.DBForCompaction) {
	for {
		if waiting, _ := db.GetWaitingCompaction(); !waiting {
			return
		}
		ok, handle := c.TrySchedule()
		if !ok {
			return
		}
		if !db.Schedule(handle) {
			handle.Done() // gives the place back
			return
		}
	}
}

// Unregister waits for calls of the database that are under way.
func (c *compactions) Unregister() {
	close(c.stop)
	<-c.stopped
	c.ConcurrencyLimitScheduler.Unregister()
}

// UpdateGetAllowedWithoutPermission is called under the database's lock.
func (c *compactions) UpdateGetAllowedWithoutPermission() {
	select {
	case c.flushed <- struct{}{}:
	default: // it has yet to look: it sees this too
	}
}
