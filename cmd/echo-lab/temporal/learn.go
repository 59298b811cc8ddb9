package temporal

import "github.com/echo-node/echo-node/crawler/judge/promise"

// learner is a promise.Scorer that learns from every fetched page. It also says how far a crawl
// goes through pages out of scope. Without learning it scores like the Scorer.
type learner struct {
	promise.Scorer
	prior    promise.Scorer
	maxSteps int // largest number of consecutive pages out of scope that a crawl passes through
}

// learnSteps is maxSteps of a crawl.
const learnSteps = 2

func newLearner(maxSteps int) *learner {
	return &learner{promise.NewScorer(), promise.NewScorer(), maxSteps}
}

// follow reports whether the link may be followed at all. The score orders the links that may
// be followed. So undated pages are tried when nothing better is left.
func (l *learner) follow(e promise.LinkEvidence) bool { return e.Steps <= l.maxSteps }

// rate is the step of learning. pull is how strongly each step moves the weights back to the
// prior.
const (
	rate = 0.1
	pull = 0.01
)

// learn learns from a fetched page. e is the evidence by which its link was chosen; relevant
// says what the page turned out to be.
func (l *learner) learn(e promise.LinkEvidence, relevant bool) {
	want := 0.0
	if relevant {
		want = 1
	}
	near := e
	near.Steps = 0 // the page's content does not depend on the way to it
	slope := rate * (want - l.Score(near))
	for i, x := range e.Traits() {
		// The chosen links are no random sample of all links, so the weights must stay near the
		// prior.
		l.Weights[i] += slope*x - rate*pull*(l.Weights[i]-l.prior.Weights[i])
	}
}
