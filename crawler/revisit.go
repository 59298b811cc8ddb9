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

// revisits decides when a fetched Key is visited again (Options.Revisit). It keeps each Key's
// history and asks the default policy of package schedule. A Meter keeps the plans of all Keys
// within the number of visits that are possible. Safe for concurrent use.
//
// The store has the histories, with their Keys, and what was learned from them (lessons). The Meter
// is this peer's, in memory. After a restart, or for a Key that came with a slice, a plan counts
// from the next visit on. Keys that left with a slice go on counting, with their plans: the Meter
// compares demand per item with visits per item.
type revisits struct {
	interval time.Duration
	began    time.Time
	speed    float64 // speed of their time, which starts at began, against the clock; plans and histories use it

	mu      sync.Mutex
	lessons *lessons
	sites   sitePrices
	budget  schedule.Budget
	meter   *schedule.Meter
	items   int                        // Keys with a plan that the meter counts
	visits  int                        // since the price was last renewed
	outcome map[schedule.Outcome]int64 // revisits by what they found
	hints   map[string]int64           // hints by what became of them: the hint constants
}

// A price of the Meter holds for renewEvery visits, or for a small part of a mean interval if that
// is less. If the price is renewed later, it swings.
const (
	renewEvery = 100
	renewPart  = 20
)

// newRevisits returns revisits that begin at began, with a fair price for all items.
func newRevisits(interval time.Duration, speed float64, began time.Time, l *lessons) *revisits {
	r := &revisits{interval: interval, began: began, speed: speed, lessons: l, sites: sitePrices{},
		budget: schedule.Budget{Interval: interval, Model: l.model}, outcome: map[schedule.Outcome]int64{},
		hints: map[string]int64{hintReceived: 0, hintFollowed: 0, hintRight: 0, hintWrong: 0}}
	r.meter = schedule.NewMeter(r.budget.FairPrice(0))
	return r
}

// scaled returns t with its distance from began multiplied by by. The zero time stays zero.
func (r *revisits) scaled(t time.Time, by float64) time.Time {
	if by == 1 || t.IsZero() {
		return t
	}
	return r.began.Add(time.Duration(float64(t.Sub(r.began)) * by))
}

// plan returns next with the time of the next visit and the history for it. The visit at now found
// f. gap is the delay of the Key's site. site is the state of that site; its Hints are updated. An
// error means that the history could not be read and starts again; the plan is valid all the same.
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
	item := schedule.Item{History: &p.history, Reported: trust.told(p.told), Phase: phase(due.Key)}
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
		if now.Sub(r.began) >= r.interval { // earlier, the plans of the few Keys that came first would stand for all
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

// phase returns the schedule.Item.Phase of a Key; the phases are spread evenly over all Keys. It
// uses the end of the hash, because the Keys of a slice share its beginning.
func phase(k partition.Key) float64 {
	h := k.Hash128()
	return (float64(binary.BigEndian.Uint32(h[len(h)-4:])) + 0.5) / (1 << 32)
}

// why returns why d is visited again at its time.
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

// Why says in words why d is due again at its time. It is the policy's reason, by what the policy
// knows now. If the Source plans its Keys itself (Result.Planned), it is the Source's reason. It is
// "" if d is not visited again. It fails if the history cannot be read.
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

// seen returns the number of revisits since New, by what they found.
func (r *revisits) seen() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]int64, len(r.outcome))
	for o, n := range r.outcome {
		out[o.String()] = n
	}
	return out
}

// revisit returns when the Key is visited again. It leaves the plan of a failure that is tried
// again soon. A Key that was never fetched, and is gone or refused, is not visited again.
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

// found compares the fetched record with the stored one. It compares the text without the parts
// that change by themselves, and for a list its entries and their dates. The error is the store's.
func (t *task) found(now *store.Record) (f finding, err error) {
	if now == nil { // HTTP status 304
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
		return f, nil // no text is stored, and the bodies differ
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

// visit returns the parts of a record that are compared.
func visit(r *store.Record) change.Seen {
	return change.Seen{Status: http.StatusOK, ETag: r.ETag, Digest: change.Digest(r.Title+"\n"+r.Text) + listed(r)}
}
