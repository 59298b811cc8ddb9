package temporal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/partition/racetest"
)

// On a world of 40,000 pages the orders rank as expected. The paper's lift is reached with its
// budget of 5,000 pages, which the command measures. A world this small has too few relevant
// pages.
func TestCurves(t *testing.T) {
	if racetest.Small(t) {
		t.Skip("nothing is concurrent here, and with the race detector it takes minutes")
	}
	const pages, budget, lift = 40_000, 1000, 1.5
	o := Options{Seed: 1, Pages: pages, Budget: budget, Starts: 10, Scopes: []string{"1939..1945", "2001"}}
	r, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Scopes {
		t.Logf("%s: %d of %d pages relevant, base rate %.4f", s.Scope, s.Relevant, pages, s.Base)
		curves := make(map[Order]*Curve)
		for i := range s.Curves {
			c := &s.Curves[i]
			curves[c.Order] = c
			t.Logf("%-14s P@100 %.3f P@500 %.3f P@%d %.3f R %.3f area %.3f (%d pages)", c.Order, c.Precision(100),
				c.Precision(500), budget, c.Precision(budget), c.Recall(budget, s.Relevant), c.Area(budget),
				len(c.Hits))
		}
		breadth, paper, learned, node := curves[BreadthFirst], curves[Paper], curves[Learned], curves[EchoNode]
		for n := 500; n <= budget; n += 100 {
			if learned.Precision(n) < paper.Precision(n) || paper.Precision(n) < breadth.Precision(n) {
				t.Errorf("%s at %d: learned %.3f, paper %.3f, breadth-first %.3f",
					s.Scope, n, learned.Precision(n), paper.Precision(n), breadth.Precision(n))
			}
		}
		if learned.Area(budget) <= paper.Area(budget) {
			t.Errorf("%s: area %.3f is not above %.3f", s.Scope, learned.Area(budget), paper.Area(budget))
		}
		for _, c := range []*Curve{paper, learned, node} {
			if got := c.Precision(budget) / breadth.Precision(budget); got < lift {
				t.Errorf("%s: lift of %s %.2f, want %.1f", s.Scope, c.Order, got, lift)
			}
		}
	}
}

// The tagger's view of a page and the truth must nearly agree. Otherwise the curves would
// measure the tagger.
func TestTruth(t *testing.T) {
	w := NewWorld(2, 1500)
	scope, err := period.ParseScope("1990..2005")
	if err != nil {
		t.Fatal(err)
	}
	agree := 0
	for i := range w.Len() {
		p := w.Page(i)
		judged := false // the paper's judgement: one segment is valid
		for _, g := range period.Segments(p.Blocks, Written, period.SegmentOptions{}) {
			judged = judged || scope.Valid(g.Dates, period.PaperShare)
		}
		if judged == p.Relevant(scope) {
			agree++
		}
	}
	t.Logf("tagger and truth agree on %d of %d pages", agree, w.Len())
	if float64(agree) < 0.98*float64(w.Len()) {
		t.Errorf("agree on %d of %d", agree, w.Len())
	}
}

func TestSameWorld(t *testing.T) {
	a, b := NewWorld(3, 500), NewWorld(3, 500)
	for i := range 500 {
		if fmt.Sprint(a.Page(i)) != fmt.Sprint(b.Page(i)) {
			t.Fatalf("page %d differs", i)
		}
	}
	if Index(Key(42)) != 42 || Index("else") != -1 {
		t.Error("keys")
	}
}

func TestChart(t *testing.T) {
	curves := []Curve{
		{Order: Paper, Hits: make([]int, 300), Found: []int{1, 2, 3}},
		{Order: Oracle, Hits: make([]int, 300)},
	}
	for i := range curves[0].Hits {
		curves[0].Hits[i] = min(i, 3)
	}
	const want = "n,paper precision,paper recall,oracle precision,oracle recall\n" +
		"100,0.0300,0.5000,0.0000,0.0000\n200,0.0150,0.5000,0.0000,0.0000\n"
	if got := CSV(curves, 200, 6); got != want {
		t.Errorf("CSV %q", got)
	}
	if got := SVG("1939..1945", curves, 200); strings.Count(got, "<polyline") != 2 ||
		!strings.HasSuffix(got, "</svg>\n") {
		t.Errorf("SVG %s", got)
	}
	if got := curves[0].Pooled(&Curve{Found: []int{3, 4, 5}}); got != 0.6 {
		t.Errorf("of 5 pages that two crawls found one found %v", got)
	}
}

// A fault is reported for a crawl below the paper's lift, and for nothing else.
func TestFaults(t *testing.T) {
	r := Report{Budget: PaperBudget, Tagger: Judge()}
	r.Scopes = []Result{{Scope: "2001", Paper: PaperFigures("2001-01-01..2001-12-31"),
		Crawls: []Side{{Order: Paper, Lift: 2.5}, {Order: Learned, Lift: 2.3}, {Order: Random, Lift: 0.1}}}}
	if got := r.Faults(); len(got) != 1 || !strings.Contains(got[0].Error(), "learned lifts precision 2.30 times") {
		t.Errorf("faults %v", got)
	}
	r.Budget = 1000
	if got := r.Faults(); len(got) != 0 {
		t.Errorf("faults %v at another budget than the paper's", got)
	}
}
