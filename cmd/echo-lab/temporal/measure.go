package temporal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// Options are the options of Measure.
type Options struct {
	Pages  int // of the world
	Budget int // pages of each crawl
	Starts int // pages in scope with which each crawl begins
	Seed   uint64
	Scopes []string  // as period.ParseScope reads them
	Talk   io.Writer // progress; nil = none
}

// Limits of Options.
const (
	leastPages = 1000
	mostPages  = 2_000_000
	mostStarts = 1000
)

// ErrOptions is wrapped by the errors in Options.
var ErrOptions = errors.New("options")

// scopes returns the scopes. It returns all errors in the options at once.
func (o *Options) scopes() ([]period.Scope, error) {
	var faults []error
	if o.Pages < leastPages || o.Pages > mostPages {
		faults = append(faults, fmt.Errorf("%d pages (%d to %d)", o.Pages, leastPages, mostPages))
	}
	if o.Budget < step || o.Budget > o.Pages {
		faults = append(faults, fmt.Errorf("budget %d (%d to the pages of the world)", o.Budget, step))
	}
	if o.Starts < 1 || o.Starts > mostStarts || len(o.Scopes) == 0 {
		faults = append(faults, fmt.Errorf("%d starts (1 to %d), %d scopes", o.Starts, mostStarts, len(o.Scopes)))
	}
	var out []period.Scope
	for _, text := range o.Scopes {
		scope, err := period.ParseScope(text)
		if err != nil {
			faults = append(faults, err)
		}
		out = append(out, scope)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("temporal: %w: %w", ErrOptions, errors.Join(faults...))
	}
	return out, nil
}

// Report is the result of Measure.
type Report struct {
	Pages  int      `json:"pages"`
	Budget int      `json:"budget"`
	Starts int      `json:"starts"`
	Seed   uint64   `json:"seed"`
	Scopes []Result `json:"scopes"`
	Tagger Tagger   `json:"tagger"`
	// PaperResolved is the paper's share of resolved expressions, for comparison with Tagger's.
	PaperResolved float64 `json:"paper_resolved"`
}

// Result has the crawls with one scope.
type Result struct {
	Scope    string   `json:"scope"`
	Relevant int      `json:"relevant"` // pages of the world
	Base     float64  `json:"base_rate"`
	Paper    *Figures `json:"paper,omitempty"`
	Crawls   []Side   `json:"crawls"` // one of each of Orders
	Curves   []Curve  `json:"-"`
}

// Side is one crawl.
type Side struct {
	Order  Order   `json:"order"`
	Pages  int     `json:"pages"` // fewer than the budget if nothing was left to fetch
	Points []Point `json:"points"`
	Area   float64 `json:"area"` // mean precision over the crawl
	Lift   float64 `json:"lift"` // precision at the end divided by that of breadth-first
	Recall float64 `json:"recall"`
	// Pooled is the recall as the paper counts it: of the relevant pages that this crawl or
	// breadth-first found. For breadth-first it is of those that it or the paper's rule found.
	Pooled float64 `json:"pooled_recall"`
}

// Point is the state of a crawl after that many pages.
type Point struct {
	Pages     int     `json:"pages"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
}

// points returns the numbers of pages that the paper mentions, up to budget, and budget.
func points(budget int) []int {
	out := slices.DeleteFunc([]int{100, 500, 800, 2000, 2600, PaperBudget}, func(n int) bool { return n >= budget })
	return append(out, budget)
}

// Measure crawls one world in all orders, with one scope after another.
func Measure(ctx context.Context, o Options) (*Report, error) {
	scopes, err := o.scopes()
	if err != nil {
		return nil, err
	}
	talk := o.Talk
	if talk == nil {
		talk = io.Discard
	}
	r := &Report{Pages: o.Pages, Budget: o.Budget, Starts: o.Starts, Seed: o.Seed}
	r.Tagger, r.PaperResolved = Judge(), PaperResolved
	w := NewWorld(o.Seed, o.Pages)
	for i, scope := range scopes {
		total := Relevant(w, scope)
		if total == 0 {
			return nil, fmt.Errorf("temporal: %w: no page of the world is about %s", ErrOptions, o.Scopes[i])
		}
		res := Result{Scope: o.Scopes[i], Relevant: total, Base: float64(total) / float64(o.Pages)}
		res.Paper = PaperFigures(scope.String())
		starts := w.Seeds(scope, o.Starts)
		for _, order := range Orders() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			res.Curves = append(res.Curves, Crawl(w, scope, starts, o.Budget, order))
			c := &res.Curves[len(res.Curves)-1]
			fmt.Fprintf(talk, "%s, %s: %d of %d pages are relevant\n", o.Scopes[i], order, len(c.Found), len(c.Hits))
		}
		for i := range res.Curves {
			res.Crawls = append(res.Crawls, res.side(i, o.Budget))
		}
		r.Scopes = append(r.Scopes, res)
	}
	return r, nil
}

// side summarises curve i. The first is breadth-first, and Orders has the index of the paper's.
func (r *Result) side(i, budget int) Side {
	c, general := &r.Curves[i], &r.Curves[0]
	other := general
	if i == 0 {
		other = &r.Curves[slices.Index(Orders(), Paper)]
	}
	s := Side{Order: c.Order, Pages: len(c.Hits), Area: c.Area(budget)}
	s.Recall, s.Pooled = c.Recall(budget, r.Relevant), c.Pooled(other)
	if p := general.Precision(budget); p > 0 {
		s.Lift = c.Precision(budget) / p
	}
	for _, n := range points(budget) {
		s.Points = append(s.Points, Point{n, c.Precision(n), c.Recall(n, r.Relevant)})
	}
	return s
}

// Faults returns where crawls of the paper's size with the paper's scopes are worse than the
// paper: the lift of its rule, or of the learned order, is below the paper's.
func (r *Report) Faults() []error {
	var faults []error
	for _, s := range r.Scopes {
		for _, c := range s.Crawls {
			bar := c.Order == Paper || c.Order == Learned
			if s.Paper != nil && r.Budget == PaperBudget && bar && c.Lift < s.Paper.Lift {
				faults = append(faults, fmt.Errorf("%s: %s lifts precision %.2f times, the paper %.1f times",
					s.Scope, c.Order, c.Lift, s.Paper.Lift))
			}
		}
	}
	if r.Tagger.ResolvedShare() < PaperResolved {
		faults = append(faults, fmt.Errorf("%.4f of the time expressions are resolved, in the paper %.4f",
			r.Tagger.ResolvedShare(), PaperResolved))
	}
	return faults
}
