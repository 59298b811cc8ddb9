package periodtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/echo-node/echo-node/crawler/focus/period"
	"github.com/echo-node/echo-node/partition/racetest"
)

// The scopes of the paper's experiment, and the lift over breadth-first that it
// reached at 5,000 pages.
var scopes = []struct {
	name, scope string
	lift        float64
}{
	{"war", "1939..1945", 1.8},
	{"2001", "2001", 2.4},
}

// TestCurves compares orders on a world of 40,000 pages; with ECHO_CURVES=DIR on
// one of 100,000, and writes the curves there as CSV and SVG.
func TestCurves(t *testing.T) {
	if racetest.Small(t) {
		t.Skip("nothing is concurrent here, and with the race detector it takes minutes")
	}
	pages, budget := 40_000, 1000
	dir := os.Getenv("ECHO_CURVES")
	if dir != "" {
		pages, budget = 100_000, 5000
	}
	w := NewWorld(Options{Seed: 1, Pages: pages})
	for _, s := range scopes {
		scope, err := period.ParseScope(s.scope)
		if err != nil {
			t.Fatal(err)
		}
		total := Relevant(w, scope)
		t.Logf("%s: %d of %d pages relevant, base rate %.4f", s.name, total, pages, float64(total)/float64(pages))
		seeds := w.Seeds(scope, 10)
		var curves []Curve
		for _, order := range []Order{BreadthFirst, Random, Paper, PaperFrozen, Scored, Oracle} {
			c := Crawl(w, scope, seeds, budget, order)
			curves = append(curves, c)
			t.Logf("%-14s P@100 %.3f P@500 %.3f P@%d %.3f R %.3f area %.3f (%d pages)", order, c.Precision(100), c.Precision(500), budget, c.Precision(budget), c.Recall(budget, total), c.Area(budget), len(c.Hits))
		}
		breadth, paper, scored := &curves[0], &curves[2], &curves[4]
		for n := 500; n <= budget; n += 100 {
			if scored.Precision(n) < paper.Precision(n) || paper.Precision(n) < breadth.Precision(n) {
				t.Errorf("%s at %d: scored %.3f, paper %.3f, breadth-first %.3f", s.name, n, scored.Precision(n), paper.Precision(n), breadth.Precision(n))
			}
		}
		if scored.Area(budget) <= paper.Area(budget) {
			t.Errorf("%s: area %.3f is not above %.3f", s.name, scored.Area(budget), paper.Area(budget))
		}
		want := s.lift // at 5,000 pages; the small world runs dry before
		if dir == "" {
			want = 1.5
		}
		for _, c := range []*Curve{paper, scored} {
			if lift := c.Precision(budget) / breadth.Precision(budget); lift < want {
				t.Errorf("%s: lift of %s %.2f, want %.1f", s.name, c.Order, lift, want)
			}
		}
		if dir != "" {
			write(t, filepath.Join(dir, "period-"+s.name+".csv"), CSV(curves, budget, total))
			write(t, filepath.Join(dir, "period-"+s.name+".svg"), SVG(fmt.Sprintf("%s: precision, base rate %.3f", s.scope, float64(total)/float64(pages)), curves, budget))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The tagger's view of a page and the truth must nearly agree, or the curves
// would measure the tagger.
func TestTruth(t *testing.T) {
	w := NewWorld(Options{Seed: 2, Pages: 1500})
	scope, err := period.ParseScope("1990..2005")
	if err != nil {
		t.Fatal(err)
	}
	agree := 0
	for i := range w.Len() {
		p := w.Page(i)
		judged := scope.Relevant(period.Segments(p.Blocks, Written, period.SegmentOptions{}), period.PaperShare)
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
	a, b := NewWorld(Options{Seed: 3, Pages: 500}), NewWorld(Options{Seed: 3, Pages: 500})
	for i := range 500 {
		if fmt.Sprint(a.Page(i)) != fmt.Sprint(b.Page(i)) {
			t.Fatalf("page %d differs", i)
		}
	}
	if Index(Key(42)) != 42 || Index("else") != -1 {
		t.Error("keys")
	}
}
