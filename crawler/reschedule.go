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

// RescheduleNow makes Keys in sl due now, because their Source received events (social streams). It
// changes only Keys that are done and have a later visit planned. It leaves Keys that are due, or
// that failed and wait, and all Keys after the first store.MaxPlans. The Source itself must
// remember when a Key was due before. If sl was handed over, that is no error. The error is the
// store's.
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
		return nil // the new owner visits at the planned time
	} else if err != nil {
		return fmt.Errorf("crawler: reschedule: %w", err)
	}
	for s := range sites {
		c.Wake(sl, s)
	}
	return nil
}

// Crawled returns the slices that are crawled here, in any order.
func (c *Crawler) Crawled() []partition.Slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.gained))
}

// Hold returns how long the volunteer's own limits allow nothing to be received; 0 = something may.
// It is for data that arrives without a fetch, to which the rate of requests does not apply.
// Received counts such data.
func (c *Crawler) Hold() time.Duration { return c.limits.closed(time.Now()) }

// Received counts bytes that arrived without a fetch.
func (c *Crawler) Received(n int64) { c.limits.spent(time.Now(), n) }
