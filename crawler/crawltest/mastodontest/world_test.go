package mastodontest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition/racetest"
)

// get sends a GET request to the world.
func get(t *testing.T, w *World, from, path, token string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m.test"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.RoundTripper(netip.MustParseAddr(from)).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// Worlds with the same Options have the same events, independent of how often and when they are
// read.
func TestOneStory(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	o := Options{Seed: 13, People: 60, Clock: func() time.Time { return now }}
	often, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	polls := 200
	if racetest.Enabled {
		polls = 20
	}
	for range polls {
		now = now.Add(1000 * time.Hour / time.Duration(polls))
		get(t, often, "127.0.0.1", "/api/v1/timelines/public", "")
	}
	once, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a, b := often.Truth(), once.Truth()
	if !reflect.DeepEqual(a, b) {
		t.Fatal("two stories of one seed")
	}
	o.Seed = 14
	other, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(a, other.Truth()) {
		t.Fatal("one story of two seeds")
	}
	var boosts, replies, edits, deletes, tags, mentions, most, posts, suspended, moved int
	for _, p := range a.Posts {
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&boosts, p.Boost != "")
		count(&replies, p.Reply != "")
		count(&edits, len(p.Versions) > 1)
		count(&deletes, !p.Shown)
		count(&tags, len(p.Tags) > 0)
		count(&mentions, len(p.Mentions) > 0)
		posts++
	}
	for _, acct := range a.Accounts {
		most = max(most, len(acct.Posts))
		if acct.Suspended {
			suspended++
		}
		if acct.Moved != "" {
			moved++
		}
	}
	t.Logf("%d posts: %d boosts, %d replies, %d edits, %d deleted, %d with tags, %d with mentions; %d of the most active, %d suspended, %d moved", posts, boosts, replies, edits, deletes, tags, mentions, most, suspended, moved)
	if min(boosts, replies, edits, deletes, tags, mentions, suspended, moved) == 0 || most < 3*posts/len(a.Accounts) {
		t.Error("something never happens, or the tail is light")
	}
}

// The limits of Mastodon are exact: windows are aligned, each address and each token has its own,
// and paging counts twice.
func TestLimitsAreExact(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 2, 0, 0, time.UTC) // two minutes into a window
	now := start
	w, err := New(Options{People: 10, Clock: func() time.Time { return now }, Limits: MastodonLimits(),
		Tokens: map[string]string{"t": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(from, path, token string) int {
		for n := range 400 {
			if resp, _ := get(t, w, from, path, token); resp.StatusCode == http.StatusTooManyRequests {
				if resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") != "0" {
					t.Errorf("%v", resp.Header)
				}
				return n
			}
		}
		return -1
	}
	for _, c := range []struct {
		after             time.Duration
		from, path, token string
		want              int
	}{
		{0, "127.0.0.1", "/api/v1/instance", "", 300},
		{0, "127.0.0.2", "/api/v1/instance", "", 300},
		{0, "127.0.0.1", "/api/v1/instance", "t", 300},
		{0, "::1", "/api/v1/instance", "", 300},
		{0, "::2", "/api/v1/instance", "", 0}, // the same /64
		{3 * time.Minute, "127.0.0.1", "/api/v1/instance?max_id=1", "", 300},
		// the paging window has not ended
		{8 * time.Minute, "127.0.0.1", "/api/v1/instance?max_id=1", "", 0},
		{0, "127.0.0.1", "/api/v1/instance", "", 299}, // the refused request was counted here
		{13 * time.Minute, "127.0.0.1", "/api/v1/instance?max_id=1", "", 300},
	} {
		now = start.Add(c.after)
		if got := pass(c.from, c.path, c.token); got != c.want {
			t.Errorf("after %v, %s %s %q: %d pass, want %d", c.after, c.from, c.path, c.token, got, c.want)
		}
	}
	if r := w.Report(); r.Refused != 9 || r.ByAddr[netip.MustParseAddr("127.0.0.2")] != 301 {
		t.Errorf("%+v", r)
	}
	rolling, err := New(Options{People: 10, Clock: func() time.Time { return now }, Limits: GoToSocialLimits()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{30 * time.Minute, 200}, {34 * time.Minute, 429}, {34*time.Minute + 59*time.Second, 429},
		{35 * time.Minute, 200}} {
		now = start.Add(c.after)
		last := 0
		for range 301 {
			resp, _ := get(t, rolling, "127.0.0.1", "/api/v1/instance", "")
			if last = resp.StatusCode; c.want == 200 && last == 200 {
				break
			}
		}
		if c.after == 30*time.Minute {
			for range 300 {
				get(t, rolling, "127.0.0.1", "/api/v1/instance", "")
			}
		}
		if last != c.want {
			t.Errorf("after %v: %d, want %d", c.after, last, c.want)
		}
	}
}

// The world is also served over sockets. It rejects an unknown token.
func TestServedOverSockets(t *testing.T) {
	w, err := New(Options{Tokens: map[string]string{"s3cret": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.Handler())
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/api/v1/timelines/public?limit=3")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var posts []map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&posts); err != nil || len(posts) != 3 ||
		!strings.Contains(resp.Header.Get("Link"), `rel="next"`) {
		t.Errorf("%v %v %v", posts, err, resp.Header)
	}
	if resp, _ := get(t, w, "127.0.0.1", "/api/v1/instance", "wrong"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong token: %s", resp.Status)
	}
	if _, err := New(Options{People: -1, Rate: 1e9, Limits: []Limit{{}}}); err == nil ||
		strings.Count(err.Error(), "storytest:") != 3 {
		t.Errorf("%v", err)
	}
}
