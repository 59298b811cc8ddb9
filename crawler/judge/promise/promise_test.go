package promise

import (
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

func mustScope(t *testing.T, text string) period.Scope {
	t.Helper()
	scope, err := period.ParseScope(text)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// yearSpan returns the days of year y.
func yearSpan(y int) period.Span {
	return period.Span{Start: period.NewDay(y, 1, 1), End: period.NewDay(y, 12, 31)}
}

func TestLinkEvidence(t *testing.T) {
	war := mustScope(t, "1939..1945")
	in := period.Segment{Dates: []period.Span{yearSpan(1940)}}
	near := period.Segment{Dates: []period.Span{yearSpan(1950)}}
	far := period.Segment{Dates: []period.Span{yearSpan(1800)}}
	none := period.Segment{}
	s := NewScorer()
	score := func(g period.Segment, l period.Link, steps int) float64 {
		return s.Score(NewLinkEvidence(war, g, l, 0.5, steps))
	}
	plain := period.Link{Key: "http://x/a", Anchor: "a batalha"}
	named := period.Link{Key: "http://x/a", Anchor: "a batalha de 1941"}
	address := period.Link{Key: "https://pt.wikipedia.org/wiki/Batalha_de_1941", Anchor: "a batalha"}
	other := period.Link{Key: "http://x/a", Anchor: "a batalha de 1815"}
	order := []float64{score(in, named, 0), score(in, plain, 0), score(near, plain, 0), score(far, plain, 0),
		score(none, plain, 0), score(none, plain, 1), score(none, other, 1)}
	for i := range order[1:] {
		if order[i] <= order[i+1] {
			t.Errorf("score %d is %v, not above %v", i, order[i], order[i+1])
		}
	}
	if score(in, address, 0) != score(in, named, 0) {
		t.Error("a year in the address counts like one in the anchor")
	}
	e := NewLinkEvidence(war, in, plain, 0.5, 0)
	if more := e.Merge(e); s.Score(more) <= s.Score(e) || more.Valid != 2 {
		t.Error("seen twice is not better than once")
	}
	one, two := NewLinkEvidence(war, none, plain, 0.5, 0), NewLinkEvidence(war, none, plain, 0.5, 1)
	if s.Score(two) >= s.Score(one) {
		t.Error("a step further must hope for less")
	}
}

// A link in two segments has the evidence of both. A link in no segment is scored by its name only.
func TestPromises(t *testing.T) {
	war := mustScope(t, "1939..1945")
	link := func(key, anchor string) period.Link { return period.Link{Key: key, Anchor: anchor} }
	segments := []period.Segment{
		{Dates: []period.Span{yearSpan(1940)}, Links: []period.Link{link("both", "a batalha"), link("in", "o cerco")}},
		{Dates: []period.Span{yearSpan(1800)}, Links: []period.Link{link("both", "a batalha"), link("out", "a feira")}},
	}
	got := Promises(war, segments, []period.Link{link("in", "o cerco"), link("alone", "o mapa"),
		link("named", "o mapa de 1941")})
	s := NewScorer()
	in := NewLinkEvidence(war, segments[0], link("in", "o cerco"), 0.5, 0)
	both := NewLinkEvidence(war, segments[0], link("both", "a batalha"), 0.5, 0).
		Merge(NewLinkEvidence(war, segments[1], link("both", "a batalha"), 0.5, 0))
	if len(got) != 5 || got["in"] != s.Score(in) || got["both"] != s.Score(both) {
		t.Errorf("promises %v", got)
	}
	if !(got["in"] > got["both"] && got["both"] > got["out"] && got["out"] > got["alone"] &&
		got["named"] > got["alone"]) {
		t.Errorf("promises %v are in another order", got)
	}
	if lost := Promises(war, segments[1:], nil); lost["out"] >= got["out"]/2 {
		t.Errorf("on a page out of scope %v, on another %v", lost["out"], got["out"])
	}
}
