package temporal

import (
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/crawler/judge/promise"
)

// An island that is reachable only through one undated page is reached if steps through pages
// out of scope are allowed.
func TestTunnel(t *testing.T) {
	war, err := period.ParseScope("1939..1945")
	if err != nil {
		t.Fatal(err)
	}
	// seed (in scope) -> hub (undated) -> island (in scope)
	for steps, want := range map[int]bool{learnSteps: true, 0: false} {
		s := newLearner(steps)
		hub := promise.NewLinkEvidence(war, period.Segment{}, period.Link{Key: "hub"}, 0.5, 0)
		island := promise.NewLinkEvidence(war, period.Segment{}, period.Link{Key: "island"}, 0, 1)
		if !s.follow(hub) || s.follow(island) != want {
			t.Errorf("%d steps: island followed is %v", steps, s.follow(island))
		}
		if s.Score(island) >= s.Score(hub) {
			t.Error("a step further must hope for less")
		}
	}
}

func TestLearn(t *testing.T) {
	s := newLearner(learnSteps)
	good := promise.LinkEvidence{Seen: 1, Inherit: true}
	bad := promise.LinkEvidence{Seen: 1, Valid: 1, Share: 1, Near: 1}
	for range 300 {
		s.learn(good, true)
		s.learn(bad, false)
	}
	if s.Score(good) < 0.8 || s.Score(bad) > 0.2 {
		t.Errorf("learned %v and %v", s.Score(good), s.Score(bad))
	}
}
