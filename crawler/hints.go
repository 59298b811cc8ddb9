package crawler

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/crawler/schedule/change"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Hints: sitemaps and feeds say when their entries changed. An entry can say that a Key changed
// after its last fetch (ApplyHints). Then the Key is visited sooner, as far as hints of that kind
// were right about this site before (change.Trust). Each visit teaches, with a hint and without
// one. How often we read the list is part of the measure. So a list that is seldom read has little
// worth.
//
// State. What was learned of a site is in its row (trusts). The peer that fetches the site writes
// it, so it has one writer. The pending hint of a Key is in its plan. Both move with the slice. A
// hint is stored nowhere else. A crash, or a fetch of the Key at that time, can lose a hint. Then a
// visit is later than it could be, and nothing else is lost.
//
// What a site can gain by lying: nothing, unless it told the truth before. Then it gains as many
// visits as an equal share for all its pages would give (sitePrice.sooner), until a few of them
// found no change. Its pace does not change: the frontier keeps it.

// leastRatio is the odds ratio that a hint needs: how much likelier it must make a change. Below
// it, a hint is not followed, and its time of the change is not believed.
const leastRatio = 2

// The keys of Stats.Hints.
const (
	hintReceived = "received" // hints about Keys that had no pending hint
	hintFollowed = "followed" // hints that made a visit sooner
	hintRight    = "right"    // hints after which the visit found a change
	hintWrong    = "wrong"    // hints after which the visit found no change
)

// hintKinds is the number of hint kinds.
const hintKinds = 4

// trusts says how often hints of each kind were right at one site. In the site's row it is a byte
// for the version (1), and then four bytes for each kind in order. If it cannot be read, it is
// learned anew.
type trusts [hintKinds]change.Trust

const trustsVersion = 1

// decodeTrusts reads what encode wrote; zero trusts if it cannot.
func decodeTrusts(b []byte) (t trusts) {
	if len(b) != 1+4*hintKinds || b[0] != trustsVersion {
		return t
	}
	for i := range t {
		b := b[1+4*i:]
		t[i] = change.Trust{NewRight: b[0], NewWrong: b[1], OldRight: b[2], OldWrong: b[3]}
	}
	return t
}

// encode returns the bytes for the site's row; nil if nothing was learned.
func (t *trusts) encode() []byte {
	if *t == (trusts{}) {
		return nil
	}
	b := append(make([]byte, 0, 1+4*hintKinds), trustsVersion)
	for _, k := range t {
		b = append(b, k.NewRight, k.NewWrong, k.OldRight, k.OldWrong)
	}
	return b
}

// of returns the trust in hints of kind k, which is from 1 to hintKinds.
func (t *trusts) of(k store.HintKind) *change.Trust { return &t[k-1] }

// lessons counts what was learned, for hintsChanged.
func (t *trusts) lessons() (n int) {
	for _, k := range t {
		n += int(k.NewRight) + int(k.NewWrong) + int(k.OldRight) + int(k.OldWrong)
	}
	return n
}

// told is Item.Reported of a Key: the largest share of changes that hints tell of, among those kinds.
// kinds has a bit for each kind that was right about this Key before.
func (t *trusts) told(kinds byte) (share float64) {
	for k := store.HintSitemap; k <= store.HintElsewhere; k++ {
		if kinds&(1<<k) != 0 && t.of(k).Ratio(true) >= leastRatio {
			share = max(share, t.of(k).Reported())
		}
	}
	return min(share, schedule.MaxTold)
}

// finding is what a visit found.
type finding struct {
	outcome  schedule.Outcome
	modified time.Time      // its Last-Modified; zero = there is none
	list     store.HintKind // the kind of hints that its entries are; 0 = it is no list
	news     int            // entries that are new or have another date
}

// learned applies the result of a visit: it teaches t, and adds the visit to p's history. A result
// that cannot tell a change from no change teaches t nothing.
//
// The time of a change is extra evidence if a trusted hint or the Last-Modified says it. Such a
// visit came because of the change, so the time between two visits alone says too little.
func (r *revisits) learned(p *plan, t *trusts, f finding, now time.Time) {
	hint, last := p.hint, p.history.Last()
	_, again := p.history.Latest()
	p.hint = store.Hint{}
	event := schedule.Event{At: now, Outcome: f.outcome, Posts: f.news}
	if !again || f.outcome > schedule.Changed {
		p.history.Add(event)
		return
	}
	changed := f.outcome == schedule.Changed
	for k := store.HintSitemap; k <= store.HintElsewhere; k++ {
		if trust := t.of(k); k == hint.Kind {
			trust.Learn(true, changed)
		} else if hint.Kind == 0 && trust.NewRight+trust.NewWrong > 0 {
			trust.Learn(false, changed)
		}
	}
	if hint.Kind != 0 && changed {
		r.hints[hintRight]++
		p.told |= 1 << hint.Kind
	} else if hint.Kind != 0 {
		r.hints[hintWrong]++
	}
	dated := !f.modified.IsZero() && !f.modified.After(now)
	if dated {
		t.of(store.HintHeader).Learn(f.modified.After(last), changed)
	}
	within := func(at time.Time) bool { return at.After(last) && at.Before(now) }
	switch {
	case !changed || f.list != 0:
	case p.moved && within(hint.At) && t.of(hint.Kind).Ratio(true) >= leastRatio: // unchanged until the hint's time
		p.history.Add(schedule.Event{At: hint.At, Outcome: schedule.Unchanged})
	case dated && within(f.modified) && t.of(store.HintHeader).Ratio(true) >= leastRatio: // unchanged since then
		p.history.Add(schedule.Event{At: f.modified, Outcome: schedule.Changed})
		event.Outcome = schedule.Unchanged
	}
	p.history.Add(event)
}

// tells is Item.Tells of a list: the news per day at the site, times the share that is worth
// having. At most so much news counts as the visits could bring for the items that the site has
// here.
func (r *revisits) tells(p *plan, t *trusts, items int) float64 {
	if p.list == 0 || t.of(p.list).Ratio(true) < leastRatio {
		return 0
	}
	news, days := p.history.News()
	if days <= 0 {
		return 0
	}
	visits, _ := p.history.Totals()
	return min(float64(news), float64(visits*items)) / days * t.of(p.list).Reported()
}

// applyHints returns the plan of d after a hint at now; ok is false if the hint changes nothing.
// gap is the delay of the Key's site. site says how often hints were right there.
func (r *revisits) applyHints(d store.Due, h store.Hint, site store.Site, gap time.Duration,
	now time.Time) (out store.Plan, ok bool) {
	p, err := decodePlan(d.History)
	if err != nil {
		return out, false // the next fetch logs it
	}
	if h.At.After(now) || !h.At.After(p.history.Last()) || p.hint.Kind != 0 && p.hint.Kind != h.Kind {
		return out, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := d.At
	if p.hint.Kind == 0 {
		r.hints[hintReceived]++
		p.hint, p.moved, ok = h, false, true
	}
	trust := decodeTrusts(site.Hints)
	ratio := trust.of(h.Kind).Ratio(true)
	followed := ratio >= leastRatio
	if p.moved || !followed && p.told == 0 {
		return store.Plan{Was: d, At: at, History: p.encode()}, ok
	}
	if !followed {
		ratio = 1 // its plan may be from a time when hints were trusted
	}
	sp := r.sites.of(d.Key.Site())
	b := sp.budget(&r.budget, time.Duration(float64(gap)*r.speed), r.meter.Price())
	sooner := schedule.AfterHint(schedule.Item{History: &p.history}, b, ratio, now)
	if to := r.scaled(sooner.At, 1/r.speed); to.Before(at) && sp.sooner(now, r.interval) {
		if at, p.moved, ok = to, true, true; followed {
			r.hints[hintFollowed]++
		}
	}
	return store.Plan{Was: d, At: at, History: p.encode()}, ok
}

// ApplyHints applies the hints of links into sl, for Keys that are known there. The caller makes
// sure that the hints come from a peer that may give them. Hints for unknown Keys, or for a slice
// that was handed over, are ignored. The error is the store's. Safe for concurrent use.
func (c *Crawler) ApplyHints(sl partition.Slice, told []store.Admission) error {
	if c.revisits == nil {
		return nil
	}
	for len(told) > 0 {
		n := min(len(told), store.MaxPlans)
		if err := c.applyHints(sl, told[:n]); err != nil {
			return fmt.Errorf("crawler: hints: %w", err)
		}
		told = told[n:]
	}
	return nil
}

func (c *Crawler) applyHints(sl partition.Slice, told []store.Admission) error {
	// applyHints applies at most store.MaxPlans hints.
	now := c.revisits.scaled(time.Now(), c.revisits.speed)
	var plans []store.Plan
	sooner := map[partition.Site]time.Time{}
	for _, a := range told {
		if a.Hint.Kind < store.HintSitemap || a.Hint.Kind > store.HintElsewhere {
			continue
		}
		d, err := c.o.Store.Queue.DueIn(sl, a.Key)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if d.State != store.StateDone || d.At.IsZero() || len(d.History) == 0 {
			continue
		}
		site, err := c.sites.get(sl, a.Key.Site())
		if err != nil {
			return err
		}
		p, ok := c.revisits.applyHints(d, a.Hint, site, max(c.o.Delay, site.Delay), now)
		if !ok {
			continue
		}
		plans = append(plans, p)
		if at, had := sooner[site.Site]; p.At.Before(d.At) && (!had || p.At.Before(at)) {
			sooner[site.Site] = p.At
		}
	}
	if len(plans) == 0 {
		return nil
	}
	if _, err := c.o.Store.Queue.Replan(sl, plans); errors.Is(err, store.ErrFenced) {
		return nil // the new owner applies the next hint
	} else if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.gained[sl]
	if !ok {
		return nil
	}
	for s, at := range sooner {
		c.front.Wake(sl, s, since.Add(c.o.Delay), at)
	}
	c.wake()
	return nil
}

// hinted returns the links of a fetch in sl whose hints this peer applies at once. The hints of the
// other links go with the outbox.
func (c *Crawler) hinted(sl partition.Slice, links []store.Admission) (out []store.Admission) {
	for _, a := range links {
		if a.Hint.Kind != 0 && (!sl.IsHash() || c.o.Store.SliceOf(a.Key) == sl) {
			out = append(out, a)
		}
	}
	return out
}

// datedToDays is how much earlier than the change a date without an hour may be.
const datedToDays = 24 * time.Hour

// hint returns what a link says of its Key's last change. since is when the linking page was read
// before. For a link to another site, a change before since gives no hint: the earlier read gave
// it.
func (c *Crawler) hint(from store.Due, l store.Link, since, now time.Time) (h store.Hint) {
	if l.Modified == nil || c.revisits == nil || l.Modified.After(now) {
		return h
	}
	kind := listOf(l)
	if kind == 0 {
		return h
	}
	if l.Key.Site() != from.Key.Site() {
		kind = store.HintElsewhere
		if !since.IsZero() && l.Modified.Before(since.Add(-datedToDays)) {
			return h
		}
	}
	return store.ParseHint(uint64(kind), l.Modified.Unix())
}

// listOf returns the kind of hints in the list of which l is a dated entry; 0 = l is no such entry.
func listOf(l store.Link) store.HintKind {
	switch {
	case l.Modified == nil:
	case l.Rel == "sitemap", l.Rel == "alternate":
		return store.HintSitemap
	case l.Rel == "item":
		return store.HintFeed
	}
	return 0
}

// entries returns the entries of a list of hints with their dates in Unix seconds. kind is 0 if the
// record is no such list.
func entries(r *store.Record) (kind store.HintKind, dates map[partition.Key]int64) {
	for _, l := range r.Links {
		k := listOf(l)
		if k == 0 {
			continue
		}
		if kind = k; dates == nil {
			dates = make(map[partition.Key]int64, len(r.Links))
		}
		dates[l.Key] = l.Modified.Unix()
	}
	return kind, dates
}

// listed returns what a list says beside its text, in its own order.
func listed(r *store.Record) string {
	var b strings.Builder
	for _, l := range r.Links {
		if listOf(l) == 0 && l.Rel != "sitemap" {
			continue
		}
		b.WriteString("\n" + string(l.Key))
		if l.Modified != nil {
			b.WriteString(l.Modified.UTC().Format(" " + time.RFC3339))
		}
	}
	return b.String()
}

// hintCounts returns a copy of the hint counts since New.
func (r *revisits) hintCounts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.hints)
}

// says returns the words in which `show` describes a hint that made a visit sooner.
func says(h store.Hint) string {
	who := map[store.HintKind]string{store.HintSitemap: "its sitemap", store.HintFeed: "a feed of its site",
		store.HintElsewhere: "another site"}[h.Kind]
	return fmt.Sprintf("%s says that it changed %s; ", who, h.At.UTC().Format(time.RFC3339))
}

// readBefore returns when d was fetched before (zero = never) and now, both in the time of
// revisits.
func (c *Crawler) readBefore(d store.Due, now time.Time) (before, at time.Time) {
	if c.revisits == nil {
		return before, now
	}
	if p, err := decodePlan(d.History); err == nil {
		before = p.history.Last()
	}
	return before, c.revisits.scaled(now, c.revisits.speed)
}
