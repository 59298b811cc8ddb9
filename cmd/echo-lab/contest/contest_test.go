package contest

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
	"github.com/echo-node/echo-node/partition/racetest"
)

const d = secondsPerDay

// small returns a world with known truth: one item, with changes at the given days.
func small(days int64, at ...float64) World {
	w := World{Name: "small", From: start, To: start + days*d, Page: 1,
		Things: []Thing{{Name: "x", Born: start, Weight: 1}}}
	for _, t := range at {
		w.Things[0].Changes = append(w.Things[0].Changes, start+int64(t*d))
	}
	return w
}

// By hand: ten days, changes on days 2, 3 and 6; visits on days 4, 5 and 8. The copy is bad
// from 2 to 4 and from 6 to 8. The change of day 2 is overwritten before any visit.
func TestTallyByHand(t *testing.T) {
	w := small(10, 2, 3, 6)
	y := newTally(&w, w.From)
	for _, v := range []int64{4, 5, 8} {
		y.visit(0, w.From+v*d, true)
	}
	r := y.result()
	if math.Abs(r.Freshness-0.6) > 1e-9 || math.Abs(r.AgeDays-0.4) > 1e-9 {
		t.Errorf("freshness %g, age %g; want 0.6 and (2²/2 + 2²/2)/10 = 0.4", r.Freshness, r.AgeDays)
	}
	if r.Visits != 3 || r.Hits != 2 || r.Changes != 3 || r.Missed != 1 || math.Abs(r.ChangeRate()-2.0/3) > 1e-9 ||
		r.VisitsPerChange() != 1.5 {
		t.Errorf("%+v", r)
	}
	for day, want := range []float64{1, 1, 0, 0, 1, 1, 0, 0, 1, 1} {
		age := map[int]float64{2: 0.5, 3: 1.5, 6: 0.5, 7: 1.5}[day]
		if got := r.Days[day]; math.Abs(got.Freshness-want) > 1e-9 || math.Abs(got.AgeDays-age) > 1e-9 {
			t.Errorf("day %d: %+v, want freshness %g, age %g", day, got, want, age)
		}
	}
	if four, five := r.Days[4], r.Days[5]; four.Visits != 1 || four.Hits != 1 || five.Visits != 1 || five.Hits != 0 ||
		r.Days[6].Visits != 0 {
		t.Errorf("visits on days 4 and 5: %+v, %+v", four, five)
	}
	if Traffic(3, 2) != 3*askBytes+2*bodyBytes {
		t.Errorf("traffic %g", Traffic(3, 2))
	}
	// The same, measured from day 3 on: the change of day 2 is not seen yet.
	y = newTally(&w, w.From+3*d)
	for _, v := range []int64{4, 5, 8} {
		y.visit(0, w.From+v*d, true)
	}
	if r = y.result(); math.Abs(r.Freshness-4.0/7) > 1e-9 || math.Abs(r.AgeDays-(1.5+2)/7) > 1e-9 {
		t.Errorf("from day 3: freshness %g, age %g", r.Freshness, r.AgeDays)
	}
}

func TestTimelineMisses(t *testing.T) {
	w := small(10, 1, 1.1, 1.2, 1.3, 7)
	w.Page = 3
	y := newTally(&w, w.From)
	y.visit(0, w.From+2*d, true) // four posts, a page holds three
	if r := y.result(); r.Missed != 1 || r.Changes != 5 {
		t.Errorf("missed %d of %d", r.Missed, r.Changes)
	}
}

func TestEqualBudgets(t *testing.T) {
	w, err := Populate("a", 60, 120, rand.New(rand.NewPCG(1, 3)))
	if err != nil {
		t.Fatal(err)
	}
	visits := map[int][]string{}
	for _, name := range Names() {
		r, err := Run(&w, Options{Policy: name, Budget: 2, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		visits[r.Visits] = append(visits[r.Visits], name)
		if r.Freshness <= 0 || r.Freshness >= 1 || r.Hits > r.Visits || r.Missed > r.Changes {
			t.Errorf("%s: %+v", name, r)
		}
		again, err := Run(&w, Options{Policy: name, Budget: 2, Seed: 1})
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s: two runs differ (%v)", name, err)
		}
	}
	low, high := slices.Min(keys(visits)), slices.Max(keys(visits))
	if want := 60 * 2 * 120 / 30; high-low > 2 || low < want-2 || high > want+2 {
		t.Errorf("visits %v, want %d for all", visits, want)
	}
}

func keys(m map[int][]string) (ks []int) {
	for k := range m {
		ks = append(ks, k)
	}
	return ks
}

// Uniform's freshness is known: an item that changes λ times a day and is visited every T is
// fresh for (1−e^(−λT))/λT of the time.
func TestUniformMatchesTheory(t *testing.T) {
	w := World{Name: "even", From: start, To: start + 400*d, Page: 1, Things: make([]Thing, 200)}
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range w.Things {
		w.Things[i] = Thing{Born: start, Weight: 1, Changes: poisson(nil, rng, 0.1, w.From, w.To)}
	}
	r, err := Run(&w, Options{Policy: "uniform", Budget: 3, Warm: 0.1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 - math.Exp(-1); math.Abs(r.Freshness-want) > 0.01 {
		t.Errorf("freshness %.4f, theory %.4f", r.Freshness, want)
	}
}

func TestBornLater(t *testing.T) {
	w := small(30, 5)
	w.Things = append(w.Things, Thing{Name: "late", Born: start + 20*d, Weight: 1, Changes: []int64{start + 29*d}})
	for _, p := range []string{"default", "oracle-rates", "oracle-changes"} {
		r, err := Run(&w, Options{Policy: p, Budget: 3, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Changes != 2 || r.Visits < 3 || r.Visits > 5 {
			t.Errorf("%s: %+v", p, r)
		}
	}
	w.Things = w.Things[1:] // nothing exists at first
	if r, err := Run(&w, Options{Policy: "uniform", Budget: 3, Seed: 1}); err != nil || r.Visits != 1 && r.Visits != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// The requirement on the synthetic populations, at a small size. The default's
// freshness is at least that of every policy without the truth, and its age is at most
// uniform's.
func TestDefaultLeads(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the contest takes seconds")
	}
	for _, c := range []struct {
		population string
		budget     float64
		items      int
	}{{"a", 0.5, 300}, {"a", 2, 100}, {"b", 2, 100}} {
		es, err := Hold(Contest{World: Drawn(c.population, c.items, 400), Budget: c.budget, Seeds: 6, Warm: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		leads(t, c.population, c.budget, es)
	}
}

// leads checks the requirement on one contest's figures. It compares the paired difference with
// its interval.
func leads(t *testing.T, world string, budget float64, es []Entry) {
	t.Helper()
	for _, e := range es {
		t.Logf("%s at %g: %-14s freshness %v (lead %v), age %v, change rate %v, lost %v", world, budget, e.Policy,
			e.Freshness, e.Lead, e.AgeDays, e.ChangeRate, e.Lost)
		if !strings.HasPrefix(e.Policy, "oracle-") && e.Lead.Mean > e.Lead.Half {
			t.Errorf("%s at %g: %s is fresher than the default by %v", world, budget, e.Policy, e.Lead)
		}
	}
	if older := es[0].Older; older.Mean > older.Half {
		t.Errorf("%s at %g: the default is older than uniform by %v", world, budget, older)
	}
}

// TestRealHistories holds the contest on the files of ECHO_CHANGES, a directory of NAME.tsv.gz
// histories. They are not part of the project; without them the test says so.
func TestRealHistories(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("ECHO_CHANGES"), "*.tsv.gz"))
	if os.Getenv("ECHO_CHANGES") == "" || len(files) == 0 {
		t.Skip("no real histories: set ECHO_CHANGES to a directory of *.tsv.gz; the synthetic populations were tested")
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		things, err := ReadHistory(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		base, err := Replay(filepath.Base(file), things, 730)
		if err != nil {
			t.Fatal(err)
		}
		es, err := Hold(Contest{World: Sampled(base, 250), Budget: 2, Seeds: 4, Warm: 0.2,
			Policies: []string{"default", "uniform", "optimal", "barbosa"}})
		if err != nil {
			t.Fatal(err)
		}
		leads(t, base.Name, 2, es)
	}
}

// U4: importance raises the freshness weighted by importance.
func TestImportanceBuysWeightedFreshness(t *testing.T) {
	es, err := Hold(Contest{World: Drawn("a", 150, 300), Budget: 2, Seeds: 4, Warm: 0.2,
		Policies: []string{"default", "important"}})
	if err != nil {
		t.Fatal(err)
	}
	if es[1].Weighted.Mean <= es[0].Weighted.Mean {
		t.Errorf("weighted freshness %v, default %v", es[1].Weighted, es[0].Weighted)
	}
}

// TwitterEcho's community: what the six classes miss and what the default misses.
func TestEchoCommunity(t *testing.T) {
	es, err := Hold(Contest{World: Drawn("echo", 60, 10), Budget: 500, Seeds: 2, Warm: 0.4,
		Policies: []string{"default", "classes"}})
	if err != nil {
		t.Fatal(err)
	}
	ratio := es[0].Lost.Mean / es[1].Lost.Mean
	t.Logf("missed: default %.3f, six classes %.3f, ratio %.2f (the aim is 0.5)", es[0].Lost.Mean, es[1].Lost.Mean,
		ratio)
	if ratio > 0.8 {
		t.Errorf("ratio %.2f", ratio)
	}
}

// The limit on a timeline, by hand: two accounts, a slot at each half of a day. Of three posts
// that are overwritten between slots, the oracle misses only what no policy could see.
func TestOracleOfTimelines(t *testing.T) {
	w := small(10, 1.1, 1.7, 2.2, 8)
	w.Things = append(w.Things, Thing{Name: "y", Born: start, Weight: 1, Changes: []int64{start + d, start + 4*d}})
	w.Timeline, w.Counted = true, true
	for _, tt := range []struct {
		budget float64
		page   int
		missed int
	}{{60, 1, 0}, {30, 1, 0}, {15, 1, 1}, {15, 2, 0}, {4, 1, 2}, {4, 3, 0}} {
		w.Page = tt.page
		o := Options{Policy: OracleChanges, Budget: tt.budget, Seed: 1}
		r, err := Run(&w, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Missed != tt.missed || r.Changes != 6 {
			t.Errorf("%g visits of an account, %d posts a page: missed %d of %d, want %d", tt.budget, tt.page, r.Missed,
				r.Changes, tt.missed)
		}
	}
	echo, err := Populate("echo", 60, 10, rand.New(rand.NewPCG(4, 3)))
	if err != nil {
		t.Fatal(err)
	}
	var lost []int
	for _, p := range []string{OracleChanges, "default", "classes"} {
		r, err := Run(&echo, Options{Policy: p, Budget: 500, Warm: 0.3, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		lost = append(lost, r.Missed)
	}
	if !slices.IsSorted(lost) {
		t.Errorf("missed by the clairvoyant, the default, six classes: %v", lost)
	}
}

func TestReadHistory(t *testing.T) {
	things, err := ReadHistory(strings.NewReader("a\t30\t10\t20\t20\n\nb\t5\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Thing{{Name: "a", Born: 10, Changes: []int64{20, 30}}, {Name: "b", Born: 5, Changes: []int64{}}}
	if !reflect.DeepEqual(things, want) {
		t.Errorf("%+v", things)
	}
	for _, bad := range []string{"", "a", "a\tx", "a\t-1", "a\t", "\t1", "a\t99999999999999999999"} {
		if _, err := ReadHistory(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := Replay("x", []Thing{{Born: 1}}, 10); err == nil {
		t.Error("replayed a world without change")
	}
}

func FuzzReadHistory(f *testing.F) {
	f.Add("a\t1\t2\nb\t3")
	f.Add("a\t\t\n")
	f.Fuzz(func(t *testing.T, text string) {
		things, err := ReadHistory(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, x := range things {
			if x.Name == "" || x.Born <= 0 || !slices.IsSorted(x.Changes) || len(x.Changes) > 0 &&
				x.Changes[0] <= x.Born {
				t.Fatalf("%+v", x)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	w := small(10, 1)
	for _, o := range []Options{{Policy: "best", Budget: 1}, {Policy: "default"},
		{Policy: "default", Budget: 1, Warm: 1}} {
		if _, err := Run(&w, o); err == nil {
			t.Errorf("%+v ran", o)
		}
	}
	if _, err := Run(&World{Page: 1}, Options{Policy: "default", Budget: 1}); err == nil {
		t.Error("an empty world ran")
	}
	if _, err := Hold(Contest{Budget: 1}); err == nil {
		t.Error("a contest without a world was held")
	}
	if _, err := Populate("z", 1, 1, rand.New(rand.NewPCG(1, 1))); err == nil {
		t.Error("population z exists")
	}
	if string(policy.Default) != Names()[0] {
		t.Error("the default is not first")
	}
}

func TestStudent(t *testing.T) {
	for df, want := range map[int]float64{4: 2.776, 9: 2.262, 19: 2.093, 100: 1.984} {
		if got := student(df); math.Abs(got/want-1) > 0.005 {
			t.Errorf("%d degrees: %.4f, want %.3f", df, got, want)
		}
	}
}

func TestReports(t *testing.T) {
	es, err := Hold(Contest{World: Drawn("b", 20, 60), Budget: 2, Seeds: 2, Policies: []string{"default", "uniform"}})
	if err != nil {
		t.Fatal(err)
	}
	r := []Report{{World: "b<&>", Budget: 2, Seeds: 2, Runs: es}}
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var back struct{ Runs []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back.Runs) != 2 {
		t.Fatalf("%v %s", err, b.String())
	}
	for _, key := range []string{"policy", "freshness", "age_days", "change_rate", "visits_per_change", "missed",
		"visits", "bytes"} {
		if back.Runs[0][key] == nil {
			t.Errorf("no %q in %v", key, back.Runs[0])
		}
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"csv":  func(b *bytes.Buffer) error { return WriteCSV(b, r) },
		"days": func(b *bytes.Buffer) error { return WriteDays(b, r) },
	} {
		b.Reset()
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if rows, err := csv.NewReader(&b).ReadAll(); err != nil || len(rows) < 3 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	b.Reset()
	if err := WriteTable(&b, r[0]); err != nil || !strings.Contains(b.String(), "uniform") {
		t.Errorf("%v %s", err, b.String())
	}
	for _, chart := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return ChartDays(b, r[0]) },
		func(b *bytes.Buffer) error { return ChartPareto(b, r[0]) },
		func(b *bytes.Buffer) error { return ChartDays(b, Report{}) },
	} {
		b.Reset()
		if err := chart(&b); err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(b.Bytes(), new(struct{ XMLName xml.Name })); err != nil ||
			strings.Contains(b.String(), "NaN") {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}

// A model learned during the run makes the default fresher than the prior without knowledge, on
// both populations like the dissertation's. The gain is a tenth of a point, which takes a year
// to show.
func TestLearningIsWorthIt(t *testing.T) {
	if racetest.Small(t) {
		t.Skip("a measurement, which the race detector makes ten times as long")
	}
	for _, name := range []string{"a", "b"} {
		entries, err := Hold(Contest{World: Drawn(name, 300, 365),
			Policies: []string{string(policy.Default), Unlearned}, Budget: 8, Seeds: 12, Warm: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		if lead := entries[1].Lead; lead.Mean+lead.Half > 0 {
			t.Errorf("%s: without a model learned it is fresher by %s", name, lead)
		}
	}
}
