package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
)

// allowance is a database that allows some compactions at once, and has some waiting.
type allowance struct {
	allowed, waiting, refuse atomic.Int64
	given                    chan pebble.CompactionGrantHandle
}

func (a *allowance) GetAllowedWithoutPermission() int { return int(a.allowed.Load()) }

func (a *allowance) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return a.waiting.Load() > 0, pebble.WaitingCompaction{}
}

func (a *allowance) Schedule(h pebble.CompactionGrantHandle) bool {
	a.waiting.Add(-1)
	if a.refuse.Load() > 0 {
		return false
	}
	a.given <- h
	return true
}

func TestAFlushLetsMoreCompactionsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, db := newCompactions(), &allowance{given: make(chan pebble.CompactionGrantHandle, 9)}
		c.Register(1, db)
		running := func(want int) {
			t.Helper()
			synctest.Wait()
			if len(db.given) != want {
				t.Fatalf("%d were granted, want %d", len(db.given), want)
			}
		}
		db.allowed.Store(1)
		ok, first := c.TrySchedule()
		if again, _ := c.TrySchedule(); !ok || again {
			t.Fatalf("%v %v of one", ok, again)
		}
		db.waiting.Store(3)
		c.UpdateGetAllowedWithoutPermission() // a flush that changed nothing
		running(0)
		db.allowed.Store(3)
		c.UpdateGetAllowedWithoutPermission()
		running(2)
		first.Done() // the end of a compaction grants as well
		running(3)
		for range 3 {
			(<-db.given).Done()
		}

		// When the database does not take a place, grant gives the place back.
		db.refuse.Store(1)
		db.waiting.Store(9)
		c.UpdateGetAllowedWithoutPermission()
		running(0)
		db.refuse.Store(0)
		db.waiting.Store(9)
		c.UpdateGetAllowedWithoutPermission()
		running(3)
		c.Unregister()
		if ok, _ := c.TrySchedule(); ok {
			t.Error("a closed database was granted a compaction")
		}
	})
}
