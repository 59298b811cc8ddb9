package community

import (
	"cmp"
	"math"
	"slices"
)

// Ask is something that would tell more of an undecided account.
type Ask struct {
	What string `json:"what"` // texts, neighbours
	// Value is how likely the account is decided by it, for each call that it takes.
	Value float64 `json:"value"`
}

// What can be asked for.
const (
	AskTexts      = "texts"      // more of what the account wrote
	AskNeighbours = "neighbours" // whom it follows and who follows it, and their verdicts
)

// source is what a kind of data is expected to tell: evidence of lean nats for
// members and against others, give or take spread, with so many calls.
type source struct {
	what         string
	lean, spread float64
	calls        float64
}

// enoughNeighbours is from how many judged neighbours on more tell little.
const enoughNeighbours = 20

// asks lists what is missing of an account whose evidence so far is sum, the best first.
func asks(sum float64, texts []string, e Edges) []Ask {
	var out []Ask
	// What is there already makes more of it tell less.
	have := float64(len(texts)) / (float64(len(texts)) + fewTexts)
	known := 0
	for _, c := range []Counts{e.Follows, e.Followers, e.Mentions, e.MentionedBy} {
		known += max(c.In, 0) + max(c.Out, 0)
	}
	near := float64(min(known, enoughNeighbours)) / enoughNeighbours
	for _, s := range []source{
		{AskTexts, 4 * (1 - have), 2, 1},
		{AskNeighbours, 3 * (1 - near), 1.5, 2},
	} {
		if s.lean < 0.2 {
			continue
		}
		out = append(out, Ask{s.what, round(decides(sum, s) / s.calls)})
	}
	slices.SortStableFunc(out, func(a, b Ask) int { return cmp.Compare(b.Value, a.Value) })
	return out
}

// decides is how likely a source takes sum past In or Out, if what it says is
// spread normally around its lean.
func decides(sum float64, s source) float64 {
	p := 1 / (1 + math.Exp(-sum))
	bound := math.Log(In / (1 - In))
	above := func(mean float64) float64 { return math.Erfc((bound-mean)/(s.spread*math.Sqrt2)) / 2 }
	below := func(mean float64) float64 { return math.Erfc((mean+bound)/(s.spread*math.Sqrt2)) / 2 }
	lean := s.lean * temper
	return p*(above(sum+lean)+below(sum+lean)) + (1-p)*(above(sum-lean)+below(sum-lean))
}

// Wish is one question of many accounts.
type Wish struct {
	ID string `json:"id"`
	Ask
}

// Order puts the questions about undecided accounts in the order in which a
// budget of calls decides the most accounts; of equal ones the smaller id first.
func Order(verdicts map[string]Verdict) []Wish {
	var out []Wish
	for id, v := range verdicts {
		for _, a := range v.Ask {
			out = append(out, Wish{id, a})
		}
	}
	slices.SortFunc(out, func(a, b Wish) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.ID, b.ID), cmp.Compare(a.What, b.What))
	})
	return out
}
