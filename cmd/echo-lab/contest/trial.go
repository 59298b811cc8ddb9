package contest

import (
	"fmt"
	"math/rand/v2"

	"github.com/echo-node/echo-node/cmd/echo-lab/classify"
)

// Trial is a replay of the dissertation's live trial: what each side's visits found, by day.
type Trial struct {
	Visits, Hits []int // by day
	// Accuracy is the share of items in their true class at the end.
	Accuracy float64
}

// ChangeRate returns the share of all visits that found a change.
func (t Trial) ChangeRate() float64 {
	visits, hits := 0, 0
	for d := range t.Visits {
		visits, hits = visits+t.Visits[d], hits+t.Hits[d]
	}
	return ratio(float64(hits), float64(visits))
}

// Day returns the change rate of one day.
func (t Trial) Day(d int) float64 { return ratio(float64(t.Hits[d]), float64(t.Visits[d])) }

// The dissertation's volumes and lengths: 300,000 pages and 90,000 visits a day under the
// uniform policy, for 15 days. The proposal runs for 12 days with the visits that its own
// periods require, and does not visit group 3.
const (
	trialShare    = 0.3
	trialUniform  = 15
	trialProposal = 12
)

// PaperTrial replays the live trial on w, whose items have the static classifier's classes. It
// is the dissertation's own set-up, not a fair one: the sides differ in visits, in days, and in
// what they omit.
func PaperTrial(w *World, seed uint64) (uniform, proposal Trial) {
	return uniformTrial(w, seed), proposalTrial(w, seed)
}

// look reports whether item i changed after its last visit, and records a visit at now.
func look(w *World, last []int64, i int, now int64) bool {
	from := last[i]
	last[i] = now
	for _, c := range w.Things[i].Changes {
		if c > from {
			return c <= now
		}
	}
	return false
}

func starts(w *World) []int64 {
	last := make([]int64, len(w.Things))
	for i := range last {
		last[i] = w.From
	}
	return last
}

func uniformTrial(w *World, seed uint64) Trial {
	order := rand.New(rand.NewPCG(seed, 31)).Perm(len(w.Things))
	t := Trial{Visits: make([]int, trialUniform), Hits: make([]int, trialUniform)}
	last := starts(w)
	next := 0
	for d := range trialUniform {
		for range int(trialShare * float64(len(order))) {
			i := order[next%len(order)]
			next++
			t.Visits[d]++
			if look(w, last, i, w.From+int64(d+1)*secondsPerDay) {
				t.Hits[d]++
			}
		}
	}
	return t
}

// proposalTrial replays the proposal's side: each item is visited by the period of its class,
// and the heuristic moves it between classes.
func proposalTrial(w *World, seed uint64) Trial {
	rng := rand.New(rand.NewPCG(seed, 37))
	h := classify.ThesisHeuristic()
	t := Trial{Visits: make([]int, trialProposal), Hits: make([]int, trialProposal)}
	last := starts(w)
	state := make([]classify.Window, len(w.Things))
	due := make([]int, len(w.Things))
	for i := range state {
		state[i].Class = w.Things[i].Static
		due[i] = rng.IntN(int(h.Period[state[i].Class])) // a group is spread over its period
	}
	for d := range trialProposal {
		for i := range state {
			if state[i].Class == 3 || due[i] > d {
				continue
			}
			found := look(w, last, i, w.From+int64(d+1)*secondsPerDay)
			t.Visits[d]++
			if found {
				t.Hits[d]++
			}
			state[i] = h.Step(state[i], found)
			due[i] = d + int(h.Period[state[i].Class])
		}
	}
	right := 0
	for i := range state {
		if state[i].Class == w.Things[i].Class {
			right++
		}
	}
	t.Accuracy = ratio(float64(right), float64(len(state)))
	return t
}

// Combination is one initial classifier followed by one history classifier (table 4.4 of the
// dissertation), with the share of items in their true class by day.
type Combination struct {
	Name     string
	Accuracy []float64 // by day, from day 0, which has only the initial classifier
}

// Combinations replays the dissertation's simulation on w: each item is visited by the period
// of its present class, with random and static starts, Bayes and the heuristic.
func Combinations(w *World, days int, seed uint64) []Combination {
	bayes := classify.Composite{Bayes: classify.Bayes{Period: classify.ThesisHeuristic().Period}}
	heuristic := classify.Composite{Heuristic: classify.ThesisHeuristic()}
	var out []Combination
	for _, c := range []struct {
		name   string
		with   classify.Composite
		random bool
	}{{"random+bayes", bayes, true}, {"random+heuristic", heuristic, true}, {"tree+bayes", bayes, false},
		{"tree+heuristic", heuristic, false}} {
		out = append(out, Combination{c.name, combine(w, c.with, c.random, days, seed)})
	}
	return out
}

func combine(w *World, with classify.Composite, random bool, days int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 41))
	pages := make([]classify.Page, len(w.Things))
	last, next := starts(w), make([]int, len(w.Things))
	for i := range pages {
		class := w.Things[i].Static
		if random {
			class = rng.IntN(4)
		}
		with.Initial = func(classify.Vector) int { return class }
		pages[i] = with.First(classify.Vector{})
		next[i] = int(with.Period(pages[i]))
	}
	var accuracy []float64
	for d := 0; d <= days; d++ {
		right := 0
		for i := range pages {
			if d > 0 && next[i] <= d {
				now := w.From + int64(d)*secondsPerDay
				gap := float64(now-last[i]) / secondsPerDay
				pages[i] = with.Visit(pages[i], gap, look(w, last, i, now))
				next[i] = d + int(with.Period(pages[i]))
			}
			if with.Class(pages[i]) == w.Things[i].Class {
				right++
			}
		}
		accuracy = append(accuracy, ratio(float64(right), float64(len(pages))))
	}
	return accuracy
}

// MajorityShare returns the accuracy of always answering the most common class.
func MajorityShare(w *World) float64 {
	var counts [4]int
	most := 0
	for i := range w.Things {
		counts[w.Things[i].Class]++
		most = max(most, counts[w.Things[i].Class])
	}
	return ratio(float64(most), float64(len(w.Things)))
}

// String returns the curve at every tenth day.
func (c Combination) String() string {
	s := c.Name + ":"
	for d := 0; d < len(c.Accuracy); d += 10 {
		s += fmt.Sprintf(" %.3f", c.Accuracy[d])
	}
	return s
}
