package blueskytest

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Worlds with the same Options have the same events, independent of how often and when they are
// read.
func TestOneStory(t *testing.T) {
	clock := storytest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o := Options{Seed: 13, People: 30, Clock: clock.Now}
	often, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		clock.Add(24 * time.Hour)
		often.Truth()
	}
	once, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if a := often.Truth(); !reflect.DeepEqual(a, once.Truth()) || len(a.Posts) < 50 {
		t.Errorf("two stories of one seed, or %d posts", len(a.Posts))
	}
}

// The limit of the PDS is exact, per address. The AppView has none.
func TestLimitsAreExact(t *testing.T) {
	clock := storytest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w, err := New(Options{People: 5, Clock: clock.Now, Limits: PDSLimits()})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(from, host string) (n int, last *http.Response) {
		for ; n < 3100; n++ {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"https://"+host+"/xrpc/com.atproto.sync.getRepoStatus?did=x", nil)
			if err != nil {
				t.Fatal(err)
			}
			if last, err = w.RoundTripper(netip.MustParseAddr(from)).RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			if last.StatusCode == http.StatusTooManyRequests {
				break
			}
		}
		return n, last
	}
	for _, c := range []struct {
		after      time.Duration
		from, host string
		want       int
	}{{0, "127.0.0.1", "pds.b.test", 3000}, {0, "127.0.0.2", "pds.b.test", 3000}, {0, "127.0.0.1", "view.b.test", 3100},
		{299 * time.Second, "127.0.0.1", "pds.b.test", 0}, {time.Second, "127.0.0.1", "pds.b.test", 3000}} {
		clock.Add(c.after)
		n, last := pass(c.from, c.host)
		if n != c.want || n < 3100 &&
			(last.Header.Get("RateLimit-Remaining") != "0" || last.Header.Get("Retry-After") == "") {
			t.Errorf("%+v: %d pass, %v", c, n, last.Header)
		}
	}
}

// The world is also served over sockets. Serve reports its errors immediately.
func TestServedOverSockets(t *testing.T) {
	w, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.Handler())
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/xrpc/app.bsky.actor.getProfile?actor=" + w.IDs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%v", resp.Status)
	}
	if _, err := New(Options{People: -1, Rate: 1e9, Limits: []Limit{{}}}); err == nil ||
		strings.Count(err.Error(), "storytest:") != 3 {
		t.Errorf("%v", err)
	}
}
