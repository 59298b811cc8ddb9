package crawler

import (
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// mostOthers is how many rows of a slice Task.Others examines.
const mostOthers = 1 << 10

// others is Task.Others: it passes to take the rows of the same site that are due now, except the
// Key of the task. The task's slice comes first, then the other slices of the site that this peer
// may fetch. It ends when take returns false or an error.
func (t *task) others(take func(store.Due, partition.Slice) (bool, error)) error {
	c, now := t.c, time.Now()
	c.mu.Lock()
	all := c.front.Slices(t.step.Site)
	c.mu.Unlock()
	if i := slices.Index(all, t.step.Slice); i > 0 {
		all[0], all[i] = all[i], all[0]
	}
	for _, sl := range all {
		if !c.o.Swarm.Owns(sl) {
			continue
		}
		if more, err := t.othersIn(sl, now, take); err != nil || !more {
			return err
		}
	}
	return nil
}

// othersIn is Task.Others for one slice. more is false if take asked to stop.
func (t *task) othersIn(sl partition.Slice, now time.Time,
	take func(store.Due, partition.Slice) (bool, error)) (more bool, err error) {
	var from []byte
	for seen := 0; seen < mostOthers; {
		page, next, err := t.c.o.Store.Queue.PendingOf(sl, t.step.Site, from, readPage)
		if err != nil {
			return false, fmt.Errorf("crawler: others of %s: %w", t.step.Site, err)
		}
		seen += len(page)
		for _, d := range page {
			if d.At.After(now) {
				if d.At.Truncate(time.Hour).After(now) { // rows are ordered by the hour of At
					return true, nil
				}
				continue
			}
			if d.Key == t.due.Key {
				continue
			}
			if more, err := take(d, sl); err != nil || !more {
				return false, err
			}
		}
		if from = next; next == nil {
			break
		}
	}
	return true, nil
}
