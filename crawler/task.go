package crawler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/frontier"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// ErrNotOwned is what Task.Gate fails with when this peer may not fetch in the
// Key's slice any more. A Source returns it as it is; the Key stays due.
var ErrNotOwned = errors.New("crawler: this peer does not own the slice any more")

// maxSlow is the longest gap that a slow answer alone earns a site.
const maxSlow = 30 * time.Second

// idleRest is how long a site rests after a fetch that neither asked nor waited, as the one after it would do the same.
const idleRest = 100 * time.Millisecond

// Seldom-changing state of a site is written with the fetch that changed it, the
// count of its fetches with every so manieth, and what its hints taught.
const (
	fetchedEvery = 64
	hintsEvery   = 8
)

// task is one fetch, from the pick to the commit.
type task struct {
	c      *Crawler
	step   frontier.Step
	due    store.Due
	site   store.Site
	pulse  pulse  // of the fetch
	domain string // whose turn was taken, "" = none
	wrote  bool   // into the store
	// Of the attempt at the Key (judging.go).
	suspect, alone bool
	trying         atomic.Pointer[trying] // the attempt that is open, or about to be; nil: none
	known          atomic.Bool            // a majority knows of the attempt that is open
	holds          holding
}

// fetch sees one picked row through. It gives back the slot that dispatch took
// once the result is committed, and the site once that is settled.
func (c *Crawler) fetch(ctx context.Context, st frontier.Step, now time.Time) {
	t := &task{c: c, step: st}
	allowed, later, again := t.run(ctx, now)
	t.endAttempt()
	if t.pulse.calls() == 0 {
		c.counts.ungated.Add(-1)
		if t.domain != "" {
			c.domains.refund(t.domain)
		}
	}
	var row *frontier.Row
	if again {
		row = &st.Row
	}
	c.mu.Lock()
	if c.flying[st.Slice]--; c.flying[st.Slice] == 0 {
		delete(c.flying, st.Slice)
	}
	c.counts.fetching.Add(-1)
	c.mu.Unlock()
	var committed <-chan struct{}
	if t.wrote {
		committed = c.o.AtQuorum(st.Slice)
	}
	if committed == nil {
		c.done(st, allowed, later, row)
		<-c.slots
		return
	}
	c.commits <- struct{}{} // others are settled or Run ends
	<-c.slots
	c.wake()
	select {
	case <-committed:
	case <-ctx.Done():
	}
	<-c.commits
	c.done(st, allowed, later, row)
}

// done gives the site back to the frontier.
func (c *Crawler) done(st frontier.Step, allowed, later time.Time, row *frontier.Row) {
	c.mu.Lock()
	c.front.Done(st, allowed, later, row)
	c.mu.Unlock()
	c.wake()
}

// run fetches and commits. It answers when the site may be asked again, when a
// row of it falls due that the frontier does not know of, and whether the row
// is to be put back.
func (t *task) run(ctx context.Context, now time.Time) (allowed, later time.Time, again bool) {
	c := t.c
	ready, allowed := t.prepare(now)
	if !ready {
		return allowed, time.Time{}, !allowed.IsZero()
	}
	src := c.source(t.due.Key)
	if src == nil {
		return t.commit(Result{Site: t.site, Next: store.Next{State: store.StateRefused, Reason: "no source for it"},
			Stop: "no-source"}, time.Time{})
	}
	// a page seen again is none more
	if c.o.MaxPages > 0 && !c.o.Budgeted(t.step.Site) && t.due.Key.Kind() != partition.KindFile &&
		t.site.Fetched >= int64(c.o.MaxPages) && len(t.due.History) == 0 {
		reason := fmt.Sprintf("budget of %d pages of the site is used up", c.o.MaxPages)
		return t.commit(Result{Site: t.site, Next: store.Next{State: store.StateRefused, Reason: reason},
			Stop: "budget"}, time.Time{})
	}
	res, err := t.ask(ctx, src, now)
	ended := time.Now()
	c.counts.add(res)
	c.limits.spent(ended, res.Bytes)
	if t.pulse.calls() > 0 || res.Reqs > 0 {
		if res.Asked.IsZero() {
			res.Asked = ended
		}
		allowed = res.Asked.Add(max(t.delay(), res.Site.Delay, min(res.Slow, maxSlow)))
	}
	switch {
	case errors.Is(err, ErrNotOwned):
		return allowed, now, false // read again, should we own it again
	case errors.Is(err, errUnheard):
		return allowed, time.Now().Add(unheardRest), false
	case err != nil && ctx.Err() != nil:
		return allowed, now, false
	case err != nil:
		c.fail(fmt.Errorf("crawler: source %s: %s: %w", src.Name(), t.due.Key, err))
		return allowed, now, false
	}
	t.signed(res)
	allowed, later, again = t.commit(res, allowed)
	if res.Hold.After(allowed) {
		allowed = res.Hold
	}
	if again && res.Reqs == 0 && t.pulse.calls() == 0 && !allowed.After(now) { // a time that came meanwhile is one
		c.o.Logger.Warn("a fetch asked nothing and named no time to wait for", "key", t.due.Key, "source", src.Name())
		allowed = ended.Add(idleRest)
	}
	return allowed, later, again
}

// delay is the least gap between two requests to the site.
func (t *task) delay() time.Duration {
	if t.c.o.Budgeted(t.step.Site) {
		return 0
	}
	return t.c.o.Delay
}

// prepare loads what is known of the Key and its site. The row may have been
// read a while ago, so that it is still due is looked up; not ready with a time
// says that the site has to wait till then.
func (t *task) prepare(now time.Time) (ready bool, allowed time.Time) {
	c := t.c
	if !c.o.Owns(t.step.Slice) {
		c.mu.Lock()
		_, told := c.gained[t.step.Slice]
		c.mu.Unlock()
		if told { // a lease lapsed; SetSlices may or may not follow
			return false, now.Add(max(c.o.Delay, time.Second))
		}
		return false, time.Time{}
	}
	var err error
	if t.due, err = c.o.Store.Queue.DueIn(t.step.Slice, t.step.Row.Key); err != nil {
		if !errors.Is(err, store.ErrNotExist) {
			c.fail(fmt.Errorf("crawler: %w", err))
		}
		return false, time.Time{}
	}
	if t.due.At.After(now) || t.due.At.IsZero() && t.due.State != store.StatePending {
		return false, time.Time{}
	}
	if t.site, err = c.sites.get(t.step.Slice, t.step.Site); err != nil {
		c.fail(fmt.Errorf("crawler: %w", err))
		return false, time.Time{}
	}
	if moved, err := t.move(now); moved || err != nil {
		if err != nil {
			c.fail(fmt.Errorf("crawler: %w", err))
		}
		return false, time.Time{}
	}
	c.mu.Lock()
	since := c.gained[t.step.Slice]
	c.mu.Unlock()
	allowed = t.site.NextAllowed
	if first := since.Add(max(t.delay(), t.site.Delay)); first.After(allowed) {
		allowed = first // I7: what the owner before us asked last, we do not know
	}
	if allowed.After(now) {
		return false, allowed
	}
	if !t.mayTry(now) {
		return false, time.Time{}
	}
	domain := domainOf(t.due.Key)
	if domain == "" {
		return true, allowed
	}
	c.domains.vouched(domain, domainOf(t.due.Referrer))
	if turn := c.domains.turn(domain, t.step.Site, now); turn.After(now) {
		return false, turn
	}
	t.domain = domain
	return true, allowed
}

// move sends a number of Keys on when the Key's unit is crawled in another slice
// by now. No fetch of the site is under way: it was picked for this one. The
// Keys that are moved and in the frontier's window come to prepare, too, which
// finds them not due any more.
func (t *task) move(now time.Time) (bool, error) {
	c := t.c
	if c.o.Place == nil {
		return false, nil
	}
	p, err := c.o.Store.Queue.PlacementOf(t.step.Slice, t.due.Key)
	if errors.Is(err, store.ErrNotExist) || err == nil && p.To == t.step.Slice {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	pace := store.Pace{Next: t.site.NextAllowed, Wait: max(t.delay(), t.site.Delay), BackOff: t.site.BackOff,
		Fetched: t.site.Fetched}
	n, err := c.o.Store.Queue.Move(t.step.Slice, t.due.Key, pace, now)
	if n > 0 {
		c.o.Committed()
	}
	if errors.Is(err, store.ErrFenced) {
		return true, nil // handed over: the new owner goes on
	}
	return true, err
}

// checkpoint is Task.Checkpoint.
func (t *task) checkpoint() ([]byte, error) {
	switch k := t.due.Key; k.Service() {
	case "mastodon", "bluesky", "twitter":
		if k.Kind() == partition.KindFile {
			return nil, nil
		}
		return t.c.o.Store.Accounts.Checkpoint(t.step.Slice, t.due.Key)
	}
	return nil, nil
}

// signed says in all that res brings which peer had it.
func (t *task) signed(res Result) {
	peer := t.c.o.Peer
	if res.Record != nil {
		res.Record.Peer = peer
	}
	if res.Capture != nil {
		res.Capture.Peer = peer
	}
	for i := range res.Posts {
		res.Posts[i].Peer = peer
	}
	for i := range res.Gaps {
		res.Gaps[i].Peer = peer
	}
}

// gate is Task.Gate.
func (t *task) gate(ctx context.Context) error {
	c := t.c
	first, err := t.pulse.enter()
	if err != nil {
		return err
	}
	defer t.pulse.leave()
	if first {
		defer c.counts.ungated.Add(-1)
		// from now: the last request has been answered
	} else if err := fetch.Sleep(ctx, max(t.delay(), t.site.Delay)); err != nil {
		return err
	}
	if err := c.limits.request(ctx); err != nil {
		return err
	}
	if !c.o.Owns(t.step.Slice) {
		return ErrNotOwned
	}
	// With the request, not after its answer: what waits between an answer and its commit is asked for twice
	// when this process dies. A suspect is written down when it is alone (judge).
	if !t.suspect {
		t.begin()
	}
	return ctx.Err()
}

// commit makes the result durable: after it the Key is done, due later, or
// refused; or due as it was, when only the site was learnt of (Result.Again).
// Before it, and after a crash in it, the Key is due as it was.
func (t *task) commit(res Result, asked time.Time) (allowed, later time.Time, again bool) {
	c := t.c
	allowed = asked
	if res.Site.NextAllowed.After(allowed) {
		allowed = res.Site.NextAllowed
	}
	if res.Again {
		res.Record, res.Capture = nil, nil
		res.Posts, res.Lists, res.Gaps, res.Checkpoint = nil, nil, nil, nil
		res.Next = store.Next{State: t.due.State, At: t.due.At, Attempts: t.due.Attempts, Reason: t.due.Reason}
	}
	if c.revisits != nil && !res.Again && !res.Planned {
		next, err := t.revisit(&res)
		if err != nil {
			c.fail(err)
			return allowed, time.Time{}, false
		}
		res.Next = next
		if r := res.Record; r != nil && t.due.State == store.StateDone && r.Digest != "" && r.Digest == t.due.Digest {
			res.Links = nil // the same bytes: its links came with the visit before, in one batch (I3)
		}
	}
	links, stops := c.admissions(t.due, res.Record, res.Links)
	if res.Stop != "" {
		stops[res.Stop]++
	}
	res.Site.Site, res.Site.Slice, res.Site.Stops = t.step.Site, t.step.Slice, counted(res.Site.Stops, stops)
	changed := siteChanged(t.site, res.Site)
	if changed {
		res.Site.NextAllowed = allowed
	}
	c.sites.put(res.Site, changed)
	if res.Again && len(links) == 0 { // its robots.txt may be what stops it
		c.counts.stopped(stops)
		if changed {
			if err := c.o.Store.Queue.PutSite(res.Site); err != nil && !errors.Is(err, store.ErrFenced) {
				c.fail(fmt.Errorf("crawler: %w", err))
			}
		}
		return allowed, time.Time{}, true
	}
	commit := t.batch(res, links, changed)
	_, err := t.written() // an attempt must not come after the commit that ends it
	if err == nil {
		err = c.o.Store.Commit(commit)
	}
	switch {
	case errors.Is(err, ErrNotOwned), errors.Is(err, store.ErrNotExist), errors.Is(err, store.ErrFenced):
		c.o.Logger.Info("slice was handed over during a fetch", "key", t.due.Key, "slice", t.step.Slice)
		return allowed, time.Time{}, false
	case err != nil:
		c.fail(fmt.Errorf("crawler: commit: %w", err))
		return allowed, time.Time{}, false
	}
	t.wrote = true
	c.counts.stopped(stops)
	if !res.Again {
		c.counts.committed(res)
		if res.Kept != nil {
			res.Kept()
		}
	}
	if !res.Again && res.Next.State != store.StateDone &&
		(res.Next.State != store.StatePending || res.Next.Reason != "") {
		c.counts.failure(Failure{Key: t.due.Key, State: res.Next.State, Reason: res.Next.Reason, At: commit.Now})
	}
	c.wakeLinked(t.step.Slice, commit.Links)
	if err := c.ApplyHints(t.step.Slice, c.hinted(t.step.Slice, commit.Links)); err != nil {
		c.fail(err)
	}
	c.o.Committed()
	return allowed, res.Next.At, res.Again
}

// batch is what is committed of res, with the site's state when it changed.
func (t *task) batch(res Result, links []store.Admission, changed bool) store.Commit {
	commit := store.Commit{Key: t.due.Key, Slice: t.step.Slice, Now: time.Now(), Record: res.Record,
		Capture: res.Capture, Next: res.Next, Links: links,
		Posts: res.Posts, Lists: res.Lists, Gaps: res.Gaps, Checkpoint: res.Checkpoint, Run: t.c.run}
	if changed {
		site := res.Site
		commit.Site = &site
	}
	if t.c.o.Place != nil && res.Record != nil {
		commit.Place = t.place(res.Record)
	}
	return commit
}

// place is Options.Place; a record that it panics over stays where it is.
func (t *task) place(r *store.Record) (p *store.Placement) {
	defer func() {
		if v := recover(); v != nil {
			t.c.o.Logger.Error("placing panicked", "key", t.due.Key, "panic", v, "stack", string(debug.Stack()))
			t.c.counts.stopped(map[string]int64{"panic": 1})
			p = nil
		}
	}()
	return t.c.o.Place(t.step.Slice, r)
}

// counted are the stops of a site after some more; before is shared.
func counted(before, more map[string]int64) map[string]int64 {
	if len(more) == 0 {
		return before
	}
	out := make(map[string]int64, len(before)+len(more))
	maps.Copy(out, before)
	for why, n := range more {
		if _, had := out[why]; !had && len(out) >= store.MaxStops-1 {
			why = "other"
		}
		out[why] += n
	}
	return out
}

// stopsChanged says whether the stops of a site are worth a write: a new reason
// is, a count each time it has doubled.
func stopsChanged(a, b map[string]int64) bool {
	for why, n := range b {
		if bits.Len64(uint64(n)) != bits.Len64(uint64(a[why])) {
			return true
		}
	}
	return false
}

// siteChanged says whether what is to survive a restart differs.
func siteChanged(a, b store.Site) bool {
	if a.Delay != b.Delay || a.BackOff != b.BackOff || a.Failures != b.Failures || a.Stopped != b.Stopped ||
		!a.NextAllowed.Equal(b.NextAllowed) || a.Fetched/fetchedEvery != b.Fetched/fetchedEvery ||
		len(a.Robots) != len(b.Robots) ||
		stopsChanged(a.Stops, b.Stops) || hintsChanged(a.Hints, b.Hints) {
		return true
	}
	for origin, r := range b.Robots {
		if old, ok := a.Robots[origin]; !ok || !old.Fetched.Equal(r.Fetched) || old.Status != r.Status {
			return true
		}
	}
	return false
}

// hintsChanged says whether what was learned of hints is worth a write: the first
// lesson, and then each time that their number is another multiple of hintsEvery.
func hintsChanged(a, b []byte) bool {
	before, now := decodeTrusts(a), decodeTrusts(b)
	return (len(a) == 0) != (len(b) == 0) || before.lessons()/hintsEvery != now.lessons()/hintsEvery
}

func (c *Crawler) source(k partition.Key) Source {
	for _, s := range c.o.Sources {
		if s.Handles(k) {
			return s
		}
	}
	return nil
}
