package communitytest

import (
	"math"

	"github.com/echo-node/echo-node/crawler/judge/community"
)

// Result compares verdicts with the truth.
type Result struct {
	People    int            `json:"people"`
	In        int            `json:"in"` // accounts judged in
	InRight   int            `json:"in_right"`
	Out       int            `json:"out"`
	OutRight  int            `json:"out_right"`
	Undecided int            `json:"undecided"`
	Calls     int            `json:"calls"`   // calls for texts and neighbours
	Wrong     map[string]int `json:"wrong"`   // by class
	Missing   map[string]int `json:"missing"` // members and others left undecided, by class
}

// Precision returns the share of each verdict that is right, and the share undecided.
func (r Result) Precision() (in, out, undecided float64) {
	return float64(r.InRight) / float64(max(r.In, 1)), float64(r.OutRight) / float64(max(r.Out, 1)),
		float64(r.Undecided) / float64(max(r.People, 1))
}

func (r *Result) count(p Person, verdict string) {
	r.People++
	switch verdict {
	case community.IsIn:
		r.In++
		if p.Member {
			r.InRight++
		} else {
			r.Wrong[p.Class]++
		}
	case community.IsOut:
		r.Out++
		if !p.Member {
			r.OutRight++
		} else {
			r.Wrong[p.Class]++
		}
	default:
		r.Undecided++
		r.Missing[p.Class]++
	}
}

// PerCall is the number of texts that one call fetches.
const PerCall = 20

// maxRounds is the number of rounds in which more data of the undecided is fetched.
const maxRounds = 8

// known is what the crawl has fetched of a person.
type known struct {
	texts int
	edges bool
}

// Grow crawls w as a focused crawl would. It judges everybody by the profile. Then it fetches what
// the undecided need, the best first, until nothing is left to fetch. It returns the final verdicts
// by profile id.
func Grow(j *community.Judge, w *World) (Result, map[string]community.Verdict) {
	r := Result{Wrong: map[string]int{}, Missing: map[string]int{}}
	have := make([]known, len(w.People))
	verdicts := make(map[string]community.Verdict, len(w.People))
	index := make(map[string]int, len(w.People))
	judge := func(i int) {
		p := &w.People[i]
		verdicts[p.Profile.ID] = j.Judge(p.Profile, p.Texts[:have[i].texts], w.edges(i, have[i].edges, verdicts))
	}
	for i := range w.People {
		index[w.People[i].Profile.ID] = i
		judge(i)
	}
	for range maxRounds {
		asked := 0
		for _, wish := range community.Order(verdicts) {
			i := index[wish.ID]
			k, p := &have[i], &w.People[i]
			switch {
			case wish.What == community.AskTexts && k.texts < len(p.Texts):
				k.texts = min(k.texts+PerCall, len(p.Texts))
				asked, r.Calls = asked+1, r.Calls+1
			case wish.What == community.AskNeighbours && !k.edges:
				k.edges = true
				asked, r.Calls = asked+1, r.Calls+2
			}
		}
		for i := range w.People {
			if verdicts[w.People[i].Profile.ID].Verdict == community.IsUndecided {
				judge(i)
			}
		}
		if asked == 0 {
			break
		}
	}
	for i := range w.People {
		r.count(w.People[i], verdicts[w.People[i].Profile.ID].Verdict)
	}
	return r, verdicts
}

// edges counts the neighbours of person i by their verdicts.
func (w *World) edges(i int, fetched bool, verdicts map[string]community.Verdict) community.Edges {
	var e community.Edges
	if !fetched {
		return e
	}
	count := func(list []int) (c community.Counts) {
		for _, n := range list {
			switch verdicts[w.People[n].Profile.ID].Verdict {
			case community.IsIn:
				c.In++
			case community.IsOut:
				c.Out++
			}
		}
		return c
	}
	e.Follows, e.Followers, e.Mentions = count(w.People[i].Follows), count(w.People[i].Followers),
		count(w.People[i].Mentions)
	return e
}

// Calibration returns the mean difference between the scores of verdicts and the shares that
// belong, over ten classes of score, and both values for each class.
func Calibration(w *World, verdicts map[string]community.Verdict) (mean float64, classes [10][2]float64) {
	var n [10]float64
	for _, p := range w.People {
		s := verdicts[p.Profile.ID].Score
		c := min(int(s*10), 9)
		n[c]++
		classes[c][0] += s
		if p.Member {
			classes[c][1]++
		}
	}
	for c := range n {
		if n[c] == 0 {
			continue
		}
		classes[c][0] /= n[c]
		classes[c][1] /= n[c]
		mean += n[c] / float64(len(w.People)) * math.Abs(classes[c][0]-classes[c][1])
	}
	return mean, classes
}
