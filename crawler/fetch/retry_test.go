package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
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
	if n := r.Again(due, now, "reset"); n.State != store.StateRefused || n.Reason != "unreachable: reset" ||
		!n.At.IsZero() {
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

// Many hosts share one address. In every order of arrival, the gap of the address is kept and each
// host gets a turn.
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
			if round >= 200 { // from now on all hosts come at the time they were given
				step, lazy = 200, false
			}
			now = now.Add(time.Duration(step) * time.Millisecond)
			for _, h := range names {
				if w := wake[h]; w.After(now) || lazy && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
					continue
				}
				until, _ := p.turn(a, h, gap, now)
				if until.IsZero() {
					if !last.IsZero() && now.Sub(last) < gap {
						t.Fatalf("a gap of %v", now.Sub(last))
					}
					now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "took")) * time.Millisecond)
					p.answered(a, Visit{}, now)
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
	hosts := map[string]netip.Addr{"a.example": netip.MustParseAddr("127.0.0.1"),
		"b.example": netip.MustParseAddr("127.0.0.1")}
	c := client(t, Options{Hosts: hosts, AddrDelay: 30 * time.Millisecond})
	gate := func(context.Context) error { return nil }
	if _, err := c.Get(t.Context(), Request{URL: "http://a.example" + port}, gate); err != nil {
		t.Fatal(err)
	}
	_, err := c.Get(t.Context(), Request{URL: "http://b.example" + port},
		func(context.Context) error { t.Error("gate passed"); return nil })
	var busy *BusyError
	if !errors.As(err, &busy) || asked != 1 {
		t.Fatalf("%v, asked %d", err, asked)
	}
	time.Sleep(time.Until(busy.Until))
	if _, err := c.Get(t.Context(), Request{URL: "http://b.example" + port}, gate); err != nil {
		t.Fatal(err)
	}
}

// After its own pace, the client calls Share.Ask. It calls Share.Done for every request that Ask
// allowed.
func TestSharedAddress(t *testing.T) {
	var asked atomic.Int32
	url := server(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1)%100 == 2 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	at := time.Now().Add(50 * time.Millisecond)
	var visits []Visit
	c := client(t, Options{AddrDelay: time.Nanosecond,
		Share: &Share{Ask: func(a netip.Addr, gap time.Duration, now time.Time) Leave {
			if !a.IsLoopback() || gap != time.Nanosecond || now.IsZero() {
				t.Error(a, now)
			}
			return Leave{From: at}
		}, Done: func(_ netip.Addr, v Visit, _ time.Time) { visits = append(visits, v) }}})
	gate := func(context.Context) error { asked.Add(100); return nil }
	var busy *BusyError
	if _, err := c.Get(t.Context(), Request{URL: url}, gate); !errors.As(err, &busy) || !busy.Until.Equal(at) ||
		asked.Load() != 0 || len(visits) != 0 {
		t.Errorf("%v, asked %d", err, asked.Load())
	}
	time.Sleep(time.Until(at))
	at = time.Time{}
	for range 2 {
		if _, err := c.Get(t.Context(), Request{URL: url}, gate); err != nil {
			t.Error(err)
		}
	}
	if asked.Load() != 202 || len(visits) != 2 || visits[0].Slowed || visits[0].Slow <= 0 || !visits[1].Slowed ||
		visits[1].After != 7*time.Second {
		t.Errorf("asked %d, %+v", asked.Load(), visits)
	}
}

// A request is sent before its leave ends, or not at all. A slow gate or a slow connection does not
// extend the leave.
func TestLeaveRunsOut(t *testing.T) {
	var asked atomic.Int32
	url := server(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	done := 0
	left := 30 * time.Millisecond
	share := &Share{Ask: func(_ netip.Addr, _ time.Duration,
		now time.Time) Leave {
		return Leave{Until: now.Add(left)}
	},
		Done: func(netip.Addr, Visit, time.Time) { done++ }}
	c := client(t, Options{AddrDelay: time.Nanosecond, Share: share})
	var busy *BusyError
	_, err := c.Get(t.Context(), Request{URL: url}, func(context.Context) error { time.Sleep(2 * left); return nil })
	if !errors.As(err, &busy) || asked.Load() != 0 || done != 1 {
		t.Errorf("after a slow gate: %v, asked %d, done %d", err, asked.Load(), done)
	}
	slow, err := net.Listen("tcp", "127.0.0.1:0") // the TLS handshake never completes
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	begun := time.Now()
	_, err = c.Get(t.Context(), Request{URL: "https://" + slow.Addr().String()}, nil)
	if !errors.As(err, &busy) || time.Since(begun) > 5*time.Second || done != 2 {
		t.Errorf("connecting: %v after %s, done %d", err, time.Since(begun), done)
	}
	left = time.Minute
	if _, err := c.Get(t.Context(), Request{URL: url}, nil); err != nil || asked.Load() != 1 || done != 3 {
		t.Errorf("%v, asked %d, done %d", err, asked.Load(), done)
	}
}

// A redirected robots.txt is fetched even though its second request has to wait for the address.
func TestRobotsRedirectedOnOneAddress(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.Redirect(w, r, "/there", http.StatusMovedPermanently)
			return
		}
		w.Write([]byte("User-agent: *\nDisallow: /x\n")) //nolint:errcheck // the test sees it
	})
	c := client(t, Options{AddrDelay: 30 * time.Millisecond})
	rob, used, why, err := c.Robots(t.Context(), url, time.Now(), func(context.Context) error { return nil })
	if err != nil || why != nil || used.Reqs != 2 || Allowed(rob, url+"/x") || !Allowed(rob, url+"/y") {
		t.Errorf("%+v, %d requests, %v, %v", rob, used.Reqs, why, err)
	}
}
