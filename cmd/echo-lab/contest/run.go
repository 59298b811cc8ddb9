package contest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
	"github.com/echo-node/echo-node/crawler/schedule"
)

// Options are the options of Run.
type Options struct {
	Policy string  // a policy.Policy, or oracle-rates, oracle-changes
	Budget float64 // visits per living item per 30 days, > 0
	Warm   float64 // share of the run that is not measured, 0 = none, below 1
	// AgePrice is schedule.Budget.AgePrice; 0 = the default.
	AgePrice float64
	Seed     uint64
}

func (o Options) validate() error {
	var faults []error
	if !(o.Budget > 0) {
		faults = append(faults, fmt.Errorf("budget %g", o.Budget))
	}
	if o.Warm < 0 || o.Warm >= 1 {
		faults = append(faults, fmt.Errorf("warm-up %g", o.Warm))
	}
	if !slices.Contains(Names(), o.Policy) && o.Policy != Unlearned {
		faults = append(faults, fmt.Errorf("no policy %q", o.Policy))
	}
	if len(faults) > 0 {
		return fmt.Errorf("contest: run: %w", errors.Join(faults...))
	}
	return nil
}

// The policies that know the truth.
const (
	// each item's true mean rate, then Cho and Garcia-Molina's optimum
	OracleRates   = "oracle-rates"
	OracleChanges = "oracle-changes" // every change as it happens and the one after it
)

// Unlearned is the default policy that always keeps the prior without knowledge. It shows the
// value of learning a model. It is not among Names.
const Unlearned = "default-unlearned"

// Names returns all policies that can compete, the default first.
func Names() []string {
	var names []string
	for _, p := range policy.All() {
		names = append(names, string(p))
	}
	return append(names, OracleRates, OracleChanges)
}

const (
	fitSample = 1000 // histories from which a model is learned
	fitFirst  = 0.5  // mean intervals before the first fit; each later wait is 1.5 times as long
)

// game is one running policy in one world.
type game struct {
	o               Options
	w               *World
	rng             *rand.Rand
	tally           *tally
	due             queue
	items           []policy.Item
	plans           []plan // the part of each item's decision that the meter needs again
	budget          policy.Budget
	meter           *schedule.Meter
	alive           int
	hours           [24]float64 // newest posts seen, by hour
	posts, rhythmAt int
	born            []int32 // things by birth
}

// Run plays one policy through w. It is pure: equal arguments give equal results.
func Run(w *World, o Options) (Result, error) {
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	if w.To <= w.From || len(w.Things) == 0 || w.Page < 1 {
		return Result{}, fmt.Errorf("contest: run: world %q: %d items, %d to %d, page %d", w.Name, len(w.Things),
			w.From, w.To, w.Page)
	}
	since := w.From + int64(o.Warm*float64(w.To-w.From))
	if o.Policy == OracleChanges {
		return seer(w, o, since), nil
	}
	g := newGame(w, o, since)
	g.play()
	return g.tally.result(), nil
}

func newGame(w *World, o Options, since int64) *game {
	g := &game{o: o, w: w, rng: rand.New(rand.NewPCG(o.Seed, 1)), tally: newTally(w, since),
		items: make([]policy.Item, len(w.Things)), plans: make([]plan, len(w.Things))}
	interval := time.Duration(30 / o.Budget * float64(24*time.Hour))
	g.budget = policy.Budget{Budget: schedule.Budget{Interval: interval, Model: schedule.NewModel(),
		AgePrice: o.AgePrice}}
	g.budget.Model.Counted, g.budget.Model.Epoch = w.Counted, w.From
	g.born = make([]int32, len(w.Things))
	for i := range g.born {
		g.born[i] = int32(i)
	}
	g.rng.Shuffle(len(g.born), func(i, j int) { g.born[i], g.born[j] = g.born[j], g.born[i] })
	slices.SortStableFunc(g.born, func(a, b int32) int { return int(w.Things[a].Born - w.Things[b].Born) })
	rule := g.rule()
	if o.Policy == OracleRates {
		rule = policy.Optimal
	}
	g.meter = schedule.NewMeter(g.budget.FairPrice(rule, g.page()))
	g.budget.Price = g.meter.Price()
	return g
}

func (g *game) rule() policy.Policy {
	if g.o.Policy == Unlearned {
		return policy.Default
	}
	return policy.Policy(g.o.Policy)
}

func (g *game) page() int {
	if g.w.Timeline {
		return g.w.Page
	}
	return 0
}

// play gives each slot to the item that is due first.
func (g *game) play() {
	period := 30 * secondsPerDay / g.o.Budget // between two visits of one item
	at := float64(g.w.From) + g.rng.Float64()
	wait := fitFirst
	nextFit := at + wait*period
	slots := 0
	for {
		g.births(int64(at))
		if g.alive == 0 {
			at = float64(g.w.Things[g.born[0]].Born)
			continue
		}
		at += period / float64(g.alive)
		if at >= float64(g.w.To) {
			return
		}
		if at >= nextFit {
			g.fit(int64(at))
			wait = max(1, wait*1.5)
			nextFit = at + wait*period
		}
		if slots++; slots%8 == 0 {
			g.budget.Price = g.meter.Price()
			if g.o.AgePrice == 0 {
				g.meter.Guard(&g.budget.Budget)
			}
		}
		g.slot(int64(at))
	}
}

// births adds the things born by now: a first look, free for every policy.
func (g *game) births(now int64) {
	for len(g.born) > 0 && g.w.Things[g.born[0]].Born <= now {
		i := g.born[0]
		g.born = g.born[1:]
		th := &g.w.Things[i]
		g.alive++
		g.items[i] = policy.Item{Item: schedule.Item{
			History: new(schedule.History), Weight: th.Weight, Page: g.page(), Phase: 1 - g.rng.Float64()},
			Static: th.Static}
		g.items[i].History.Add(schedule.Event{At: clock(th.Born)})
		g.plan(i, th.Born)
	}
}

// slot makes one visit.
func (g *game) slot(now int64) {
	due, i := g.due.pop()
	g.meter.Visited(time.Duration(now-due)*time.Second, g.budget.Interval, g.alive)
	found := g.tally.visit(int(i), now, true)
	if g.w.Timeline {
		g.learn(i, now, found)
	}
	e := schedule.Event{At: clock(now)}
	if found > 0 {
		e.Outcome = schedule.Changed
		if g.w.Timeline {
			e.Posts = min(found, g.w.Page)
			if g.w.Counted {
				e.Posts = found
			}
		}
	}
	g.items[i].History.Add(e)
	g.plan(i, now)
}

// learn learns from a timeline's posts about sittings and hours. It uses the date of the newest
// post seen.
func (g *game) learn(i int32, now int64, found int) {
	h := g.items[i].History
	g.budget.Recency.Learn(h.Silence(), clock(now).Sub(h.Last()).Hours()/24, g.plans[i].rate, found)
	if found > 0 {
		newest := g.w.Things[i].Changes[g.tally.next[i]-1]
		g.hours[schedule.HourOfWeek(clock(newest))%24]++
		g.posts++
	}
	if g.posts >= g.rhythmAt {
		g.rhythmAt = 2*g.posts + 200
		var counts [168]float64
		for h := range counts {
			counts[h] = g.hours[h%24] / 7 // a run is too short to distinguish the days of the week
		}
		if r, err := schedule.NewRhythm(counts, 0); err == nil && g.posts > 0 && g.rule() == policy.Default {
			g.budget.Rhythm = r
		}
	}
}

// plan puts item i back into the queue.
func (g *game) plan(i int32, now int64) {
	if g.o.Policy == OracleRates {
		g.push(i, now, schedule.Decision{Tau: g.trueDue(i)})
		return
	}
	it := &g.items[i]
	old := it.Memo
	d := policy.Decide(g.rule(), *it, &g.budget, clock(now))
	it.Memo = d.Memo
	if g.rule() == policy.Classes {
		if old.Priority > 0 {
			g.budget.Sizes[policy.EchoClass(old)]--
		}
		g.budget.Sizes[policy.EchoClass(d.Memo)]++
	}
	g.push(i, now, d.Decision)
}

func (g *game) push(i int32, now int64, d schedule.Decision) {
	old := &g.plans[i]
	g.meter.Planned(schedule.Decision{Tau: old.tau, Age: old.age, EvenAge: old.even}, d)
	*old = plan{d.Tau, d.Age, d.EvenAge, d.Rate}
	at := now + int64(d.Tau*secondsPerDay)
	if !d.At.IsZero() {
		at = d.At.Unix()
	}
	g.due.push(at, i)
}

type plan struct{ tau, age, even, rate float64 }

// fit learns the model from what was seen so far.
func (g *game) fit(now int64) {
	switch g.o.Policy {
	case string(policy.Default), string(policy.Important):
	default:
		return
	}
	var sample []*schedule.History
	for _, i := range g.rng.Perm(len(g.items)) {
		if h := g.items[i].History; h != nil && len(sample) < fitSample {
			if v, _ := h.Totals(); v > 0 {
				sample = append(sample, h)
			}
		}
	}
	g.budget.Model = g.budget.Model.Fit(sample)
}

// trueDue returns Cho and Garcia-Molina's optimum with the true rate, in days.
func (g *game) trueDue(i int32) float64 {
	th := &g.w.Things[i]
	rate := max(1e-5, float64(len(th.Changes))/(float64(g.w.To-th.Born)/secondsPerDay))
	return policy.KnownRate(rate, g.budget.Price)
}
