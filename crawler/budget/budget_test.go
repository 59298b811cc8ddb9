package budget

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition/racetest"
)

func TestMain(m *testing.M) { racetest.Main(m, "4") }

func asWait(err error, w **WaitError) bool { return errors.As(err, w) }

// table returns a table with these buckets, and classes that count in them.
func table(classes map[string][]string, specs ...Spec) Table {
	t := Table{Service: "test", Buckets: specs}
	for name, buckets := range classes {
		t.Classes = append(t.Classes, Class{Name: name, Buckets: buckets})
	}
	return t
}

// newBook returns a Book with one table for all credentials.
func newBook(t testing.TB, o Options, tb Table, credentials ...string) *Book {
	t.Helper()
	b, err := New("mastodon:a.example", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range credentials {
		if err := b.Add(c, tb, epoch); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// world is one kind of server with a table spec and forms of headers.
type world struct {
	name   string
	spec   Spec
	server func(limit, window, skew int64) limiter
	forms  []string
}

// worlds returns each kind of server with the table and the header forms that fit it.
func worlds() []world {
	all := []string{"none", "iso", "epoch", "policy", "draft7", "draft8"}
	return []world{
		{"aligned", Spec{Name: "b", Kind: Aligned, Spoken: true},
			func(l, w, skew int64) limiter { return &windows{limit: l, window: w, skew: skew} }, all},
		{"by first call", Spec{Name: "b", Kind: Sliding, Spoken: true},
			func(l, w, _ int64) limiter { return &windows{limit: l, window: w, byFirst: true} }, all},
		{"aligned, thought sliding", Spec{Name: "b", Kind: Sliding, Spoken: true},
			func(l, w, skew int64) limiter { return &windows{limit: l, window: w, skew: skew} }, all},
		{"sliding", Spec{Name: "b", Kind: Sliding, Spoken: true},
			func(l, w, _ int64) limiter { return &slidingLog{limit: l, window: w} }, all},
		{"tokens", Spec{Name: "b", Kind: Tokens, Spoken: true}, func(l, w, _ int64) limiter {
			return &tokenBucket{capacity: l, window: w, level: float64(l), at: epoch.UnixNano()}
		}, []string{"none", "draft7", "draft8"}},
	}
}

// figures are the results of a simulation.
type figures struct {
	use     float64 // share of the possible calls that were made
	refused int     // calls that the server refused
	taken   int
}

// play runs a backlog against a world; the figures begin after the first window.
func play(t testing.TB, w world, seed uint64, form string, limit, window, skew int64, dated, spread bool, workers int,
	count int64) figures {
	spec := w.spec
	spec.Limit, spec.Window = limit, Span(window)
	l := w.server(limit, window, skew)
	s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: limit, window: window, form: form,
		skew: skew, dated: dated}
	r := &run{t: t, book: newBook(t, Options{Spread: spread}, table(map[string][]string{"read": {"b"}}, spec), "one"),
		server: s,
		class:  func() string { return "read" }, workers: workers, rng: rand.New(rand.NewPCG(seed, 1)),
		fast: 20 * time.Millisecond, slow: 200 * time.Millisecond}
	r.end = time.Duration(window)
	r.loop()
	before := s.taken
	if racetest.Enabled {
		count = 3
	}
	r.end = time.Duration((1 + count) * window)
	r.loop()
	could := float64(count * limit)
	return figures{use: float64(s.taken-before) / could, refused: s.refused, taken: s.taken}
}

// Under a backlog at least 99 % of an allowance is used and the server refuses nothing. This holds
// for every kind of server, form of headers and clock skew.
func TestWholeAllowanceAndNothingOver(t *testing.T) {
	least := map[string]float64{}
	rapid.Check(t, func(rt *rapid.T) {
		w := rapid.SampledFrom(worlds()).Draw(rt, "world")
		form := rapid.SampledFrom(w.forms).Draw(rt, "form")
		limit := rapid.Int64Range(5, 400).Draw(rt, "limit")
		window := int64(rapid.SampledFrom([]time.Duration{5 * time.Minute, 10 * time.Minute, 15 * time.Minute}).Draw(rt,
			"window"))
		skew := rapid.Int64Range(-30, 30).Draw(rt, "skew") * second
		dated := rapid.Bool().Draw(rt, "dated")
		spread := rapid.Bool().Draw(rt, "spread")
		workers := rapid.IntRange(1, 4).Draw(rt, "workers")
		f := play(t, w, rapid.Uint64().Draw(rt, "seed"), form, limit, window, skew, dated, spread, workers, 20)
		if f.refused > 0 {
			rt.Fatalf("%d refused", f.refused)
		}
		if f.use < 0.99 && !racetest.Small(t) {
			rt.Fatalf("%.4f used", f.use)
		}
		if old, ok := least[w.name]; !ok || f.use < old {
			least[w.name] = f.use
		}
	})
	t.Logf("least part used: %v", least)
}

// Calls that take up to a hundred seconds cross the edges of windows. The server may count them in
// either window, and no limit is exceeded.
func TestSlowCallsNothingOver(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := rapid.SampledFrom(worlds()).Draw(rt, "world")
		limit := rapid.Int64Range(2, 40).Draw(rt, "limit")
		window, skew := 300*second, rapid.Int64Range(-30, 30).Draw(rt, "skew")*second
		spec := w.spec
		spec.Limit, spec.Window = limit, Span(window)
		l := w.server(limit, window, skew)
		s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: limit, window: window,
			form: rapid.SampledFrom(w.forms).Draw(rt, "form"), skew: skew, dated: rapid.Bool().Draw(rt, "dated")}
		r := &run{t: t, book: newBook(t, Options{Spread: rapid.Bool().Draw(rt, "spread")},
			table(map[string][]string{"read": {"b"}}, spec), "one"), server: s,
			class: func() string { return "read" }, workers: rapid.IntRange(1, 12).Draw(rt, "workers"),
			rng:  rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)),
			fast: time.Second, slow: time.Duration(rapid.IntRange(2, 100).Draw(rt, "slow")) * time.Second,
			end: 2 * time.Hour}
		r.loop()
		if s.refused > 0 {
			rt.Fatalf("%d refused", s.refused)
		}
	})
}

// An earlier process used part of the window and left no snapshot. The first response reports the
// rest, and no second call is made before it.
func TestFirstAnswerTells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := rapid.SampledFrom(worlds()[:4]).Draw(rt, "world")
		form := rapid.SampledFrom(w.forms[1:]).Draw(rt, "form")
		limit, window := rapid.Int64Range(10, 60).Draw(rt, "limit"), 300*second
		spec := w.spec
		spec.Limit, spec.Window = limit, Span(window)
		l := w.server(limit, window, 0)
		s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: limit, window: window, form: form,
			dated: true}
		for range rapid.Int64Range(0, limit-1).Draw(rt, "before") {
			s.arrive("read", -second)
		}
		r := &run{t: t, book: newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, spec), "one"), server: s,
			class: func() string { return "read" }, workers: 8,
			rng:  rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)),
			fast: 100 * time.Millisecond, slow: time.Second, end: time.Hour}
		r.loop()
		if s.refused > 0 {
			rt.Fatalf("%d refused", s.refused)
		}
	})
}
