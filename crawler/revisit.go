package crawler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/crawler/schedule/change"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// revisits decides when what was fetched is looked at again (Options.Revisit):
// it keeps each Key's history, asks the default policy of package schedule, and
// holds the plans of all to the visits there are by a Meter. Safe for concurrent
// use.
//
// The histories are the store's, with their Keys; what was learned from them is kept
// there as well (lessons). The Meter is this peer's and
// in memory: after a restart, or for a Key that came with a slice, a plan counts
// from the next visit on. Plans of Keys that went with a slice go on counting, and
// so do the Keys: what the Meter weighs is demand and visits an item.
type revisits struct {
	interval time.Duration
	began    time.Time
	speed    float64 // of revisits' time against the clock's, from began on; plans and histories are in theirs

	mu      sync.Mutex
	lessons *lessons
	sites   sitePrices
	budget  schedule.Budget
	meter   *schedule.Meter
	items   int // with a plan that the meter counts
	visits  int // since the price was renewed
	outcome map[schedule.Outcome]int64
	hints   map[string]int64
}

// A price of the Meter holds for renewEvery visits, or for as many as are a small
// part of a mean interval: what is told later makes the price swing.
const (
	renewEvery = 100
	renewPart  = 20
)

func newRevisits(interval time.Duration, speed float64, began time.Time, l *lessons) *revisits {
	r := &revisits{interval: interval, began: began, speed: speed, lessons: l, sites: sitePrices{},
		budget: schedule.Budget{Interval: interval, Model: l.model}, outcome: map[schedule.Outcome]int64{},
		hints: map[string]int64{hintHeard: 0, hintFollowed: 0, hintRight: 0, hintWrong: 0}}
	r.meter = schedule.NewMeter(r.budget.FairPrice(0))
	return r
}

// scaled is t as far from began as it is, times by.
func (r *revisits) scaled(t time.Time, by float64) time.Time {
	if by == 1 || t.IsZero() {
		return t
	}
	return r.began.Add(time.Duration(float64(t.Sub(r.began)) * by))
}

// plan is the Next of a visit at now that found f, with the time of the next one
// and the history for it. gap is the delay of the Key's site, site its state, which
// learns what its hints are worth.
func (r *revisits) plan(due store.Due, next store.Next, f finding, site *store.Site, gap time.Duration,
	now time.Time) (store.Next, error) {
	p, err := decodePlan(due.History)
	if err != nil {
		p = plan{}
		err = fmt.Errorf("crawler: the history of %s starts again: %w", due.Key, err)
	}
	now = r.scaled(now, r.speed)
	_, again := p.history.Latest()
	r.mu.Lock()
	defer r.mu.Unlock()
	var before schedule.Decision
	if again && !p.history.Last().Before(r.began.Truncate(time.Second)) { // histories have whole seconds
		before = p.decision()
	} else {
		r.items++
	}
	waited := p.waited(r.scaled(due.At, r.speed))
	trust := decodeTrusts(site.Hints)
	r.learned(&p, &trust, f, now)
	site.Hints, p.moved = trust.encode(), false
	if f.list != 0 {
		p.list = f.list
	}
	r.lessons.see(due.Key, &p.history)
	gap = time.Duration(float64(gap) * r.speed)
	sp := r.sites.of(due.Key.Site())
	item := schedule.Item{History: &p.history, Told: trust.told(p.told), Phase: phase(due.Key)}
	if sp != nil {
		item.Tells = r.tells(&p, &trust, sp.items)
	}
	d := schedule.Decide(item, sp.budget(&r.budget, gap, r.meter.Price()), now)
	p.tau, p.age, p.even = float32(d.Tau), float32(d.Age), float32(d.EvenAge)
	r.meter.Planned(before, p.decision())
	late := time.Duration(0)
	if again {
		r.outcome[f.outcome]++
		if due.State != store.StatePending && !due.At.IsZero() {
			late = now.Sub(r.scaled(due.At, r.speed))
		}
		if now.Sub(r.began) >= r.interval { // before, the plans of the few that came first would stand for all
			if before.Tau > 0 {
				r.meter.Lived(waited, r.items)
			}
			r.meter.Visited(late, r.interval, r.items)
		}
	}
	sp.planned(before, p.decision(), late, gap, r.meter.Price(), waited)
	if r.visits++; r.visits >= min(renewEvery, r.items/renewPart+1) {
		r.visits = 0
		r.budget.Price = r.meter.Price()
		r.meter.Guard(&r.budget)
	}
	next.At, next.History = r.scaled(d.At, 1/r.speed), p.encode()
	return next, err
}

// phase is the schedule.Item.Phase of a Key, spread evenly over all. It is of the end of
// the hash, as Keys of a slice have its beginning in common.
func phase(k partition.Key) float64 {
	h := k.Hash128()
	return (float64(binary.BigEndian.Uint32(h[len(h)-4:])) + 0.5) / (1 << 32)
}

// why says why what d is of is looked at again when it is.
func (r *revisits) why(d store.Due) (string, error) {
	p, err := decodePlan(d.History)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	budget := r.budget
	r.mu.Unlock()
	visits, changes := p.history.Totals()
	hint := ""
	if p.moved {
		hint = says(p.hint)
	}
	return hint + fmt.Sprintf("%s; looked at again %d times, changed %d",
		schedule.Explain(&p.history, r.scaled(d.At, r.speed), &budget).Why(), visits, changes), nil
}

// Why says in words why d is due again when it is: the policy's reason, by what it
// knows now, or that of the source that plans its Keys itself (Result.Planned). "" when d is not
// looked at again. An error is of a history that cannot be read.
func (c *Crawler) Why(d store.Due) (string, error) {
	switch {
	case d.At.IsZero() || d.State == store.StatePending:
		return "", nil
	case len(d.History) == 0:
		return d.Reason, nil
	case c.revisits == nil:
		return "", nil
	}
	return c.revisits.why(d)
}

// seen are the revisits since New, by what they found.
func (r *revisits) seen() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]int64, len(r.outcome))
	for o, n := range r.outcome {
		out[o.String()] = n
	}
	return out
}

// revisit says when the Key is looked at again. A failure that is tried again
// soon says nothing of it; what was never had is not looked for again.
func (t *task) revisit(res *Result) (store.Next, error) {
	had := len(t.due.History) > 0
	var f finding
	switch res.Next.State {
	case store.StateDone:
		var err error
		if f, err = t.found(res.Record); err != nil {
			return res.Next, err
		}
	case store.StateGone:
		f.outcome = schedule.Gone
	case store.StateRefused:
		f.outcome = schedule.Failed
	default:
		return res.Next, nil
	}
	if !had && res.Next.State != store.StateDone {
		return res.Next, nil
	}
	next, err := t.c.revisits.plan(t.due, res.Next, f, &res.Site, max(t.c.o.Delay, res.Site.Delay), time.Now())
	if err != nil {
		t.c.o.Logger.Warn("revisits", "err", err)
	}
	t.c.learn()
	return next, nil
}

// found compares what was fetched with the record there is: by the text, but for
// what changes by itself, and of a list by its entries and their dates. The error is
// the store's.
func (t *task) found(now *store.Record) (f finding, err error) {
	if now == nil { // 304
		return f, nil
	}
	if now.Redirect != "" {
		return finding{outcome: schedule.Redirect}, nil
	}
	if at, err := http.ParseTime(now.Modified); err == nil {
		f.modified = at.UTC()
	}
	kind, dates := entries(now)
	f.list = kind
	if t.due.Digest == now.Digest {
		return f, nil
	}
	f.outcome = schedule.Changed
	before, _, err := t.c.o.Store.Archive.Find(t.due.Key)
	if errors.Is(err, store.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("crawler: %w", err)
	}
	if before.NoIndex || now.NoIndex {
		return f, nil // no text is kept, and the bodies differ
	}
	if change.Compare(visit(&before), visit(now)) == change.Same {
		f.outcome = schedule.Unchanged
		return f, nil
	}
	_, old := entries(&before)
	for k, at := range dates {
		if was, had := old[k]; !had || was != at {
			f.news++
		}
	}
	return f, nil
}

func visit(r *store.Record) change.Seen {
	return change.Seen{Status: http.StatusOK, ETag: r.ETag, Digest: change.Digest(r.Title+"\n"+r.Text) + listed(r)}
}
