package crawler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// RescheduleNow has Keys in sl that are done, and are to be looked at again some time, due
// now: their Source has heard of something (social streams). What is due already, or has
// failed and waits, is left as it is, and so is what is beyond store.MaxPlans. It is not an error when the slice is not
// here any more. When the Key would have been looked at is the Source's to remember.
func (c *Crawler) RescheduleNow(sl partition.Slice, keys []partition.Key) error {
	now := time.Now()
	var plans []store.Plan
	sites := map[partition.Site]bool{}
	for _, k := range keys[:min(len(keys), store.MaxPlans)] {
		d, err := c.o.Store.Queue.DueIn(sl, k)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("crawler: reschedule: %w", err)
		}
		if d.State == store.StateDone && d.At.After(now) {
			plans = append(plans, store.Plan{Was: d, At: now, History: d.History})
			sites[k.Site()] = true
		}
	}
	if len(plans) == 0 {
		return nil
	}
	if _, err := c.o.Store.Queue.Replan(sl, plans); errors.Is(err, store.ErrFenced) {
		return nil // its new owner looks when it was planned
	} else if err != nil {
		return fmt.Errorf("crawler: reschedule: %w", err)
	}
	for s := range sites {
		c.Wake(sl, s)
	}
	return nil
}

// Crawled are the slices that are crawled here, in no order.
func (c *Crawler) Crawled() []partition.Slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.gained))
}

// Hold is for how long the volunteer's own limits let nothing be received, 0 = it may be. It is for what comes
// without a fetch, and so without the rate of requests; Received says how much that was.
func (c *Crawler) Hold() time.Duration { return c.limits.closed(time.Now()) }

// Received counts bytes that came without a fetch.
func (c *Crawler) Received(n int64) { c.limits.spent(time.Now(), n) }
