package temporal

import "github.com/echo-node/echo-node/crawler/focus/period"

// learner is period.Scorer that learns from every page that came, and that says how far
// a crawl goes through pages out of scope. Without learning it scores as the Scorer does.
type learner struct {
	period.Scorer
	prior    period.Scorer
	maxSteps int // pages out of scope in a row that are passed through in the hope of what lies behind
}

// learnSteps is maxSteps of a crawl.
const learnSteps = 2

func newLearner(maxSteps int) *learner {
	return &learner{period.NewScorer(), period.NewScorer(), maxSteps}
}

// follow says whether the link may be followed at all. Among those that may, the score
// orders; so undated pages are tried when nothing better is left.
func (l *learner) follow(e period.LinkEvidence) bool { return e.Steps <= l.maxSteps }

// rate is the step of learning, pull how strongly weights are drawn back to the prior at
// each step.
const (
	rate = 0.1
	pull = 0.01
)

// learn adjusts to a page that came: e is the evidence by which its link was
// chosen, relevant what it turned out to be.
func (l *learner) learn(e period.LinkEvidence, relevant bool) {
	want := 0.0
	if relevant {
		want = 1
	}
	near := e
	near.Steps = 0 // what the page is does not depend on the way there
	slope := rate * (want - l.Score(near))
	for i, x := range e.Traits() {
		// The links chosen are no sample of all links: what is learned of them
		// may not lead too far from the prior.
		l.Weights[i] += slope*x - rate*pull*(l.Weights[i]-l.prior.Weights[i])
	}
}
