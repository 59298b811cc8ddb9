package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/store"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		header string
		want   time.Duration
		ok     bool
	}{
		{"120", 2 * time.Minute, true},
		{" 0 ", 0, true},
		{"99999999999999999999999", 24 * time.Hour, true},
		{"Fri, 01 May 2026 12:01:00 GMT", time.Minute, true},
		{"Friday, 01-May-26 12:01:00 GMT", time.Minute, true},
		{"Fri May  1 12:01:00 2026", time.Minute, true},
		{"Thu, 30 Apr 2026 12:00:00 GMT", 0, true},
		{"Fri, 01 May 2099 12:00:00 GMT", 24 * time.Hour, true},
		{"", 0, false}, {"-5", 0, false}, {"soon", 0, false}, {"1.5", 0, false},
	}
	for _, tt := range tests {
		if d, ok := RetryAfter(tt.header, at); d != tt.want || ok != tt.ok {
			t.Errorf("%q: %v %v, want %v %v", tt.header, d, ok, tt.want, tt.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Fri, 01 May 2026 12:01:00 GMT")
	f.Fuzz(func(t *testing.T, header string) {
		if d, ok := RetryAfter(header, at); d < 0 || d > maxRetryAfter || !ok && d != 0 {
			t.Fatal(d, ok)
		}
	})
}

func TestRetry(t *testing.T) {
	r := Retry{}
	due, now := store.Due{}, at
	var waits []time.Duration
	for range 4 {
		n := r.Again(due, now, "reset")
		if n.State != store.StatePending || n.Reason != "reset" {
			t.Fatalf("%+v", n)
		}
		waits = append(waits, n.At.Sub(now))
		due.Attempts, now = n.Attempts, n.At
	}
	if waits[0] != 5*time.Second || waits[3] != 135*time.Second {
		t.Errorf("waits %v", waits)
	}
	if n := r.Again(due, now, "reset"); n.State != store.StateRefused || n.Reason != "unreachable: reset" || !n.At.IsZero() {
		t.Errorf("the last attempt: %+v", n)
	}
}

func TestBackOff(t *testing.T) {
	r, s := Retry{}, store.Site{}
	var waits []time.Duration
	for range 12 {
		before := s.NextAllowed
		r.Slowed(&s, at, "")
		if s.NextAllowed.Before(before) {
			t.Fatal("hurried")
		}
		waits = append(waits, s.BackOff)
	}
	if waits[0] != 5*time.Second || waits[1] != 10*time.Second || waits[11] != time.Hour {
		t.Errorf("waits %v", waits)
	}
	r.Slowed(&s, at, "7200")
	if s.NextAllowed != at.Add(2*time.Hour) {
		t.Error(s.NextAllowed)
	}
	for range 20 {
		r.Answered(&s)
	}
	if s.BackOff != 0 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	for range 5 {
		if r.Down(s) {
			t.Fatal("down too soon")
		}
		r.Failed(&s, at)
	}
	if !r.Down(s) {
		t.Error("not down")
	}
}

// Many hosts on one address: whatever the order in which they come, the gap of
// the address holds and everybody gets a turn.
func TestAddressPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &paces{addrs: map[netip.Addr]*pace{}}
		a := netip.MustParseAddr("192.0.2.1")
		gap := time.Second
		now := at
		wake, sent := map[string]time.Time{}, map[string]int{}
		var last time.Time
		names := []string{"a", "b", "c", "d", "e", "f"}
		for _, h := range names {
			wake[h] = at
		}
		for round := range 300 {
			step, lazy := rapid.IntRange(0, 700).Draw(t, "ms"), true
			if round >= 200 { // then all come when they are told to, and time goes on
				step, lazy = 200, false
			}
			now = now.Add(time.Duration(step) * time.Millisecond)
			for _, h := range names {
				if w := wake[h]; w.After(now) || lazy && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
					continue
				}
				until := p.turn(a, h, gap, now)
				if until.IsZero() {
					if !last.IsZero() && now.Sub(last) < gap {
						t.Fatalf("a gap of %v", now.Sub(last))
					}
					now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "took")) * time.Millisecond)
					p.answered(a, now)
					last, wake[h] = now, now
					sent[h]++
				} else if wake[h] = until; !until.After(now) {
					t.Fatal("told to come now, and refused")
				}
			}
		}
		if len(sent) != len(names) {
			t.Fatalf("only %v got a turn", sent)
		}
	})
}

func TestBusyAddress(t *testing.T) {
	asked := 0
	url := server(t, func(http.ResponseWriter, *http.Request) { asked++ })
	port := url[strings.LastIndex(url, ":"):]
	hosts := map[string]netip.Addr{"a.example": netip.MustParseAddr("127.0.0.1"), "b.example": netip.MustParseAddr("127.0.0.1")}
	c := client(t, Options{Hosts: hosts, AddrDelay: 30 * time.Millisecond})
	gate := func(context.Context) error { return nil }
	if _, err := c.Get(t.Context(), Request{URL: "http://a.example" + port}, gate); err != nil {
		t.Fatal(err)
	}
	_, err := c.Get(t.Context(), Request{URL: "http://b.example" + port}, func(context.Context) error { t.Error("gate passed"); return nil })
	var busy *BusyError
	if !errors.As(err, &busy) || asked != 1 {
		t.Fatalf("%v, asked %d", err, asked)
	}
	time.Sleep(time.Until(busy.Until))
	if _, err := c.Get(t.Context(), Request{URL: "http://b.example" + port}, gate); err != nil {
		t.Fatal(err)
	}
}
