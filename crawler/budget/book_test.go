package budget

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The built-in tables are valid, and each bucket has a source. ParseTable reports all faults at
// once.
func TestTables(t *testing.T) {
	if len(Services()) < 6 {
		t.Error(Services())
	}
	for _, s := range Services() {
		tb := mustDefault(t, s)
		if err := tb.Validate(); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		for _, b := range tb.Buckets {
			if b.Source == "" {
				t.Errorf("%s: %s is from nowhere", s, b.Name)
			}
		}
	}
	_, err := ParseTable([]byte(`{"service":"","buckets":[{"name":"a","kind":"odd","limit":-1},{"name":"a","kind":"told","window":"1s"},
		{"name":"b","kind":"aligned","limit":1,"window":"1s"},{"name":"c d","kind":"sliding","limit":1,"window":"1m","unit":"bits"}],
		"classes":[{"name":"x","buckets":["none"],"price":{"item":-1}},{"name":"x"}]}`))
	for _, want := range []string{`service ""`, `kind "odd"`, "limit -1", "window 0s", `bucket "a" twice`,
		"only headers tell", "under a minute", "bad name", `unit "bits"`, `"none" is unknown`, "price 0 + -1",
		`class "x" is nameless or there twice`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

// No table makes a Book panic or fail other than with a wait.
func FuzzParseTable(f *testing.F) {
	f.Add([]byte(`{"service":"s","buckets":[{"name":"a","kind":"aligned","limit":1,"window":"month"}],"classes":[{"name":"c","buckets":["a"]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tb, err := ParseTable(b)
		if err != nil {
			return
		}
		book := newBook(t, Options{}, tb, "one")
		now := epoch
		for _, c := range tb.Classes {
			for range 3 {
				ticket, err := book.Reserve(now, c.Name, Ask{Items: 2})
				if err == nil {
					err = book.Settle(now, ticket,
						Answer{Status: 429, Header: http.Header{"X-Ratelimit-Remaining": {"0"}}})
				}
				var w *WaitError
				if err != nil && !asWait(err, &w) {
					t.Fatal(err)
				}
				now = now.Add(time.Minute)
			}
		}
		book.Status(now)
	})
}

// New reports all faults of the options at once.
func TestOptionsSayAllFaults(t *testing.T) {
	_, err := New("s", Options{Flight: time.Hour, Skew: -1, Limits: map[string]int64{"a": -1}})
	for _, want := range []string{"flight 1h0m0s", "skew -1ns", `limit -1 of "a"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

// Tests what readPolicies returns for headers of each form.
func TestReadPolicies(t *testing.T) {
	now := epoch.Truncate(time.Second)
	in := func(s int64) int64 { return s }
	c := clock{lo: 0, hi: 0, at: 1}
	for _, tt := range []struct {
		name                string
		h                   map[string]string
		limit, left, window int64
		reset               int64 // seconds from now, 0 = none
	}{
		{"mastodon", map[string]string{"X-RateLimit-Limit": "300", "X-RateLimit-Remaining": "299",
			"X-RateLimit-Reset": now.Add(77 * time.Second).Format("2006-01-02T15:04:05.000000Z")}, 300, 299, -1, 77},
		{"x", map[string]string{"x-rate-limit-limit": "450", "x-rate-limit-remaining": "0",
			"x-rate-limit-reset": itoa(now.Unix() + 900)}, 450, 0, -1, 900},
		{"pds", map[string]string{"RateLimit-Limit": "3000", "RateLimit-Remaining": "2999",
			"RateLimit-Reset": itoa(now.Unix() + 300), "RateLimit-Policy": "3000;w=300"}, 3000, 2999, 300, 300},
		{"milliseconds", map[string]string{"X-RateLimit-Remaining": "5",
			"X-RateLimit-Reset": itoa(now.UnixMilli() + 4000)}, -1, 5, -1, 4},
		{"draft 3", map[string]string{"RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": "9",
			"RateLimit-Reset": "30"}, 100, 9, 60, 30},
		{"draft 7", map[string]string{"RateLimit": "limit=100, remaining=50, reset=5"}, 100, 50, -1, 5},
		{"draft 8", map[string]string{"RateLimit": `"default";r=50;t=30`, "RateLimit-Policy": `"default";q=100;w=60`},
			100, 50, 60, 30},
		{"nonsense", map[string]string{"X-RateLimit-Limit": "-1", "X-RateLimit-Remaining": "many",
			"X-RateLimit-Reset": "soon"}, 0, 0, 0, 0},
		{"1970", map[string]string{"X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1000000000"}, -1, 5, -1, 0},
	} {
		h := http.Header{}
		for k, v := range tt.h {
			h.Set(k, v)
		}
		ps := readPolicies(h, now.UnixNano(), now.UnixNano(), &c)
		if tt.limit == 0 {
			if len(ps) > 0 {
				t.Errorf("%s: %+v", tt.name, ps)
			}
			continue
		}
		if len(ps) != 1 {
			t.Errorf("%s: %+v", tt.name, ps)
			continue
		}
		p := ps[0]
		window := tt.window
		if window > 0 {
			window *= second
		}
		reset := now.UnixNano() + in(tt.reset)*second
		if p.limit != tt.limit || p.left != tt.left || p.window != window || tt.reset > 0 &&
			(p.lo > reset || p.hi < reset || p.hi-p.lo > 2*second) || tt.reset == 0 && p.hi != 0 {
			t.Errorf("%s: %+v", tt.name, p)
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// A Retry-After of either form causes a wait, even if the server's clock is wrong. A 503 holds
// every class and credential. Status and Next name the bucket or hold that delays a call.
func TestRetryAfterHolds(t *testing.T) {
	ahead := 90 * time.Second
	for name, tt := range map[string]struct {
		status int
		header func(now time.Time) http.Header
		class  string
		wait   time.Duration
		held   bool
	}{
		"seconds": {429, func(time.Time) http.Header { return http.Header{"Retry-After": {"290"}} }, "read",
			290 * time.Second, true},
		"other classes not": {429, func(time.Time) http.Header { return http.Header{"Retry-After": {"290"}} }, "media",
			0, false},
		"a date": {429, func(now time.Time) http.Header {
			server := now.Add(ahead)
			return http.Header{"Date": {server.Format(http.TimeFormat)},
				"Retry-After": {server.Add(time.Minute).Format(http.TimeFormat)}}
		}, "read", 58 * time.Second, true},
		"overload holds all": {503, func(time.Time) http.Header { return http.Header{"Retry-After": {"30"}} }, "media",
			30 * time.Second, true},
		"overload, no word": {503, func(time.Time) http.Header { return http.Header{} }, "read", 10 * time.Second,
			true},
	} {
		b := newBook(t, Options{}, mustDefault(t, "mastodon"), "one")
		ticket, err := b.Reserve(epoch, "read", Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Settle(epoch, ticket, Answer{Status: tt.status, Header: tt.header(epoch)}); err != nil {
			t.Fatal(err)
		}
		w, err := b.Next(epoch, tt.class, Ask{})
		if err != nil || (w.Bucket == "hold") != tt.held || tt.held &&
			(w.At.Sub(epoch) < tt.wait || w.At.Sub(epoch) > tt.wait+4*time.Second) {
			t.Errorf("%s: %+v %v", name, w, err)
		}
		if n := len(b.Status(epoch).Holds); n != 1 {
			t.Errorf("%s: %d holds shown", name, n)
		}
	}
}

// Of two credentials, the Book chooses the one whose allowance lapses sooner.
func TestChoosesWhatLapsesSoonest(t *testing.T) {
	specs := []Spec{{Name: "b", Kind: Aligned, Limit: 100, Window: Span(15 * time.Minute)}}
	long := []Spec{{Name: "b", Kind: Aligned, Limit: 100, Window: Span(24 * time.Hour)}}
	b := newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, specs...))
	for name, s := range map[string][]Spec{"day": long, "quarter": specs} {
		if err := b.Add(name, table(map[string][]string{"read": {"b"}}, s...), epoch); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	for range 150 {
		ticket, err := b.Reserve(epoch, "read", Ask{})
		if err != nil {
			t.Fatal(err)
		}
		got[ticket.Credential]++
		if err := b.Settle(epoch, ticket, Answer{Status: 200}); err != nil {
			t.Fatal(err)
		}
		if got["day"] > 0 && got["quarter"] < 99 {
			t.Fatalf("%v", got)
		}
	}
	if got["quarter"] != 100 {
		t.Error(got)
	}
}

// Each error is the documented one. A call that is not settled counts as made, and is no longer
// open.
func TestErrors(t *testing.T) {
	b := newBook(t, Options{}, mustDefault(t, "mastodon"))
	if _, err := b.Next(epoch, "read", Ask{}); !errors.Is(err, ErrCredential) {
		t.Error(err)
	}
	if err := b.Add("no good", mustDefault(t, "mastodon"), epoch); err == nil {
		t.Error("a name with a space")
	}
	if err := b.Add("one", mustDefault(t, "mastodon"), epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reserve(epoch, "reed", Ask{}); !errors.Is(err, ErrClass) {
		t.Error(err)
	}
	ticket, err := b.Reserve(epoch, "read", Ask{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, ErrTicket} {
		if err := b.Settle(epoch, ticket, Answer{Status: 200}); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := b.Reserve(epoch, "read", Ask{}); err != nil {
		t.Fatal(err)
	}
	if s := b.Status(epoch.Add(10 * time.Minute)); s.Buckets[1].Open != 0 || s.Buckets[1].Name != "user/5m" ||
		s.Buckets[1].Free != 1500 {
		t.Errorf("what was never settled is over: %+v", s.Buckets[1])
	}
}

// A call in flight across the end of an aligned window counts in both windows.
func TestOnItsWayOverTheEdge(t *testing.T) {
	spec := Spec{Name: "b", Kind: Aligned, Limit: 2, Window: Span(5 * time.Minute)}
	b := newBook(t, Options{}, table(map[string][]string{"read": {"b"}}, spec), "one")
	now := epoch
	call := func() (Ticket, error) { return b.Reserve(now, "read", Ask{}) }
	first, err := call()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Settle(now, first,
		Answer{Status: 200, Header: http.Header{"Date": {now.Format(http.TimeFormat)}}}); err != nil {
		t.Fatal(err)
	}
	edge := time.Date(2026, 5, 1, 12, 5, 0, 0, time.UTC)
	now = edge.Add(-3 * time.Second)
	late, err := call()
	if err != nil {
		t.Fatal(err)
	}
	now = edge.Add(5 * time.Second)
	if _, err := call(); err != nil {
		t.Error(err)
	}
	var w *WaitError
	if _, err := call(); !asWait(err, &w) || w.Bucket != "b" {
		t.Errorf("a third call: %v", err)
	}
	if err := b.Settle(now, late, Answer{NotSent: true}); err != nil {
		t.Error(err)
	}
	if _, err := call(); err != nil {
		t.Errorf("what was not sent is free again: %v", err)
	}
}
