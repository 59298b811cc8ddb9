package crawler

import (
	"container/list"
	"errors"
	"fmt"
	"sync"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// cacheBytes is how many bytes the site cache may hold, with the robots.txt bodies.
const cacheBytes = 32 << 20

// siteCost is the assumed size of a cached site without its robots.txt, in bytes.
const siteCost = 512

// siteCache holds the politeness state of the sites fetched last. Safe for concurrent use. At most
// one fetch of a site is under way, so its state has one writer.
type siteCache struct {
	store *db.Store

	mu    sync.Mutex
	byKey map[cacheKey]*list.Element // the elements are of type *cached
	order list.List                  // the last used first
	bytes int
}

// cacheKey names a site. Accounts of one site can be in several slices.
type cacheKey struct {
	slice partition.Slice
	site  partition.Site
}

// cached is the state of one site, in siteCache.order.
type cached struct {
	site  store.Site
	dirty bool // its counts are newer than the store's
}

func newSiteCache(s *db.Store) *siteCache {
	return &siteCache{store: s, byKey: map[cacheKey]*list.Element{}}
}

// get returns the state of s. A site that was never asked has the zero state.
func (c *siteCache) get(sl partition.Slice, s partition.Site) (store.Site, error) {
	c.mu.Lock()
	if e := c.byKey[cacheKey{sl, s}]; e != nil {
		defer c.mu.Unlock()
		c.order.MoveToFront(e)
		return e.Value.(*cached).site, nil
	}
	c.mu.Unlock()
	st, err := c.store.Queue.Site(s)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return st, fmt.Errorf("site state: %w", err)
	}
	st.Site, st.Slice = s, sl
	return st, nil
}

// put keeps st; written says that the store has it too. If the cache removes a site, only its
// newest counts of fetches and stops are lost. They are figures to show; nothing depends on them.
func (c *siteCache) put(st store.Site, written bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheKey{st.Slice, st.Site}
	if e := c.byKey[k]; e != nil {
		c.remove(e)
	}
	c.byKey[k] = c.order.PushFront(&cached{site: st, dirty: !written})
	c.bytes += cost(st)
	for c.bytes > cacheBytes && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}

// remove takes an element out of the cache. The caller holds c.mu.
func (c *siteCache) remove(e *list.Element) {
	st := e.Value.(*cached).site
	c.order.Remove(e)
	delete(c.byKey, cacheKey{st.Slice, st.Site})
	c.bytes -= cost(st)
}

// drop forgets the sites of the slices that are not kept. Another owner may change these sites
// before the slices come back.
func (c *siteCache) drop(keep func(partition.Slice) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.byKey {
		if !keep(k.slice) {
			c.remove(e)
		}
	}
}

// flush writes the counts that the store does not have. Run calls it at its end.
func (c *siteCache) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; e = e.Next() {
		if v := e.Value.(*cached); v.dirty {
			if err := c.store.Queue.PutSite(v.site); err != nil && !errors.Is(err, store.ErrFenced) {
				return fmt.Errorf("crawler: %w", err)
			}
			v.dirty = false
		}
	}
	return nil
}

// cost returns the assumed size of st in memory, in bytes.
func cost(st store.Site) int {
	n := siteCost
	for origin, r := range st.Robots {
		n += len(origin) + len(r.Body)
	}
	return n
}
