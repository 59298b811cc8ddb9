package community

import (
	"cmp"
	"math"
	"slices"
)

// Ask is data that would help to decide an undecided account.
type Ask struct {
	What string `json:"what"` // texts, neighbours
	// Value is the probability that the data decides the account, divided by the number of calls it
	// takes.
	Value float64 `json:"value"`
}

// The data that can be requested.
const (
	AskTexts      = "texts"      // more texts of the account
	AskNeighbours = "neighbours" // the accounts it follows, its followers, and their verdicts
)

// source is what one kind of data is expected to show: evidence of lean nats for members and
// against others, with the standard deviation spread. It takes so many calls.
type source struct {
	what         string
	lean, spread float64
	calls        float64
}

// enoughNeighbours is the number of judged neighbours after which more add little.
const enoughNeighbours = 20

// asks lists the missing data of an account whose evidence so far is sum, the best first.
func asks(sum float64, texts []string, e Edges) []Ask {
	var out []Ask
	// The more data is there already, the less more of it shows.
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

// decides returns the probability that a source moves sum past a limit. The limit is In for both
// sides. The evidence of the source is normally distributed around its lean.
func decides(sum float64, s source) float64 {
	p := 1 / (1 + math.Exp(-sum))
	bound := math.Log(In / (1 - In))
	above := func(mean float64) float64 { return math.Erfc((bound-mean)/(s.spread*math.Sqrt2)) / 2 }
	below := func(mean float64) float64 { return math.Erfc((mean+bound)/(s.spread*math.Sqrt2)) / 2 }
	lean := s.lean * temper
	return p*(above(sum+lean)+below(sum+lean)) + (1-p)*(above(sum-lean)+below(sum-lean))
}

// Wish is the Ask of one account.
type Wish struct {
	ID string `json:"id"`
	Ask
}

// Order returns the Asks of all undecided accounts in the order in which a budget of calls decides
// the most accounts. For equal values the smaller id comes first.
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
