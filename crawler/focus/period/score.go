package period

import (
	"container/heap"
	"math"
	"strings"
)

// Priority is the paper's order of links: floor(100 / (count + 1)), 0 first and
// 100 last. count is how often valid segments have held the link so far. A
// frontier has to ask again whenever the count rises (Queue.Put does), or the
// order is frozen at first sight.
func Priority(count int) int { return 100 / (max(count, 0) + 1) }

// LinkEvidence is what is known of a link not yet followed. Evidence from several
// places is united by Merge.
type LinkEvidence struct {
	Valid   int     // times seen in valid segments (Scope.Valid)
	Seen    int     // times seen at all
	Share   float64 // share of the segment's dates in scope; the mean
	Near    float64 // 1 for a segment with a date in scope, less with the distance, 0 undated; the mean
	Name    float64 // 1 if anchor or URL have a date in scope, -1 if only others, 0 none
	Parent  float64 // share of the page's segments in scope; the mean
	Steps   int     // pages not in scope on the way here since the last in scope; the fewest seen
	Inherit bool    // the dates come from a heading
}

// yearDays and nearYears make days a closeness: a date nearYears away is half as close.
const (
	yearDays  = 365.2425
	nearYears = 10
)

// NewLinkEvidence is the evidence for a link in segment g of a page on which the share
// parent of the segments is in scope, steps pages after the last in scope (0 on
// a page that is itself in scope).
func NewLinkEvidence(scope Scope, g Segment, l Link, parent float64, steps int) LinkEvidence {
	e := LinkEvidence{Seen: 1, Parent: parent, Steps: steps, Inherit: g.Inherited}
	if scope.Valid(g.Dates, PaperShare) {
		e.Valid = 1
	}
	e.Share, _ = scope.Share(g.Dates)
	for _, d := range g.Dates {
		gap := float64(scope.Distance(d)) / yearDays
		e.Near = max(e.Near, nearYears/(nearYears+gap))
	}
	e.Name = nameEvidence(scope, l)
	return e
}

// nameEvidence looks for years in anchor and key.
func nameEvidence(scope Scope, l Link) float64 {
	out := 0.0
	words := func(r rune) bool { return r == '_' || r == '/' || r == '-' || r == '+' || r == '%' }
	for _, text := range [...]string{l.Anchor, strings.Join(strings.FieldsFunc(l.Key, words), " ")} {
		for _, d := range Dated((&resolver{}).tag(text)) {
			if scope.Overlaps(d) {
				return 1
			}
			out = -1
		}
	}
	return out
}

// Merge unites the evidence from two places.
func (e LinkEvidence) Merge(f LinkEvidence) LinkEvidence {
	a, b := float64(max(e.Seen, 1)), float64(max(f.Seen, 1))
	mean := func(x, y float64) float64 { return (a*x + b*y) / (a + b) }
	out := LinkEvidence{
		Valid: e.Valid + f.Valid, Seen: e.Seen + f.Seen,
		Share: mean(e.Share, f.Share), Near: mean(e.Near, f.Near), Name: max(e.Name, f.Name),
		Parent: mean(e.Parent, f.Parent), Steps: min(e.Steps, f.Steps), Inherit: e.Inherit && f.Inherit,
	}
	if e.Name*f.Name == 0 { // an anchor without a date does not outdo one with
		out.Name = e.Name + f.Name
	}
	return out
}

// traits is the number of a link's numbers that a Scorer weighs.
const traits = 9

func (e LinkEvidence) traits() [traits]float64 {
	inherit := 0.0
	if e.Inherit {
		inherit = 1
	}
	// Of a link seen once little is known: shares count in full only when it was
	// seen often.
	sure := float64(e.Seen) / float64(e.Seen+doubt)
	return [traits]float64{
		1,
		math.Log2(1 + float64(e.Valid)),
		sure * float64(e.Valid) / float64(max(e.Seen, 1)),
		sure * e.Share,
		sure * e.Near,
		max(e.Name, 0),
		max(-e.Name, 0),
		e.Parent,
		inherit,
	}
}

// doubt is how many times a link must be seen to be half sure of its shares.
const doubt = 2

// prior is what the traits are worth before anything was learned.
var prior = [traits]float64{-3.5, 1.3, 1.0, 1.0, 1.0, 2.0, -1.0, 0.5, -0.2}

// ScorerOptions set how a Scorer learns and how far it goes astray.
type ScorerOptions struct {
	// MaxSteps is how many pages out of scope in a row are passed through in the
	// hope of what lies behind; 0 means 2, negative none (the paper).
	MaxSteps int
	// Rate is the step of learning; 0 means 0.1.
	Rate float64
}

// Scorer guesses how likely a link leads to a page in scope: a logistic
// regression over the evidence that learns from every page that came. Without
// learning it stays with its prior. Not safe for concurrent use.
type Scorer struct {
	opts    ScorerOptions
	weights [traits]float64
}

// NewScorer is a Scorer that has learned nothing.
func NewScorer(opts ScorerOptions) *Scorer {
	switch {
	case opts.MaxSteps == 0:
		opts.MaxSteps = 2
	case opts.MaxSteps < 0:
		opts.MaxSteps = 0
	}
	if opts.Rate <= 0 {
		opts.Rate = 0.1
	}
	return &Scorer{opts: opts, weights: prior}
}

// stray is how much less each step through pages out of scope lets a link hope for.
const stray = 0.5

// Score is the chance, 0 to 1, that the link leads to a page in scope. What was
// learned since may have changed it: who takes the best from a queue asks again
// (Best does).
func (s *Scorer) Score(e LinkEvidence) float64 {
	return s.chance(e) * math.Pow(stray, float64(e.Steps))
}

func (s *Scorer) chance(e LinkEvidence) float64 {
	sum := 0.0
	for i, x := range e.traits() {
		sum += s.weights[i] * x
	}
	return 1 / (1 + math.Exp(-sum))
}

// Follow says whether the link may be followed at all: not further than MaxSteps
// through pages out of scope. Among those that may, Score orders; so undated
// pages are tried when nothing better is left.
func (s *Scorer) Follow(e LinkEvidence) bool { return e.Steps <= s.opts.MaxSteps }

// Best takes the key of the highest score from q by what is known now: score
// gives each key's present score. A key that has fallen goes back to where it
// belongs, so that a queue need not be sorted again whenever the Scorer learns.
func Best(q *Queue, score func(key string) float64) (key string, ok bool) {
	for {
		key, before, ok := q.Pop()
		if !ok {
			return "", false
		}
		now := score(key)
		if now >= before-fallen || q.Len() == 0 || now >= q.items[0].score {
			return key, true
		}
		q.Put(key, now)
	}
}

// fallen is how much lower a score may have become to count as the same.
const fallen = 1e-3

// pull is how strongly weights are drawn back to the prior at each step.
const pull = 0.01

// Learn adjusts to a page that came: e is the evidence by which its link was
// chosen, relevant what it turned out to be.
func (s *Scorer) Learn(e LinkEvidence, relevant bool) {
	want := 0.0
	if relevant {
		want = 1
	}
	slope := s.opts.Rate * (want - s.chance(e))
	for i, x := range e.traits() {
		// The links chosen are no sample of all links: what is learned of them
		// may not lead too far from the prior.
		s.weights[i] += slope*x - s.opts.Rate*pull*(s.weights[i]-prior[i])
	}
}

// Queue is an order of links that can be asked again: the highest score first, of
// equal ones the earliest. It makes no difference how often a link was put.
type Queue struct {
	items queueItems
	at    map[string]*queued
	next  int
}

type queued struct {
	key   string
	score float64
	born  int // order of arrival
	index int
}

// NewQueue makes an empty Queue.
func NewQueue() *Queue { return &Queue{at: make(map[string]*queued)} }

// Put adds key, or moves it to where its new score belongs.
func (q *Queue) Put(key string, score float64) {
	if item := q.at[key]; item != nil {
		item.score = score
		heap.Fix(&q.items, item.index)
		return
	}
	item := &queued{key: key, score: score, born: q.next}
	q.next++
	q.at[key] = item
	heap.Push(&q.items, item)
}

// Pop takes the best key; ok is false when there is none.
func (q *Queue) Pop() (key string, score float64, ok bool) {
	if len(q.items) == 0 {
		return "", 0, false
	}
	item := heap.Pop(&q.items).(*queued)
	delete(q.at, item.key)
	return item.key, item.score, true
}

// Len is how many keys wait.
func (q *Queue) Len() int { return len(q.items) }

type queueItems []*queued

func (q queueItems) Len() int { return len(q) }

func (q queueItems) Less(i, j int) bool {
	if q[i].score != q[j].score {
		return q[i].score > q[j].score
	}
	return q[i].born < q[j].born
}

func (q queueItems) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push and Pop are for container/heap.
func (q *queueItems) Push(x any) {
	item := x.(*queued)
	item.index = len(*q)
	*q = append(*q, item)
}

// Pop is for container/heap.
func (q *queueItems) Pop() any {
	old := *q
	item := old[len(old)-1]
	*q = old[:len(old)-1]
	return item
}
