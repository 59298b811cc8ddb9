package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func TestEveryEndpointAnswersWhatThePeerSays(t *testing.T) {
	c, _ := serve(t, Options{Peer: fake()})
	ctx, p := t.Context(), fake()
	same := func(name string, got, want any, err, wantErr error) {
		t.Helper()
		if err != nil || wantErr != nil {
			t.Errorf("%s: %v, %v", name, err, wantErr)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	q := Query{Q: "pão & água", Kind: "page", Lang: "pt-BR", Site: "web:example.org", Since: testTime,
		Until: testTime.Add(time.Hour), Limit: 7, Cursor: "x="}
	wantStatus, e1 := p.Status(ctx)
	status, err := c.Status(ctx)
	same("status", status, wantStatus, err, e1)
	wantPeers, e1 := p.Peers(ctx)
	peers, err := c.Peers(ctx)
	same("peers", peers, wantPeers, err, e1)
	wantOwner, e1 := p.Owner(ctx, testKey)
	owner, err := c.Owner(ctx, testKey)
	same("owner", owner, wantOwner, err, e1)
	wantShown, e1 := p.Show(ctx, testKey)
	shown, err := c.Show(ctx, testKey)
	same("records", shown, wantShown, err, e1)
	wantAnswer, e1 := p.Query(ctx, q)
	answer, err := c.Query(ctx, q)
	same("query", answer, wantAnswer, err, e1)
	recent, err := c.Recent(ctx, 3)
	same("recent", len(recent), 3, err, nil)
	wantErrors, e1 := p.Errors(ctx)
	failures, err := c.Errors(ctx)
	same("errors", failures, wantErrors, err, e1)
	wantMap, e1 := p.Map(ctx)
	geo, err := c.Map(ctx)
	same("map", string(geo), string(wantMap), err, e1)
	same("ready", nil, nil, c.Ready(ctx), nil)
}

func TestAnUnknownKindOfQueryLimitIsTheDefault(t *testing.T) {
	c, _ := serve(t, Options{Peer: fake()})
	a, err := c.Query(t.Context(), Query{Q: "x"})
	if err != nil || a.Hits[0].Score != defaultLimit {
		t.Fatalf("%+v, %v", a, err)
	}
}

func TestEmptyListsAreListsInJSON(t *testing.T) {
	p := fake()
	p.Peers = func(context.Context) ([]PeerInfo, error) { return nil, nil }
	p.Errors = func(context.Context) ([]Failure, error) { return nil, nil }
	p.Recent = func(context.Context, int) ([]Hit, error) { return nil, nil }
	p.Query = func(context.Context, Query) (Answer, error) { return Answer{}, nil }
	_, base := serve(t, Options{Peer: p})
	for path, want := range map[string]string{
		"peers": `{"peers":[]}`, "errors": `{"errors":[]}`, "recent": `{"records":[]}`,
		"query": `{"hits":[],"total_estimate":0,"coverage":{"slices_answered":0,"slices_total":0,"missing":[]},"took_ms":0}`,
	} {
		if _, got := get200(t, base+"/api/v1/"+path); strings.TrimSpace(got) != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// get200 returns the response to a GET that must succeed.
func get200(t testing.TB, url string) (http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res := do(t, req)
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v: %s", url, res.Status, err, b)
	}
	return res.Header, string(b)
}

func TestWhatIsWrongIsAProblem(t *testing.T) {
	_, base := serve(t, Options{Peer: fake()})
	long := strings.Repeat("a", maxQueryText+1)
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/nothing", 404, "/nothing"},
		{"GET", "/api/v1/", 404, "openapi"},
		{"GET", "/api/v1/statuss", 404, ""},
		{"POST", "/api/v1/status", 405, "GET"},
		{"GET", "/api/v1/seeds", 405, "POST"},
		{"DELETE", "/healthz", 405, "GET"},
		{"PUT", "/api/v1/overrides", 400, "body"},
		{"PUT", "/api/v1/quarantine", 400, "body"},
		{"GET", "/api/v1/query?q=%zz", 400, "query string"},
		{"GET", "/api/v1/query?q=a;b", 400, "query string"},
		{"GET", "/api/v1/query?q=a&radius=3", 422, "near"},
		{"GET", "/api/v1/query?near=Lisboa&radius=-3", 422, "radius"},
		{"GET", "/api/v1/query?scope=1945..1939", 422, "scope"},
		{"GET", "/api/v1/query?verdict=maybe", 422, "verdict"},
		{"GET", "/api/v1/query?q=a&unfold=maybe", 422, "unfold"},
		{"GET", "/api/v1/query?Q=a", 422, "unknown query parameter"},
		{"GET", "/api/v1/status?verbose=1", 422, "verbose"},
		{"GET", "/api/v1/query?limit=0", 422, "limit"},
		{"GET", "/api/v1/query?limit=1001", 422, "1000"},
		{"GET", "/api/v1/query?limit=ten", 422, "ten"},
		{"GET", "/api/v1/query?limit=99999999999999999999", 422, "limit"},
		{"GET", "/api/v1/query?kind=film", 422, "profile"},
		{"GET", "/api/v1/query?kind=gap", 422, "profile"},
		{"GET", "/api/v1/gaps?limit=1001", 422, "1000"},
		{"GET", "/api/v1/gaps?since=yesterday", 422, "yesterday"},
		{"GET", "/api/v1/gaps?local=perhaps", 422, "true or false"},
		{"GET", "/api/v1/query?lang=portugu%C3%AAs", 422, "lang"},
		{"GET", "/api/v1/query?lang=x-", 422, "lang"},
		{"GET", "/api/v1/query?since=yesterday", 422, "yesterday"},
		{"GET", "/api/v1/query?since=2026-02-01&until=2026-01-01", 422, "after since"},
		{"GET", "/api/v1/query?q=" + long, 422, "1024"},
		{"GET", "/api/v1/query?q=%ff", 422, "UTF-8"},
		{"GET", "/api/v1/query?q=a%00b", 422, "UTF-8"},
		{"GET", "/api/v1/query?cursor=" + strings.Repeat("c", maxCursor+1), 422, "cursor"},
		{"GET", "/api/v1/recent?n=101", 422, "n"},
		{"GET", "/api/v1/owner", 422, "key"},
		{"GET", "/api/v1/owner?key=", 422, "key"},
		{"GET", "/api/v1/owner?key=nonsense", 422, "nonsense"},
		{"GET", "/api/v1/records?key=web:ftp://example.org/", 422, "key"},
		{"GET", "/api/v1/records?key=http://%5B", 422, "key"},
		{"GET", "/api/v1/records?key=" + strings.Repeat("k", maxKeyText+1), 422, "4096"},
		{"GET", "/api/v1/export?format=warc", 400, "warc"},
		{"GET", "/api/v1/export?format=csv", 400, "csv"},
		{"GET", "/api/v1/export?format=xml", 400, "jsonl"},
		{"GET", "/api/v1/export?local=maybe", 422, "local"},
		{"GET", "/api/v1/export?after=3", 422, "after"},
		{"GET", "/api/v1/export?cursor=x", 422, "cursor"},
	} {
		req, err := http.NewRequest(c.method, base+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		name := c.method + " " + c.path[:min(60, len(c.path))]
		t.Run(name, func(t *testing.T) {
			p := problem(t, do(t, req), c.status)
			if !strings.Contains(p.Error(), c.says) {
				t.Errorf("says %q, not %q", p.Error(), c.says)
			}
			if path, id, _ := strings.Cut(p.Instance, "#"); path != req.URL.Path || id == "" {
				t.Errorf("instance %q", p.Instance)
			}
		})
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	_, base := serve(t, Options{Peer: fake()})
	req, _ := http.NewRequest("GET", base+"/api/v1/query?limit=0&kind=film&since=x&lang=1", nil)
	if p := problem(t, do(t, req), 422); len(p.Faults) != 4 {
		t.Fatalf("%d faults: %v", len(p.Faults), p)
	}
}

func TestAPeerWithoutAFunctionAnswers501(t *testing.T) {
	c, base := serve(t, Options{})
	for _, path := range []string{"status", "peers", "errors", "recent", "query", "map", "export",
		"owner?key=" + string(testKey), "records?key=" + string(testKey)} {
		req, _ := http.NewRequest("GET", base+"/api/v1/"+path, nil)
		problem(t, do(t, req), http.StatusNotImplemented)
	}
	if _, err := c.Seed(t.Context(), []string{"https://example.org/"}); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("seed: %v", err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	get200(t, base+"/metrics")
}

// failing is a Peer all of whose functions fail.
func failing(err error) Peer {
	return Peer{
		Status: func(context.Context) (Status, error) { return Status{}, err },
		Peers:  func(context.Context) ([]PeerInfo, error) { return nil, err },
		Owner:  func(context.Context, partition.Key) (Owner, error) { return Owner{}, err },
		Show:   func(context.Context, partition.Key) (Shown, error) { return Shown{}, err },
		Seed:   func(context.Context, []partition.Key) ([]SeedAnswer, error) { return nil, err },
		Query:  func(context.Context, Query) (Answer, error) { return Answer{}, err },
		Recent: func(context.Context, int) ([]Hit, error) { return nil, err },
		Export: func(context.Context, Export, func(store.Record, string) error) ([]Missing, error) {
			return nil, err
		},
		Errors: func(context.Context) ([]Failure, error) { return nil, err },
		Map:    func(context.Context) (json.RawMessage, error) { return nil, err },
		Ready:  func() error { return err },
	}
}

func TestAPeersErrorChoosesTheStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{errBoom, 500}, {ErrInvalid, 422}, {ErrNotFound, 404}, {ErrUnavailable, 503}, {ErrNotBuilt, 501},
		{context.DeadlineExceeded, 504}, {context.Canceled, 503},
	} {
		err := fmt.Errorf("the peer says: %w", c.err)
		client, base := serve(t, Options{Peer: failing(err)})
		for _, path := range []string{"status", "peers", "errors", "recent", "query", "map", "export",
			"owner?key=" + string(testKey), "records?key=" + string(testKey)} {
			req, _ := http.NewRequest("GET", base+"/api/v1/"+path, nil)
			if p := problem(t, do(t, req), c.status); !strings.Contains(p.Detail, "the peer says") {
				t.Errorf("%s: %q", path, p.Detail)
			}
		}
		var p *Problem
		if _, err := client.Seed(t.Context(), []string{"https://example.org/"}); !errors.As(err, &p) ||
			p.Status != c.status {
			t.Errorf("seed: %v", err)
		}
		if err := client.Ready(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("ready: %v", err)
		}
	}
}

func TestASlowPeerIsA504(t *testing.T) {
	p := fake()
	p.Query = func(ctx context.Context, _ Query) (Answer, error) { <-ctx.Done(); return Answer{}, ctx.Err() }
	_, base := serve(t, Options{Peer: p, Timeout: 20 * time.Millisecond})
	req, _ := http.NewRequest("GET", base+"/api/v1/query?q=x", nil)
	problem(t, do(t, req), http.StatusGatewayTimeout)
}

func TestAPanicIsA500AndTheServerLives(t *testing.T) {
	p := fake()
	p.Status = func(context.Context) (Status, error) { panic("a bug") }
	c, base := serve(t, Options{Peer: p})
	req, _ := http.NewRequest("GET", base+"/api/v1/status", nil)
	if got := problem(t, do(t, req), 500); strings.Contains(got.Detail, "a bug") {
		t.Errorf("the panic's text is for the log: %q", got.Detail)
	}
	if _, err := c.Peers(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAMapThatIsNotJSONIsA500(t *testing.T) {
	p := fake()
	p.Map = func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{"type":`), nil }
	_, base := serve(t, Options{Peer: p})
	req, _ := http.NewRequest("GET", base+"/api/v1/map", nil)
	problem(t, do(t, req), 500)
}

func TestOpenAPINamesEveryEndpoint(t *testing.T) {
	_, base := serve(t, Options{Peer: fake(), Version: "9.9"})
	_, text := get200(t, base+"/openapi.json")
	var doc struct {
		OpenAPI string
		Info    struct{ Version string }
		Paths   map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Version != "9.9" {
		t.Errorf("%s %s", doc.OpenAPI, doc.Info.Version)
	}
	for _, name := range []string{"query", "status", "peers", "owner", "records", "export", "errors", "gaps", "map",
		"recent"} {
		if doc.Paths["/api/v1/"+name]["get"] == nil {
			t.Errorf("no GET %s", name)
		}
	}
	if !strings.Contains(string(doc.Paths["/api/v1/seeds"]["post"]), "text/plain") {
		t.Errorf("seeds: %s", doc.Paths["/api/v1/seeds"]["post"])
	}
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	_, base := serve(t, Options{Peer: fake()})
	for _, path := range []string{"/healthz", "/api/v1/status", "/nothing", "/metrics"} {
		req, _ := http.NewRequest("GET", base+path, nil)
		h := do(t, req).Header
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") ||
			h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestMetricsAreTheServersOwn(t *testing.T) {
	p := fake()
	good := p.Metrics()
	p.Metrics = func() []Metric {
		return append(good, Metric{Name: "echo bad name", Kind: "gauge"},
			Metric{Name: "echo_gauge", Help: "G.", Value: 1.5})
	}
	c, base := serve(t, Options{Peer: p})
	_, other := serve(t, Options{Peer: fake()})
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/a", "/b", "/c"} {
		req, _ := http.NewRequest("GET", base+path, nil)
		problem(t, do(t, req), 404)
	}
	_, text := get200(t, base+"/metrics")
	for _, want := range []string{
		`echo_fetched_total{kind="page",site="a"} 5`, "# TYPE echo_fetched_total counter", "echo_gauge 1.5",
		`echo_http_requests_total{route="GET /api/v1/status",status="200"} 1`,
		`echo_http_requests_total{route="none",status="404"} 3`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if _, text := get200(t, other+"/metrics"); strings.Contains(text, `/api/v1/status"`) {
		t.Error("two servers share their counts")
	}
}

// served runs s until stop is called. Then ended receives Serve's error.
func served(t *testing.T, s *Server) (addr string, c *Client, stop func(), ended <-chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Serve(ctx, ln) }()
	if c, err = NewClient(ln.Addr().String(), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return ln.Addr().String(), c, cancel, over
}

func TestServeEndsGracefully(t *testing.T) {
	p := fake()
	asked, goOn := make(chan struct{}), make(chan struct{})
	p.Status = func(ctx context.Context) (Status, error) {
		close(asked)
		<-goOn
		return Status{ID: "late"}, ctx.Err()
	}
	s, err := New(Options{Peer: p})
	if err != nil {
		t.Fatal(err)
	}
	_, c, cancel, ended := served(t, s)
	got := make(chan error, 1)
	go func() {
		st, err := c.Status(t.Context())
		if err == nil && st.ID != "late" {
			err = fmt.Errorf("status of %q", st.ID)
		}
		got <- err
	}()
	<-asked
	cancel()
	close(goOn)
	if err := <-got; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := c.Peers(t.Context()); !errors.Is(err, ErrNoPeer) {
		t.Errorf("after the end: %v", err)
	}
}

// Browsers open connections in advance. Serve does not wait for connections without a request.
func TestServeDoesNotWaitForUnusedConnections(t *testing.T) {
	s, err := New(Options{Peer: fake()})
	if err != nil {
		t.Fatal(err)
	}
	addr, c, cancel, ended := served(t, s)
	unused, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer unused.Close()
	if _, err := c.Peers(t.Context()); err != nil { // so the connection before it was accepted, too
		t.Fatal(err)
	}
	begun := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if took := time.Since(begun); took > shutdownGrace-time.Second {
		t.Errorf("Serve ended after %s", took)
	}
}

func TestServeCutsWhatOutlivesTheGrace(t *testing.T) {
	p := fake()
	asked, left := make(chan struct{}), make(chan struct{})
	p.Status = func(ctx context.Context) (Status, error) {
		close(asked)
		<-ctx.Done()
		close(left)
		return Status{}, ctx.Err()
	}
	s, err := New(Options{Peer: p})
	if err != nil {
		t.Fatal(err)
	}
	s.grace = time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, err := NewClient(ln.Addr().String(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make(chan error, 1)
	go func() { _, err := c.Status(t.Context()); got <- err }()
	go func() { <-asked; cancel() }()
	if err := s.Serve(ctx, ln); err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-left
	if err := <-got; err == nil {
		t.Error("the request that was cut off succeeded")
	}
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	s, err := New(Options{Peer: fake()})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
