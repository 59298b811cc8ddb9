// Package promise estimates how likely a link leads to a page about a wanted time, from the times
// that stand around the link. The estimate orders links; it leaves none out.
package promise

import (
	"math"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// LinkEvidence is what is known about a link that was not followed yet. Merge combines evidence
// from several places.
type LinkEvidence struct {
	Valid   int     // number of valid segments with the link (period.Scope.Valid)
	Seen    int     // number of all places with the link
	Share   float64 // mean share of the segment's dates in scope
	Near    float64 // mean closeness: 1 with a date in scope, less with distance, 0 undated
	Name    float64 // 1 if anchor or URL have a date in scope, -1 if only others, 0 without
	Parent  float64 // mean share of the page's segments in scope
	Steps   int     // least number of pages out of scope since the last one in scope
	Inherit bool    // the dates come from a heading
}

// yearDays and nearYears convert days to closeness: a date nearYears away has half the closeness.
const (
	yearDays  = 365.2425
	nearYears = 10
)

// NewLinkEvidence returns the evidence for a link in segment g of a page. parent is the share of
// the page's segments in scope. steps is the number of pages since the last one in scope (0 on a
// page that is in scope itself).
func NewLinkEvidence(scope period.Scope, g period.Segment, l period.Link, parent float64, steps int) LinkEvidence {
	e := LinkEvidence{Seen: 1, Parent: parent, Steps: steps, Inherit: g.Inherited}
	if scope.Valid(g.Dates, period.PaperShare) {
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

// nameEvidence looks for dates in the anchor and the key.
func nameEvidence(scope period.Scope, l period.Link) float64 {
	out := 0.0
	words := func(r rune) bool { return r == '_' || r == '/' || r == '-' || r == '+' || r == '%' }
	for _, text := range [...]string{l.Anchor, strings.Join(strings.FieldsFunc(l.Key, words), " ")} {
		for _, d := range period.Dated(period.Tag(text, time.Time{})) {
			if scope.Overlaps(d) {
				return 1
			}
			out = -1
		}
	}
	return out
}

// Merge combines the evidence from two places.
func (e LinkEvidence) Merge(f LinkEvidence) LinkEvidence {
	a, b := float64(max(e.Seen, 1)), float64(max(f.Seen, 1))
	mean := func(x, y float64) float64 { return (a*x + b*y) / (a + b) }
	out := LinkEvidence{
		Valid: e.Valid + f.Valid, Seen: e.Seen + f.Seen,
		Share: mean(e.Share, f.Share), Near: mean(e.Near, f.Near), Name: max(e.Name, f.Name),
		Parent: mean(e.Parent, f.Parent), Steps: min(e.Steps, f.Steps), Inherit: e.Inherit && f.Inherit,
	}
	if e.Name*f.Name == 0 { // an anchor without a date does not win over one with
		out.Name = e.Name + f.Name
	}
	return out
}

// traits is the number of a link's features that a Scorer weighs.
const traits = 9

// Traits returns the features that a Scorer weighs.
func (e LinkEvidence) Traits() [traits]float64 {
	inherit := 0.0
	if e.Inherit {
		inherit = 1
	}
	// A link that was seen once is uncertain: shares count in full only when it was seen often.
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

// doubt is the number of times a link must be seen before its shares count half.
const doubt = 2

// prior is the default weight of each feature.
var prior = [traits]float64{-3.5, 1.3, 1.0, 1.0, 1.0, 2.0, -1.0, 0.5, -0.2}

// Scorer estimates the probability that a link leads to a page in scope. It is a logistic
// regression over the evidence.
type Scorer struct{ Weights [traits]float64 }

// NewScorer returns a Scorer with the weights that a crawl uses.
func NewScorer() Scorer { return Scorer{Weights: prior} }

// stray is the factor for each step through a page out of scope.
const stray = 0.5

// Score returns the probability, 0 to 1, that the link leads to a page in scope.
func (s Scorer) Score(e LinkEvidence) float64 {
	sum := 0.0
	for i, x := range e.Traits() {
		sum += s.Weights[i] * x
	}
	return 1 / (1 + math.Exp(-sum)) * math.Pow(stray, float64(e.Steps))
}

// Promises returns the Score of each link of a page that was cut into segments, by the link's key.
// Evidence from several segments is combined. A link that is only in others, and in no segment, is
// scored by its name.
func Promises(scope period.Scope, segments []period.Segment, others []period.Link) map[string]float64 {
	valid := 0
	for _, g := range segments {
		if scope.Valid(g.Dates, period.PaperShare) {
			valid++
		}
	}
	parent, steps := float64(valid)/float64(max(len(segments), 1)), 0
	if valid == 0 {
		steps = 1
	}
	evidence := make(map[string]LinkEvidence, len(others))
	for _, g := range segments {
		for _, l := range g.Links {
			e := NewLinkEvidence(scope, g, l, parent, steps)
			if had, ok := evidence[l.Key]; ok {
				e = had.Merge(e)
			}
			evidence[l.Key] = e
		}
	}
	for _, l := range others {
		if _, ok := evidence[l.Key]; !ok {
			evidence[l.Key] = NewLinkEvidence(scope, period.Segment{}, l, parent, steps)
		}
	}
	scorer, out := NewScorer(), make(map[string]float64, len(evidence))
	for key, e := range evidence {
		out[key] = scorer.Score(e)
	}
	return out
}
