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

// ErrNotOwned is the error of Task.Gate if this peer may no longer fetch in the Key's slice. A
// Source returns it unchanged; the Key stays due.
var ErrNotOwned = errors.New("crawler: this peer does not own the slice any more")

// maxSlow is the longest gap that a slow answer alone gives a site.
const maxSlow = 30 * time.Second

// idleRest is how long a site rests after a fetch that made no request and named no time to wait.
// The next fetch would do the same.
const idleRest = 100 * time.Millisecond

// Site state that rarely changes is written by the fetch that changes it. The fetch counter is
// written every fetchedEvery fetches, and what hints taught every hintsEvery lessons.
const (
	fetchedEvery = 64
	hintsEvery   = 8
)

// task is one fetch, from the pick of its row to the commit.
type task struct {
	c      *Crawler
	step   frontier.Step
	due    store.Due
	site   store.Site
	pulse  pulse  // progress of the fetch
	domain string // the domain in which it took a turn, "" = none
	wrote  bool   // its commit is in the store
	// The attempt at the Key (judging.go).
	suspect, alone bool
	trying         atomic.Pointer[trying] // the attempt that is open, or about to be open; nil: none
	known          atomic.Bool            // a majority has the open attempt
	holds          holding
}

// fetch processes one picked row. It frees the slot that dispatch took after the commit. It gives
// the site back to the frontier when the commit has reached a quorum (Swarm.AtQuorum).
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
		committed = c.o.Swarm.AtQuorum(st.Slice)
	}
	if committed == nil {
		c.done(st, allowed, later, row)
		<-c.slots
		return
	}
	c.commits <- struct{}{} // it waits until another site's commit reaches a quorum, or until Run ends
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

// run fetches and commits. allowed is when the site may be asked again. later is when another row
// of the site becomes due that the frontier does not know, or zero. again says that the row is put
// back.
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
	// a page that is visited again is not an additional page
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
		return allowed, now, false // it is read again if this peer gets the slice again
	case errors.Is(err, errNotStored):
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
	// a wait that ended meanwhile is also a wait
	if again && res.Reqs == 0 && t.pulse.calls() == 0 && !allowed.After(now) {
		c.o.Logger.Warn("a fetch asked nothing and named no time to wait for", "key", t.due.Key, "source", src.Name())
		allowed = ended.Add(idleRest)
	}
	return allowed, later, again
}

// delay returns the least gap between two requests to the site.
func (t *task) delay() time.Duration {
	if t.c.o.Budgeted(t.step.Site) {
		return 0
	}
	return t.c.o.Delay
}

// prepare loads what is known of the Key and its site. The row may have been read some time ago, so
// it checks that the row is still due. If ready is false and allowed is not zero, the site has to
// wait until allowed.
func (t *task) prepare(now time.Time) (ready bool, allowed time.Time) {
	c := t.c
	if !c.o.Swarm.Owns(t.step.Slice) {
		c.mu.Lock()
		_, told := c.gained[t.step.Slice]
		c.mu.Unlock()
		if told { // a lease ended; SetSlices may or may not follow
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
		allowed = first // I7: what the owner before us asked last is not known
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

// move moves Keys if the Key's unit is now crawled in another slice. No other fetch of the site is
// under way, because the site was picked for this fetch. Moved Keys that are in the frontier's
// window also reach prepare, which finds that they are not due any more.
func (t *task) move(now time.Time) (bool, error) {
	c := t.c
	if !c.o.Swarm.Moves() {
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
		c.o.Swarm.Committed()
	}
	if errors.Is(err, store.ErrFenced) {
		return true, nil // handed over: the new owner goes on
	}
	return true, err
}

// checkpoint returns Task.Checkpoint: only accounts have one, and their files have none.
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

// signed writes this peer's name into all parts of res.
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

// gate is Task.Gate: it returns when the next request may be made, or with an error.
func (t *task) gate(ctx context.Context) error {
	c := t.c
	first, err := t.pulse.enter()
	if err != nil {
		return err
	}
	defer t.pulse.leave()
	if first {
		defer c.counts.ungated.Add(-1)
		// Later requests wait the delay from now, because the request before has been answered.
	} else if err := fetch.Sleep(ctx, max(t.delay(), t.site.Delay)); err != nil {
		return err
	}
	if err := c.limits.request(ctx); err != nil {
		return err
	}
	if !c.o.Swarm.Owns(t.step.Slice) {
		return ErrNotOwned
	}
	// The attempt is written during the request, not after the answer, so that the answer waits
	// less for its commit. If the process dies in that wait, the request is made again. The attempt
	// at a suspect is written when the suspect is alone (judge).
	if !t.suspect {
		t.begin()
	}
	return ctx.Err()
}

// commit makes the result durable. After it the Key is done, due later, or refused. If only the
// site was learned of (Result.Again), the Key is due as before. Before it, and after a crash in it,
// the Key is due as before. asked is when the site may be asked again because of this fetch. It
// returns what run returns.
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
			res.Links = nil // the same bytes: the visit before committed its links, in one batch (I3)
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
	_, err := t.written() // an attempt must not follow the commit that ends it
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
	c.o.Swarm.Committed()
	return allowed, res.Next.At, res.Again
}

// batch returns the commit of res, with the site's state if it changed.
func (t *task) batch(res Result, links []store.Admission, changed bool) store.Commit {
	commit := store.Commit{Key: t.due.Key, Slice: t.step.Slice, Now: time.Now(), Record: res.Record,
		Capture: res.Capture, Next: res.Next, Links: links,
		Posts: res.Posts, Lists: res.Lists, Gaps: res.Gaps, Checkpoint: res.Checkpoint, Run: t.c.run}
	if changed {
		site := res.Site
		commit.Site = &site
	}
	if t.c.o.Swarm.Moves() && res.Record != nil {
		commit.Place = t.place(res.Record)
	}
	return commit
}

// place calls Swarm.Place. If that panics, the record stays in its slice.
func (t *task) place(r *store.Record) (p *store.Placement) {
	defer func() {
		if v := recover(); v != nil {
			t.c.o.Logger.Error("placing panicked", "key", t.due.Key, "panic", v, "stack", string(debug.Stack()))
			t.c.counts.stopped(map[string]int64{"panic": 1})
			p = nil
		}
	}()
	return t.c.o.Swarm.Place(t.step.Slice, r)
}

// counted returns the stops of a site plus some more. It does not change before, which is shared.
// Above store.MaxStops-1 reasons, new ones count as "other".
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

// stopsChanged reports whether the stops of a site are worth a write. A new reason is, and a count
// that passed a power of two.
func stopsChanged(a, b map[string]int64) bool {
	for why, n := range b {
		if bits.Len64(uint64(n)) != bits.Len64(uint64(a[why])) {
			return true
		}
	}
	return false
}

// siteChanged reports whether something differs that must survive a restart.
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

// hintsChanged reports whether the lessons of hints are worth a write: the first lesson is. After
// it, the number of lessons must pass a multiple of hintsEvery.
func hintsChanged(a, b []byte) bool {
	before, now := decodeTrusts(a), decodeTrusts(b)
	return (len(a) == 0) != (len(b) == 0) || before.lessons()/hintsEvery != now.lessons()/hintsEvery
}

// source returns the first Source that handles k; nil if none does.

func (c *Crawler) source(k partition.Key) Source {
	for _, s := range c.o.Sources {
		if s.Handles(k) {
			return s
		}
	}
	return nil
}
