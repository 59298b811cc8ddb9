package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testToken = "0123456789abcdef-token"
	testKey   = partition.Key("web:https://example.org/a")
)

var testTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// fake is a Peer that returns fixed values and echoes the request.
func fake() Peer {
	return Peer{
		Status: func(context.Context) (Status, error) {
			return Status{ID: "peer1", Swarm: "s", Records: 7, Limits: []string{"hours"},
				Stops: map[string]int64{"robots": 2}}, nil
		},
		Peers: func(context.Context) ([]PeerInfo, error) {
			return []PeerInfo{
				{Member: partition.Member{ID: "peer1", Capacity: 4, Location: &partition.Point{Lat: 1, Lon: 2}},
					State: "alive", Slices: 3, Self: true, Status: &Status{ID: "peer1"}},
				{Member: partition.Member{ID: "peer2"}, State: "gone"},
			}, nil
		},
		Owner: func(_ context.Context, k partition.Key) (Owner, error) {
			return Owner{Key: k, Slice: "h/001", Replicas: []string{"peer2"}, Addrs: []string{"/ip4/127.0.0.1/tcp/1"}},
				nil
		},
		Show: func(_ context.Context, k partition.Key) (Shown, error) {
			return Shown{Key: k, Owner: "peer2", Known: true, State: "done",
				Record: &store.Record{V: 1, Key: k, Title: "t"}}, nil
		},
		Seed: func(_ context.Context, keys []partition.Key) ([]SeedAnswer, error) {
			answers := make([]SeedAnswer, len(keys))
			for i, k := range keys {
				answers[i] = SeedAnswer{Key: string(k), Answer: "admitted", Owner: "peer2"}
			}
			return answers, nil
		},
		Query: func(_ context.Context, q Query) (Answer, error) {
			return Answer{
				Hits: []Hit{{Key: testKey, Title: q.Q, Kind: q.Kind, Lang: q.Lang, Snippet: q.Site,
					Score: float64(q.Limit), FetchedAt: q.Since}}, Total: 9,
				Coverage: Coverage{SlicesAnswered: 1, SlicesTotal: 2,
					Missing: []Missing{{Peer: "peer2", Reason: "late", Slices: 1}}}, Cursor: q.Cursor + "+",
			}, nil
		},
		Recent: func(_ context.Context, n int) ([]Hit, error) {
			return make([]Hit, n), nil
		},
		Export: exportOf(5, nil),
		Errors: func(context.Context) ([]Failure, error) {
			return []Failure{{Key: testKey, State: "pending", Reason: "timeout", At: testTime}}, nil
		},
		Gaps: func(_ context.Context, q GapQuery) (GapAnswer, error) {
			return GapAnswer{Gaps: []store.Gap{{Key: testKey, What: store.GapCut, From: q.Since,
				Reason: fmt.Sprint(q.Site, q.Limit, q.Local)}}, Cursor: q.Cursor}, nil
		},
		Map: func(context.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"type":"FeatureCollection","features":[]}`), nil
		},
		Metrics: func() []Metric {
			return []Metric{{Name: "echo_fetched_total", Help: "Fetches.", Kind: "counter", Value: 5,
				Labels: map[string]string{"site": "a", "kind": "page"}}}
		},
		Ready: func() error { return nil },
	}
}

// exportOf exports n records with the cursors 1 to n, then returns err.
func exportOf(n int, err error) func(context.Context, Export, func(store.Record, string) error) ([]Missing, error) {
	return func(ctx context.Context, e Export, fn func(store.Record, string) error) ([]Missing, error) {
		after := 0
		if e.Cursor != "" {
			if _, err := fmt.Sscan(e.Cursor, &after); err != nil {
				return nil, fmt.Errorf("%w cursor: %w", ErrInvalid, err)
			}
		}
		for i := after + 1; i <= n; i++ {
			rec := store.Record{V: 1, Key: partition.Key(fmt.Sprint("web:https://example.org/", i)), Kind: e.Kind,
				Title: "Título <b>"}
			if err := fn(rec, fmt.Sprint(i)); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		return []Missing{{Peer: "peer2", Reason: "não respondeu", Slices: 4}}, ctx.Err()
	}
}

// serve runs a Server on loopback until the test ends.
func serve(t testing.TB, o Options) (*Client, string) {
	t.Helper()
	if o.Token == "" && o.Operator == "" {
		o.Operator = testToken
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	c, err := NewClient(hs.URL, cmp.Or(o.Token, o.Operator))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); hs.Close() })
	return c, hs.URL
}

// do sends one request without following redirects or using a cookie jar.
func do(t testing.TB, req *http.Request) *http.Response {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// problem reads res as a problem and checks the members that all problems must have.
func problem(t testing.TB, res *http.Response, status int) *Problem {
	t.Helper()
	if res.StatusCode != status {
		t.Fatalf("status %d, want %d", res.StatusCode, status)
	}
	if ct := res.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("content type %q", ct)
	}
	p := &Problem{}
	if err := json.NewDecoder(res.Body).Decode(p); err != nil {
		t.Fatal(err)
	}
	if p.Type != "about:blank" || p.Title != http.StatusText(status) || p.Status != status || p.Detail == "" ||
		p.Instance == "" {
		t.Fatalf("incomplete problem %+v", p)
	}
	return p
}

var errBoom = errors.New("boom")
