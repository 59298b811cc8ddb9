package budget

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition/racetest"
)

// mustDefault returns the built-in table of a service, or ends the test.
func mustDefault(t testing.TB, service string) Table {
	t.Helper()
	tb, ok := Default(service)
	if !ok {
		t.Fatalf("no table of %s", service)
	}
	return tb
}

// Mastodon has overlapping windows. Its headers describe only one of them, and the paging window,
// which is reached first, is not documented.
func TestSeveralWindowsAtOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		skew := rapid.Int64Range(-30, 30).Draw(rt, "skew") * second
		minute := 60 * second
		user := &windows{limit: 1500, window: 5 * minute, skew: skew}
		token := &windows{limit: 300, window: 5 * minute, skew: skew}
		paging := &windows{limit: 300, window: 15 * minute, skew: skew}
		s := &server{limits: map[string][]limiter{"read": {user, token}, "paging": {user, token, paging}},
			speaks: rapid.SampledFrom([]limiter{token, paging}).Draw(rt, "speaks"), limit: 300, form: "iso", skew: skew,
			dated: rapid.Bool().Draw(rt, "dated")}
		paged := 0
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		r := &run{t: t, book: newBook(t, Options{Spread: rapid.Bool().Draw(rt, "spread")}, mustDefault(t, "mastodon"),
			"one"), server: s, workers: rapid.IntRange(1, 4).Draw(rt, "workers"),
			rng: rng, fast: 20 * time.Millisecond, slow: 200 * time.Millisecond}
		turn := 0
		r.class = func() string { // paging as long as the Book allows, then the other class
			if turn++; turn%2 == 0 {
				return "read"
			}
			if w, err := r.book.Next(at(r.now), "paging", Ask{}); err == nil && w.Bucket == "" {
				return "paging"
			}
			return "read"
		}
		r.sent = func(t Ticket, _ time.Time) {
			if t.Class == "paging" {
				paged++
			}
		}
		r.end = 15 * time.Minute
		r.loop()
		before, pages := s.taken, paged
		r.end += 30 * time.Minute
		r.loop()
		if s.refused > 0 {
			rt.Fatalf("%d refused", s.refused)
		}
		if all, pages := float64(s.taken-before)/1800, float64(paged-pages)/600; all < 0.99 || pages < 0.99 {
			rt.Fatalf("%.4f of all, %.4f of the pages", all, pages)
		}
	})
}

// A server halves, then doubles its limit and changes the form of its headers. Only calls in flight
// at the change exceed the limit, and the new limit is used within a window.
func TestLimitsAreReadAtRunTime(t *testing.T) {
	for _, dated := range []bool{true, false} {
		l := &windows{limit: 180, window: 900 * second, skew: 7 * second}
		s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: 180, form: "epoch", skew: 7 * second,
			dated: dated}
		spec := Spec{Name: "b", Kind: Aligned, Limit: 180, Window: Span(900 * second), Spoken: true}
		r := &run{t: t, book: newBook(t, Options{Spread: true}, table(map[string][]string{"read": {"b"}}, spec), "one"),
			server: s,
			class:  func() string { return "read" }, workers: 1, rng: rand.New(rand.NewPCG(1, 1)),
			fast: 20 * time.Millisecond, slow: 200 * time.Millisecond}
		step := func(limit int64, form string, after time.Duration) {
			l.limit, s.limit, s.form = limit, limit, form
			r.end += after
			r.loop()
		}
		step(180, "epoch", 37*time.Minute)
		step(90, "epoch", 15*time.Minute)
		before := s.taken
		step(90, "epoch", 60*time.Minute)
		if got := s.taken - before; got < 357 || got > 363 {
			t.Errorf("dated %t, halved: %d calls in four windows", dated, got)
		}
		step(360, "iso", 15*time.Minute)
		before = s.taken
		step(360, "iso", 60*time.Minute)
		if got := s.taken - before; got < 1426 || got > 1454 {
			t.Errorf("dated %t, doubled twice: %d calls in four windows", dated, got)
		}
		if s.refused > 1 {
			t.Errorf("dated %t: %d refused", dated, s.refused)
		}
		t.Logf("dated %t: %d refused", dated, s.refused)
	}
}

// No header names the limit.
func TestHiddenLimit(t *testing.T) {
	minute := 60 * second
	for name, l := range map[string]limiter{
		"fixed 200/5m":   &windows{limit: 200, window: 5 * minute},
		"fixed 1000/15m": &windows{limit: 1000, window: 15 * minute},
		"fixed 900/5m":   &windows{limit: 900, window: 5 * minute},
		"sliding 200/5m": &slidingLog{limit: 200, window: 5 * minute},
		"tokens 200/5m":  &tokenBucket{capacity: 200, window: 5 * minute, level: 200, at: epoch.UnixNano()},
		"tokens 1/1s":    &tokenBucket{capacity: 1, window: second, level: 1, at: epoch.UnixNano()},
	} {
		s := &server{limits: map[string][]limiter{"read": {l}}}
		r := &run{t: t, book: newBook(t, Options{}, mustDefault(t, "fediverse"), ""), server: s,
			class: func() string { return "read" }, workers: 2,
			rng: rand.New(rand.NewPCG(1, 1)), fast: 20 * time.Millisecond, slow: 200 * time.Millisecond}
		part := func(hours int) (use, refused float64) {
			taken, no, from := s.taken, s.refused, r.now
			r.end += time.Duration(hours) * time.Hour
			r.loop()
			could := l.whole(int64(r.end)) - l.whole(from)
			return float64(s.taken-taken) / could, float64(s.refused-no) / float64(s.taken-taken)
		}
		first, hours := 6, 24
		if racetest.Small(t) && name != "sliding 200/5m" {
			continue
		} else if racetest.Small(t) {
			first, hours = 1, 1
		}
		use1, no1 := part(first)
		use2, no2 := part(hours)
		t.Logf("%-15s first %d h: %.3f used, %.5f refused; then %d h: %.3f used, %.5f refused", name, first, use1, no1,
			hours, use2, no2)
		if !racetest.Small(t) && (use2 < 0.85 || no2 > 0.01) {
			t.Errorf("%s: %.3f used, %.5f refused", name, use2, no2)
		}
	}
}

// The headers of these servers are wrong. Nothing hangs or panics, refusals stay few, and the calls
// that the server accepts are used.
func TestLyingHeaders(t *testing.T) {
	minute, day := 60*second, 12*time.Hour
	if racetest.Small(t) {
		// the two refusals that the Book needs to accept the limit are a small share by then
		day = time.Hour
	}
	lies := map[string]func(h http.Header, refused bool){
		"says 300, means 200": func(h http.Header, refused bool) {
			left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
			if err != nil {
				panic(err)
			}
			h.Set("X-RateLimit-Limit", "300")
			h.Set("X-RateLimit-Remaining", strconv.Itoa(left+100))
		},
		"a reset long past": func(h http.Header, _ bool) { h.Set("X-RateLimit-Reset", "1000000000") },
		"a reset in 2099":   func(h http.Header, _ bool) { h.Set("X-RateLimit-Reset", "2099-01-01T00:00:00Z") },
		"nonsense": func(h http.Header, _ bool) {
			h.Set("X-RateLimit-Limit", "-3")
			h.Set("X-RateLimit-Remaining", "9999999999999999999999")
			h.Set("RateLimit", `"";;;=,r=1;t=-5,,,,,`)
			h.Set("Date", "yesterday")
		},
		"another Date each time": func(h http.Header, _ bool) {
			h.Set("Date", epoch.Add(time.Duration(len(h.Get("X-RateLimit-Remaining")))*7*time.Minute).Format(
				http.TimeFormat))
		},
	}
	for name, lie := range lies {
		for _, kind := range []Kind{Aligned, Sliding} {
			l := &windows{limit: 200, window: 5 * minute}
			s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: 200, form: "iso", dated: true,
				lie: lie}
			spec := Spec{Name: "b", Kind: kind, Limit: 300, Window: Span(5 * minute), Spoken: true}
			r := &run{t: t, book: newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, spec), "one"),
				server: s, class: func() string { return "read" }, workers: 3,
				rng: rand.New(rand.NewPCG(1, 1)), fast: 20 * time.Millisecond, slow: 200 * time.Millisecond, end: day}
			r.loop()
			use, no := float64(s.taken)/l.whole(int64(r.end)), float64(s.refused)/float64(s.taken)
			t.Logf("%s, %s: %.3f used, %d refused (%.5f)", name, kind, use, s.refused, no)
			if use < 0.95 && day > time.Hour || no > 0.005 {
				t.Errorf("%s, %s: %.3f used, %.5f refused", name, kind, use, no)
			}
		}
	}
}

// The table has only a class; the Book learns the buckets from headers.
func TestLearnedFromHeadersAlone(t *testing.T) {
	for _, form := range []string{"iso", "epoch", "policy", "draft7", "draft8"} {
		for _, workers := range []int{1, 4} {
			if racetest.Enabled && (workers == 1 || form != "epoch") {
				continue
			}
			for name, l := range map[string]limiter{"aligned": &windows{limit: 100, window: 300 * second},
				"by first call": &windows{limit: 100, window: 300 * second, byFirst: true},
				"sliding":       &slidingLog{limit: 100, window: 300 * second}} {
				s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: 100, window: 300 * second,
					form: form, dated: true}
				r := &run{t: t, book: newBook(t, Options{}, table(map[string][]string{"read": {}}), "one"), server: s,
					class: func() string { return "read" }, workers: workers,
					rng: rand.New(rand.NewPCG(1, 1)), fast: 20 * time.Millisecond, slow: 200 * time.Millisecond,
					end: 4 * time.Hour}
				r.loop()
				use := float64(s.taken) / l.whole(int64(r.end))
				if s.refused > 0 || use < 0.97 {
					t.Errorf("%s, %s, %d workers: %.4f used, %d refused", name, form, workers, use, s.refused)
				}
				t.Logf("%s, %s, %d workers: %.4f used, %d refused", name, form, workers, use, s.refused)
			}
		}
	}
}

// The process dies between any two steps of a call; requests in flight may still arrive.
func TestKilledAnywhereNothingOver(t *testing.T) {
	lives := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := rapid.SampledFrom(worlds()).Draw(rt, "world")
		limit := rapid.Int64Range(5, 60).Draw(rt, "limit")
		window := 300 * second
		skew := rapid.Int64Range(-30, 30).Draw(rt, "skew") * second
		l := w.server(limit, window, skew)
		s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: limit, window: window,
			form: rapid.SampledFrom(w.forms).Draw(rt, "form"), skew: skew, dated: rapid.Bool().Draw(rt, "dated")}
		spec := w.spec
		spec.Limit, spec.Window, spec.Shared = limit, Span(window), rapid.Bool().Draw(rt, "shared")
		tb := table(map[string][]string{"read": {"b"}}, spec)
		r := &run{t: t, book: newBook(t, Options{}, tb, "one"), server: s, class: func() string { return "read" },
			workers: rapid.IntRange(1, 4).Draw(rt, "workers"),
			rng:     rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)), fast: 20 * time.Millisecond,
			slow: 2 * time.Second, end: 2 * time.Hour, lossy: 0.02}
		disk := map[string][]byte{} // the latest durable snapshots
		var intents [][]byte
		keep := func() {
			intents = nil
			for _, name := range []string{"one", AddressOf} {
				var err error
				if disk[name], err = r.book.Snapshot(name); err != nil {
					rt.Fatal(err)
				}
			}
		}
		r.sent = func(t Ticket, _ time.Time) { intents = append(intents, t.Append(nil)) }
		r.answer = func(time.Time) {
			if r.rng.IntN(3) == 0 { // the snapshot is written with the fetched record
				keep()
			}
		}
		die := rapid.Float64Range(0.001, 0.1).Draw(rt, "die")
		r.crash = func(string) bool { return r.rng.Float64() < die }
		r.reborn = func(now time.Time) {
			lives++
			r.book = newBook(t, Options{}, tb, "one")
			for _, name := range []string{"one", AddressOf} {
				if err := r.book.Restore(name, disk[name], intents, now); err != nil {
					rt.Fatal(err)
				}
			}
		}
		r.loop()
		if s.refused > 0 {
			rt.Fatalf("%d refused", s.refused)
		}
		if use := float64(s.taken) / l.whole(int64(r.end)); use < 0.5 && die < 0.01 && limit > 20 {
			rt.Fatalf("%.3f used", use)
		}
	})
	t.Logf("%d restarts", lives)
}

// Two credentials allow twice as many calls as one, and each is used completely.
func TestCredentialsAddUp(t *testing.T) {
	taken := map[int]int{}
	for n := 1; n <= 2; n++ {
		by := map[string]*windows{}
		r := &run{t: t, class: func() string { return "read" }, workers: 2, rng: rand.New(rand.NewPCG(1, 1)),
			fast: 20 * time.Millisecond, slow: 200 * time.Millisecond, end: time.Hour}
		r.book = newBook(t, Options{}, mustDefault(t, "mastodon"), []string{"one", "two"}[:n]...)
		s := &perCredential{by: by, t: t}
		r.server = &server{limits: map[string][]limiter{"read": {s}}}
		r.sent = func(t Ticket, _ time.Time) { s.who = append(s.who, t.Credential) }
		r.fast, r.slow = 100*time.Millisecond, 100*time.Millisecond // so that calls arrive in order
		r.loop()
		if r.server.refused > 0 {
			t.Errorf("%d refused", r.server.refused)
		}
		taken[n] = r.server.taken
	}
	if ratio := float64(taken[2]) / float64(taken[1]); ratio < 1.98 {
		t.Errorf("%d and %d: %.3f", taken[1], taken[2], ratio)
	}
	t.Logf("%v, %.4f", taken, float64(taken[2])/float64(taken[1]))
}

// perCredential counts each credential alone, in the order of sending.
type perCredential struct {
	t   testing.TB
	by  map[string]*windows
	who []string
}

func (p *perCredential) ask(t int64) (bool, int64, int64) {
	w := p.by[p.who[0]]
	if w == nil {
		w = &windows{limit: 300, window: 300 * second}
		p.by[p.who[0]] = w
	}
	p.who = p.who[1:]
	return w.ask(t)
}

func (p *perCredential) whole(int64) float64 { return 0 }

// 100,000 profiles, 100 per call, 180 calls per quarter of an hour.
func TestHundredThousandProfiles(t *testing.T) {
	calls := map[int]time.Duration{}
	for n := 1; n <= 2; n++ {
		l := &perCredential{by: map[string]*windows{}, t: t}
		for _, c := range []string{"one", "two"} {
			l.by[c] = &windows{limit: 180, window: 900 * second}
		}
		spec := Spec{Name: "profiles", Kind: Aligned, Limit: 180, Window: Span(900 * second)}
		r := &run{t: t, book: newBook(t, Options{}, table(map[string][]string{"read": {"profiles"}}, spec),
			[]string{"one", "two"}[:n]...), class: func() string { return "read" },
			workers: 1, rng: rand.New(rand.NewPCG(1, 1)), fast: 100 * time.Millisecond, slow: 100 * time.Millisecond}
		r.server = &server{limits: map[string][]limiter{"read": {l}}, dated: true}
		r.sent = func(t Ticket, _ time.Time) { l.who = append(l.who, t.Credential) }
		for r.server.taken < 1000 {
			r.end += time.Second
			r.loop()
		}
		calls[n] = r.end
		if r.end > 90*time.Minute || r.server.refused > 0 {
			t.Errorf("%d credentials: %s, %d refused", n, r.end, r.server.refused)
		}
	}
	t.Logf("%v", calls)
}
