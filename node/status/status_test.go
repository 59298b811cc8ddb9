package status

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/store"
)

func TestDeadShare(t *testing.T) {
	for _, c := range []struct {
		st   store.Stats
		want float64
	}{
		{store.Stats{}, 0},
		{store.Stats{Done: 10, Records: 10, Gone: 5}, 0}, // gone, and never stored
		{store.Stats{Done: 7, Records: 10, Gone: 2, Refused: 1}, 0.3},
		{store.Stats{Done: 7, Records: 10, Placed: 9}, 0},
	} {
		if got := deadShare(c.st); got != c.want {
			t.Errorf("%+v: %g, want %g", c.st, got, c.want)
		}
	}
}

// Status does not wait long for values that must be read. It shows the last ones.
func TestStatusDoesNotWaitForReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g glance
		if got := g.at(func() readings { return readings{disk: 1} }); got.disk != 1 {
			t.Errorf("the first: %+v", got)
		}
		busy := make(chan struct{})
		for range 2 { // the second one does not start a reading
			begun := time.Now()
			got := g.at(func() readings { <-busy; return readings{disk: 2} })
			if took := time.Since(begun); took != statusWait || got.disk != 1 {
				t.Errorf("while reading takes long: %+v after %s", got, took)
			}
		}
		close(busy)
		synctest.Wait()
		if got := g.at(func() readings { return readings{disk: 3} }); got.disk != 3 {
			t.Errorf("after that: %+v", got)
		}
	})
}
