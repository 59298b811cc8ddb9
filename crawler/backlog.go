package crawler

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/echo-node/echo-node/crawler/frontier"
	"github.com/echo-node/echo-node/crawler/trap"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Sizes of the window of rows that read takes.
const (
	readPage = 64      // rows that one call asks of the store, at least
	readMost = 1 << 14 // rows examined for one window: rows that are not due may come before due ones
)

// SetSlices sets the slices that this peer crawls from now on. The sites of a gained slice first
// wait one delay (I7). The rows of a lost slice are forgotten. Fetches under way in a lost slice go
// on, and are committed while the store has the slice. So before the slice is handed over or
// dropped, wait until Busy returns 0. Safe for concurrent use; it does not wait for a fetch.
func (c *Crawler) SetSlices(owned []partition.Slice) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := make(map[partition.Slice]time.Time, len(owned))
	before := c.gained
	for _, sl := range owned {
		since, had := c.gained[sl]
		if !had {
			since = now
			c.toLoad = append(c.toLoad, sl)
		}
		keep[sl] = since
	}
	lost := len(keep) < len(c.gained)
	for sl := range c.gained {
		_, kept := keep[sl]
		lost = lost || !kept
	}
	c.gained = keep
	// Also the sites of gained slices: a fetch that ended after the loss may have put its site
	// back.
	c.sites.drop(func(sl partition.Slice) bool {
		_, had := before[sl]
		_, has := keep[sl]
		return had && has
	})
	if lost {
		c.front.Keep(func(sl partition.Slice) bool { _, ok := keep[sl]; return ok })
	}
	c.startLoad()
	c.wake()
}

// Wake says that rows were admitted into sl, at those sites; without sites, that rows may have been
// admitted at any site. It does nothing if sl is not crawled here. It does not wait.
func (c *Crawler) Wake(sl partition.Slice, sites ...partition.Site) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.gained[sl]
	if !ok {
		return
	}
	if len(sites) == 0 {
		c.toLoad = append(c.toLoad, sl)
		c.startLoad()
		return
	}
	for _, s := range sites {
		c.front.Wake(sl, s, since.Add(c.o.Delay), time.Time{})
	}
	c.wake()
}

// Slices returns the number of slices that are crawled.
func (c *Crawler) Slices() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.gained)
}

// Since returns the time since which sl is crawled here; the zero time if it is not.
func (c *Crawler) Since(sl partition.Slice) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gained[sl]
}

// Busy returns how many Keys of sl are being fetched: they are picked and not yet committed.
func (c *Crawler) Busy(sl partition.Slice) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flying[sl]
}

// Due returns what the store knows of k, and when its site may be asked again. The time is zero if
// no fetch of the site is planned. The error is the store's; store.ErrNotExist if k is unknown.
func (c *Crawler) Due(k partition.Key) (store.Due, time.Time, error) {
	d, err := c.o.Store.Queue.DueOf(k)
	if err != nil {
		return d, time.Time{}, fmt.Errorf("crawler: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return d, c.front.Allowed(k.Site()), nil
}

// Site returns the pace of s and the counts of what was stopped there. The error is
// store.ErrNotExist if s was never asked.
func (c *Crawler) Site(sl partition.Slice, s partition.Site) (store.Site, error) {
	st, err := c.sites.get(sl, s)
	if err != nil {
		return st, fmt.Errorf("crawler: %w", err)
	}
	if st.Fetched == 0 && st.NextAllowed.IsZero() && len(st.Robots) == 0 && len(st.Stops) == 0 {
		return st, fmt.Errorf("crawler: site %s: %w", s, store.ErrNotExist)
	}
	return st, nil
}

// startLoad tells load that toLoad is not empty. It does not wait.
func (c *Crawler) startLoad() {
	select {
	case c.loader <- struct{}{}:
	default:
	}
}

// load reads the backlogs of gained slices until ctx is done. It runs beside the dispatcher: a
// large store takes a while, and loaded sites are crawled meanwhile.
func (c *Crawler) load(ctx context.Context) {
	for {
		c.mu.Lock()
		todo := c.toLoad
		c.toLoad, c.loading = nil, len(todo) > 0
		c.mu.Unlock()
		for _, sl := range todo {
			if ctx.Err() != nil {
				return
			}
			if err := c.loadSlice(sl); err != nil {
				c.fail(err)
				return
			}
		}
		if len(todo) > 0 {
			c.wake()
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-c.loader:
		}
	}
}

// loadSlice wakes each site of sl that has rows. It does nothing if the slice was lost meanwhile.

func (c *Crawler) loadSlice(sl partition.Slice) error {
	backlogs, err := c.o.Store.Queue.Backlogs(sl)
	if err != nil {
		return fmt.Errorf("crawler: load %s: %w", sl, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.gained[sl]
	if !ok {
		return nil
	}
	for _, b := range backlogs {
		c.front.Wake(sl, b.Site, since.Add(c.o.Delay), b.Earliest)
	}
	return nil
}

// read answers a Read step with the rows of the site that are due at now. It also tells the
// frontier when the next row becomes due, and whether there are more due rows.
func (c *Crawler) read(st frontier.Step, now time.Time) error {
	var rows []frontier.Row
	var later time.Time
	var from []byte
	more := false
	for seen := 0; ; {
		page, next, err := c.o.Store.Queue.PendingOf(st.Slice, st.Site, from, max(st.Limit+1, min(readPage, seen)))
		if err != nil {
			return fmt.Errorf("crawler: read %s: %w", st.Site, err)
		}
		seen += len(page)
		for _, d := range page {
			switch {
			case d.At.After(now):
				if later.IsZero() || d.At.Before(later) {
					later = d.At
				}
			case len(rows) < st.Limit:
				rows = append(rows, frontier.Row{Key: d.Key, Priority: d.Priority})
			default:
				more = true
			}
		}
		// Rows are ordered by the hour of At: after a row of a later hour, no row is due.
		past := len(page) > 0 && page[len(page)-1].At.Truncate(time.Hour).After(now)
		if next == nil || more || past || seen >= readMost {
			break
		}
		from = next
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.front.Fill(st, rows, later, more)
	return nil
}

// admissions turns the links of one fetch into rows that the store admits. It leaves out NoFollow
// links, links that are too deep, and links into a trap. A link to an account's file is never too
// deep and never a trap. stops counts the left-out links by reason, except the NoFollow ones.
func (c *Crawler) admissions(from store.Due, rec *store.Record, links []store.Link) (out []store.Admission,
	stops map[string]int64) {
	stops = map[string]int64{}
	if len(links) == 0 {
		return nil, stops
	}
	depth := from.Depth + 1
	deep := c.o.MaxDepth > 0 && depth > c.o.MaxDepth
	first := c.order(from, rec)
	now := time.Now()
	since, at := c.readBefore(from, now)
	out = make([]store.Admission, 0, len(links))
	for _, l := range links {
		if l.NoFollow {
			continue
		}
		if l.Key.Kind() == partition.KindFile { // a file belongs to the account that names it, and has no links
			out = append(out, store.Admission{Key: l.Key, Referrer: from.Key, Depth: from.Depth,
				Priority: min(depth, 255)})
			continue
		}
		if deep {
			stops["depth"]++
			continue
		}
		if why := trap.Of(from.Key, l.Key, now); why != "" {
			stops[why]++
			continue
		}
		out = append(out, store.Admission{Key: l.Key, Referrer: from.Key, Depth: depth,
			Priority: min(depth+first(l.Key), 255), Hint: c.hint(from, l, since, at)})
	}
	return out, stops
}

// wakeLinked wakes the sites of links that a commit admitted into its own slice.
func (c *Crawler) wakeLinked(sl partition.Slice, links []store.Admission) {
	sites := map[partition.Site]bool{}
	for _, a := range links {
		s := a.Key.Site()
		if _, seen := sites[s]; seen && a.Key.Kind() == partition.KindPage {
			continue // all pages of a site are in one slice
		}
		sites[s] = sites[s] || c.o.Store.SliceOf(a.Key) == sl
	}
	maps.DeleteFunc(sites, func(_ partition.Site, here bool) bool { return !here })
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.gained[sl]
	if !ok {
		return
	}
	for s := range sites {
		c.front.Wake(sl, s, since.Add(c.o.Delay), time.Time{})
	}
}
