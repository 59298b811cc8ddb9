package crawler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/crawler/schedule/change"
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
}

// A price of the Meter holds for renewEvery visits, or for as many as are a small
// part of a mean interval: what is told later makes the price swing.
const (
	renewEvery = 100
	renewPart  = 20
)

func newRevisits(interval time.Duration, speed float64, began time.Time, l *lessons) *revisits {
	r := &revisits{interval: interval, began: began, speed: speed, lessons: l, sites: sitePrices{}, budget: schedule.Budget{Interval: interval, Model: l.model}, outcome: map[schedule.Outcome]int64{}}
	r.meter = schedule.NewMeter(r.budget.FairPrice(schedule.Default, 0))
	return r
}

// scaled is t as far from began as it is, times by.
func (r *revisits) scaled(t time.Time, by float64) time.Time {
	if by == 1 || t.IsZero() {
		return t
	}
	return r.began.Add(time.Duration(float64(t.Sub(r.began)) * by))
}

// plan is the Next of a visit at now that found what outcome says, with the time of
// the next one and the history for it. gap is the delay of the Key's site.
func (r *revisits) plan(due store.Due, next store.Next, outcome schedule.Outcome, gap time.Duration, now time.Time) (store.Next, error) {
	p, err := decodePlan(due.History)
	if err != nil {
		p = plan{}
		err = fmt.Errorf("crawler: history of %s is begun anew: %w", due.Key, err)
	}
	now = r.scaled(now, r.speed)
	_, again := p.history.Latest()
	r.mu.Lock()
	defer r.mu.Unlock()
	var before schedule.Decision
	if again && p.history.Last().After(r.began) {
		before = p.decision()
	} else {
		r.items++
	}
	p.history.Add(schedule.Event{At: now, Outcome: outcome})
	r.lessons.see(due.Key, &p.history)
	gap = time.Duration(float64(gap) * r.speed)
	site := r.sites.of(due.Key.Site())
	d := schedule.Decide(schedule.Default, schedule.Item{History: &p.history}, site.budget(&r.budget, gap, r.meter.Price()), now)
	p.tau, p.age, p.even = float32(d.Tau), float32(d.Age), float32(d.EvenAge)
	r.meter.Planned(before, p.decision())
	late := time.Duration(0)
	if again {
		r.outcome[outcome]++
		if due.State != store.StatePending && !due.At.IsZero() {
			late = now.Sub(r.scaled(due.At, r.speed))
		}
		if now.Sub(r.began) >= r.interval { // before, the plans of the few that came first would stand for all
			r.meter.Visited(late, r.interval, r.items)
		}
	}
	site.planned(before, p.decision(), late, gap, r.meter.Price())
	if r.visits++; r.visits >= min(renewEvery, r.items/renewPart+1) {
		r.visits = 0
		r.budget.Price = r.meter.Price()
		r.meter.Guard(&r.budget)
	}
	next.At, next.History = r.scaled(d.At, 1/r.speed), p.encode()
	return next, err
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
	return fmt.Sprintf("%s; looked at again %d times, changed %d", schedule.Explain(&p.history, r.scaled(d.At, r.speed), &budget).Why(), visits, changes), nil
}

// Why says in words why d is due again when it is: the policy's reason, by what it
// knows now. "" when d is not looked at again, or not for its changes. An error
// is of a history that cannot be read.
func (c *Crawler) Why(d store.Due) (string, error) {
	if c.revisits == nil || d.At.IsZero() || len(d.History) == 0 || d.State == store.StatePending {
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

// plan is what is kept with a Key: the last decision, as far as the Meter counts
// it, and the history.
type plan struct {
	tau, age, even float32
	history        schedule.History
}

const planVersion = 1

func (p *plan) encode() []byte {
	b := make([]byte, 1, 64)
	b[0] = planVersion
	for _, f := range [...]float32{p.tau, p.age, p.even} {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(f))
	}
	return p.history.Append(b)
}

// decodePlan reads what encode made, or what another peer says that it did. No
// bytes are the plan of a Key never visited.
func decodePlan(b []byte) (p plan, err error) {
	if len(b) == 0 {
		return p, nil
	}
	if b[0] != planVersion {
		return p, fmt.Errorf("plan of version %d, this program knows %d", b[0], planVersion)
	}
	if b = b[1:]; len(b) < 12 {
		return p, errors.New("half a plan")
	}
	for _, f := range [...]*float32{&p.tau, &p.age, &p.even} {
		*f = math.Float32frombits(binary.BigEndian.Uint32(b))
		if !(*f >= 0 && *f <= maxPlanned) {
			return plan{}, fmt.Errorf("a plan of %g days", *f)
		}
		b = b[4:]
	}
	if err := p.history.Decode(b); err != nil {
		return plan{}, err
	}
	return p, nil
}

// maxPlanned is the longest that a plan may look ahead, in days.
const maxPlanned = 1e6

func (p *plan) decision() schedule.Decision {
	return schedule.Decision{Tau: float64(p.tau), Age: float64(p.age), EvenAge: float64(p.even)}
}

// revisit says when the Key is looked at again. A failure that is tried again
// soon says nothing of it; what was never had is not looked for again.
func (t *task) revisit(res Result) (store.Next, error) {
	had := len(t.due.History) > 0
	var outcome schedule.Outcome
	switch res.Next.State {
	case store.StateDone:
		var err error
		if outcome, err = t.found(res.Record); err != nil {
			return res.Next, err
		}
	case store.StateGone:
		outcome = schedule.Gone
	case store.StateRefused:
		outcome = schedule.Failed
	default:
		return res.Next, nil
	}
	if !had && res.Next.State != store.StateDone {
		return res.Next, nil
	}
	next, err := t.c.revisits.plan(t.due, res.Next, outcome, max(t.c.o.Delay, res.Site.Delay), time.Now())
	if err != nil {
		t.c.o.Logger.Warn("revisits", "err", err)
	}
	t.c.learn()
	return next, nil
}

// found compares what was fetched with the record there is: by the text, but for
// what changes by itself. The error is the store's.
func (t *task) found(now *store.Record) (schedule.Outcome, error) {
	switch {
	case now == nil: // 304
		return schedule.Unchanged, nil
	case now.Redirect != "":
		return schedule.Redirect, nil
	case t.due.Digest == now.Digest:
		return schedule.Unchanged, nil
	}
	before, _, err := t.c.o.Store.Find(t.due.Key)
	if errors.Is(err, store.ErrNotExist) {
		return schedule.Changed, nil
	}
	if err != nil {
		return 0, fmt.Errorf("crawler: %w", err)
	}
	if before.NoIndex || now.NoIndex {
		return schedule.Changed, nil // no text is kept, and the bodies differ
	}
	if change.Compare(visit(&before), visit(now)) == change.Same {
		return schedule.Unchanged, nil
	}
	return schedule.Changed, nil
}

func visit(r *store.Record) change.Seen {
	return change.Seen{Status: http.StatusOK, ETag: r.ETag, Digest: change.Digest(r.Title + "\n" + r.Text)}
}
