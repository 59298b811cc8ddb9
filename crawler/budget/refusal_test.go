package budget

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flaky refuses calls between from and to for another cause than its limit.
type flaky struct {
	limiter
	from, to int64
	bare     bool // a refusal has no rate limit headers, like one from a proxy
	after    string
	busy     bool // the last call was refused for this cause
}

func (f *flaky) ask(t int64) (bool, int64, int64) {
	f.busy = f.from <= t && t < f.to
	ok, left, reset := f.limiter.ask(t)
	return ok && !f.busy, left, reset
}

// answers adjusts the headers of a refusal.
func (f *flaky) answers(h http.Header, refused bool) {
	if refused && f.busy {
		if f.bare {
			clear(h)
		}
		if f.after != "" {
			h.Set("Retry-After", f.after)
		}
	}
}

// A server refuses the first calls for a while and then works. The Book uses, and Status shows, the
// calls that the headers of later responses report as left.
func TestRefusalIsForgottenWhenHeadersSaySo(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after string
		bare  bool
		from  time.Duration
		down  time.Duration
	}{
		{"one, with Retry-After", "30", true, 0, 50 * time.Millisecond},
		{"one, with Retry-After and headers", "30", false, 0, 50 * time.Millisecond},
		{"one, with headers only", "", false, 0, 50 * time.Millisecond},
		{"one in the middle", "30", false, 2 * time.Minute, 1500 * time.Millisecond},
		{"one in the middle, bare", "", true, 2 * time.Minute, 1500 * time.Millisecond},
		{"several in a row", "30", false, 0, 10 * time.Minute},
		{"several in a row, without a word", "", false, time.Minute, 7 * time.Minute},
	} {
		for _, kind := range []Kind{Aligned, Sliding} {
			start := epoch.UnixNano() + int64(tt.from)
			l := &flaky{limiter: &windows{limit: 300, window: 300 * second}, from: start, to: start + int64(tt.down),
				bare: tt.bare, after: tt.after}
			for range 10 { // earlier calls of this peer
				l.limiter.ask(epoch.UnixNano() - second)
			}
			s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: 300, form: "iso", dated: true,
				lie: l.answers}
			spec := Spec{Name: "b", Kind: kind, Limit: 300, Window: Span(300 * second), Spoken: true}
			r := &run{t: t, book: newBook(t, Options{Spread: true}, table(map[string][]string{"read": {"b"}}, spec),
				"one"), server: s, class: func() string { return "read" },
				workers: 1, rng: rand.New(rand.NewPCG(1, 1)), fast: 10 * time.Millisecond, slow: 20 * time.Millisecond}
			r.end = tt.from + tt.down + 7*time.Minute // the longest wait after the refusals
			if tt.after == "" && tt.down > time.Minute {
				r.end += 6 * time.Minute // that wait had doubled
			}
			r.loop()
			before, refused := s.taken, s.refused
			if refused == 0 || refused > 30 {
				t.Errorf("%s, %s: %d refused", tt.name, kind, refused)
			}
			r.end += 25 * time.Minute
			r.loop()
			if got := s.taken - before; got < 1450 || s.refused > refused {
				t.Errorf("%s, %s: %d calls of 1500 in 25 minutes, %d refused", tt.name, kind, got, s.refused-refused)
			}
			st := r.book.Status(at(r.now)).Buckets[0]
			if st.Found != 0 || st.Limit != 300 || st.By != ByHeaders {
				t.Errorf("%s, %s: shown %+v", tt.name, kind, st)
			}
		}
	}
}

// The first response is a refusal, the second reports 290 of 300 left. Next and Status then report
// 290 left.
func TestHeadersBeatWhatARefusalFound(t *testing.T) {
	book := newBook(t, Options{}, mustDefault(t, "mastodon"), "one")
	now := epoch
	left := 292
	call := func(status int, h http.Header) {
		t.Helper()
		ticket, err := book.Reserve(now, "read", Ask{})
		if err != nil {
			t.Fatal(err)
		}
		h.Set("Date", now.Format(http.TimeFormat))
		if err := book.Settle(now, ticket, Answer{Status: status, Header: h}); err != nil {
			t.Fatal(err)
		}
	}
	// the second refusal follows the wait of the first
	for _, refusal := range []http.Header{{"Retry-After": {"30"}}, {"Retry-After": {"30"}}, {}} {
		call(429, refusal)
		w, err := book.Next(now, "read", Ask{})
		if err != nil || w.At.Sub(now) < 10*time.Second {
			t.Fatalf("no wait after a refusal: %+v %v", w, err)
		}
		now = w.At
	}
	for range 3 {
		h := http.Header{}
		left--
		set(h, "X-RateLimit-", 300, int64(left),
			now.Truncate(300*time.Second).Add(300*time.Second).Format("2006-01-02T15:04:05.000000Z"))
		call(200, h)
		for _, s := range book.Status(now).Buckets {
			if s.Name == "token/5m" && (s.Free != int64(left) || s.Limit != 300 || s.Found != 0 || s.By != ByHeaders) {
				t.Errorf("%d left by the headers: %+v", left, s)
			}
		}
	}
}

// A wait for a response has Answer set, and ends before its time when the response arrives.
func TestWaitForAnAnswer(t *testing.T) {
	book := newBook(t, Options{}, mustDefault(t, "mastodon"), "one")
	first, err := book.Reserve(epoch, "read", Ask{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := book.Next(epoch, "read", Ask{})
	if err != nil || !w.Answer || !w.At.Equal(epoch.Add(2*time.Minute)) {
		t.Fatalf("beside a first call: %+v, %v", w, err)
	}
	now := epoch.Add(time.Second)
	if err := book.Settle(now, first, Answer{Status: 200}); err != nil {
		t.Fatal(err)
	}
	if w, err = book.Next(now, "read", Ask{}); err != nil || w.Answer || w.At.After(now) {
		t.Errorf("after its answer: %+v, %v", w, err)
	}
}

// After any refusal, at any time in a window, the next call waits.
func TestRefusalAlwaysWaits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom([]Kind{Aligned, Sliding, Tokens, Reported, Adaptive}).Draw(rt, "kind")
		spec := Spec{Name: "b", Kind: kind, Limit: 300, Window: Span(300 * second), Spoken: true}
		if kind == Reported {
			spec = Spec{Name: "b", Kind: Reported}
		}
		book := newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, spec), "one")
		edge := epoch.Truncate(5 * time.Minute).Add(5 * time.Minute)
		now := edge.Add(time.Duration(rapid.Int64Range(-40*second, 40*second).Draw(rt, "from the edge")))
		skew := time.Duration(rapid.Int64Range(-30, 30).Draw(rt, "skew") * second)
		for range rapid.IntRange(1, 4).Draw(rt, "refusals") {
			ticket, err := book.Reserve(now, "read", Ask{})
			if err != nil {
				rt.Fatal(err)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, 5*second).Draw(rt, "takes")))
			h := http.Header{}
			server := now.Add(skew)
			if rapid.Bool().Draw(rt, "dated") {
				h.Set("Date", server.Format(http.TimeFormat))
			}
			if form := rapid.SampledFrom([]string{"none", "iso", "epoch", "policy", "draft7", "draft8"}).Draw(rt,
				"form"); form != "none" {
				reset := server.Add(time.Duration(rapid.Int64Range(-20, 320).Draw(rt, "reset") * second))
				if rapid.Bool().Draw(rt, "honest") {
					reset = server.Truncate(5 * time.Minute).Add(5 * time.Minute)
				}
				forms[form](h, 300, rapid.SampledFrom([]int64{0, 1, 290}).Draw(rt, "left"), 300*second,
					reset.UnixNano(), server.UnixNano())
			}
			if after := rapid.SampledFrom([]string{"", "0", "00", "-1", "1", "30", "soon", "past"}).Draw(rt,
				"after"); after == "past" {
				h.Set("Retry-After", server.Add(-time.Hour).Format(http.TimeFormat))
			} else if after != "" {
				h.Set("Retry-After", after)
			}
			if err := book.Settle(now, ticket, Answer{Status: rapid.SampledFrom([]int{429, 420}).Draw(rt, "status"),
				Header: h}); err != nil {
				rt.Fatal(err)
			}
			w, err := book.Next(now, "read", Ask{})
			if err != nil || w.At.Sub(now) < time.Second/4 || w.At.Sub(now) > 25*time.Hour {
				rt.Fatalf("after %v: %+v %v", h, w, err)
			}
			now = w.At
		}
	})
}

// A server has a limit below the table's. It only sends a Retry-After, or its headers report room.
// The Book learns the limit, and does not keep calling a server that refuses everything.
func TestRefusalsThatAreALimit(t *testing.T) {
	reset := func(now int64) string {
		return fmt.Sprint((floor(now, 300*second)+1)*300 - now/second)
	}
	for _, kind := range []Kind{Aligned, Sliding} {
		for name, lie := range map[string]func(h http.Header, refused bool, now int64){
			"only Retry-After": func(h http.Header, refused bool, now int64) {
				if clear(h); refused {
					h.Set("Retry-After", reset(now))
				}
			},
			"Retry-After, and headers that say more": func(h http.Header, refused bool, now int64) {
				if set(h, "X-RateLimit-", 300, 290,
					time.Unix(0, (floor(now, 300*second)+1)*300*second).UTC().Format(time.RFC3339)); refused {
					h.Set("Retry-After", reset(now))
				}
			},
			"headers that say more": func(h http.Header, _ bool, now int64) {
				set(h, "X-RateLimit-", 300, 290,
					time.Unix(0, (floor(now, 300*second)+1)*300*second).UTC().Format(time.RFC3339))
			},
		} {
			l := &windows{limit: 200, window: 300 * second}
			s := &server{limits: map[string][]limiter{"read": {l}}, speaks: l, limit: 200, form: "iso", dated: true}
			spec := Spec{Name: "b", Kind: kind, Limit: 300, Window: Span(300 * second), Spoken: true}
			r := &run{t: t, book: newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, spec), "one"),
				server: s, class: func() string { return "read" }, workers: 1,
				rng: rand.New(rand.NewPCG(1, 1)), fast: 20 * time.Millisecond, slow: 200 * time.Millisecond,
				end: 12 * time.Hour}
			s.lie = func(h http.Header, refused bool) { lie(h, refused, epoch.UnixNano()+r.now) }
			r.loop()
			use := float64(s.taken) / l.whole(int64(r.end))
			t.Logf("%s, %s: %.3f used, %d refused", name, kind, use, s.refused)
			if use < 0.95 || s.refused > 60 {
				t.Errorf("%s, %s: %.3f used, %d refused in 12 hours", name, kind, use, s.refused)
			}
		}
		// hostile server: it refuses everything, and its headers report room
		for _, after := range []string{"", "0", "1", "30"} {
			s := &server{limits: map[string][]limiter{"read": {&windows{window: 300 * second}}}, dated: true}
			spec := Spec{Name: "b", Kind: kind, Limit: 300, Window: Span(300 * second), Spoken: true}
			r := &run{t: t, book: newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, spec), "one"),
				server: s, class: func() string { return "read" }, workers: 3,
				rng: rand.New(rand.NewPCG(1, 1)), fast: 20 * time.Millisecond, slow: 200 * time.Millisecond,
				end: 12 * time.Hour}
			s.lie = func(h http.Header, _ bool) {
				set(h, "X-RateLimit-", 300, 290, "")
				if after != "" {
					h.Set("Retry-After", after)
				}
			}
			r.loop()
			t.Logf("all refused, Retry-After %q, %s: %d calls", after, kind, s.refused)
			if s.refused > 200 {
				t.Errorf("all refused, Retry-After %q, %s: %d calls in 12 hours", after, kind, s.refused)
			}
		}
	}
}

// A found limit survives a restart, even if it is only remembered.
func TestRefusalsOutliveARestart(t *testing.T) {
	tb := mustDefault(t, "mastodon")
	book := newBook(t, Options{}, tb, "one")
	now := epoch
	for i := range 20 {
		ticket, err := book.Reserve(now, "read", Ask{})
		if err != nil {
			t.Fatal(err)
		}
		a := Answer{Status: 200}
		if i == 19 {
			a = Answer{Status: 429, Header: http.Header{"Retry-After": {"30"}}}
		}
		if err := book.Settle(now, ticket, a); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := book.Snapshot("one")
	if err != nil {
		t.Fatal(err)
	}
	again := newBook(t, Options{}, tb, "one")
	if err := again.Restore("one", snap, nil, now); err != nil {
		t.Fatal(err)
	}
	if got, want := again.ledger("one").find("token/5m").cut, book.ledger("one").find("token/5m").cut; got != want ||
		got.found() != 19 || got.limit != 0 {
		t.Errorf("%+v, was %+v", got, want)
	}
	if again, err := again.Snapshot("one"); err != nil || string(again) != string(snap) {
		t.Errorf("another snapshot: %v", err)
	}
}
