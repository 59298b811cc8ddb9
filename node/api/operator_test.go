package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/echo-node/echo-node/node/api/session"
)

// request returns one request as a browser or a program sends it.
func request(t testing.TB, method, target, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// Another user of the machine may read, but may not change anything.
func TestOnLoopbackOnlyTheOperatorChangesAnything(t *testing.T) {
	for _, o := range []Options{{Peer: fake(), UI: ui(), Operator: testToken}, {Peer: fake(), UI: ui()}} {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		hs := httptest.NewServer(s)
		defer hs.Close()
		for _, c := range []struct {
			method, path, body string
			free               int // without the token
			status             int // with the token
		}{
			{"GET", "/api/v1/status", "", 200, 200},
			{"GET", "/api/v1/export", "", 200, 200},
			{"GET", "/metrics", "", 200, 200},
			{"GET", "/", "", 200, 200},
			{"HEAD", "/", "", 200, 200},
			{"POST", "/api/v1/seeds", "https://example.org/", 401, 200},
			{"PUT", "/api/v1/overrides", `{"key":"mastodon:a@m.example","verdict":"in","by":"x"}`, 401, 501},
			{"DELETE", "/api/v1/seeds", "", 401, 405},
			{"POST", "/api/v1/whatever/comes", "", 401, 404},
			{"POST", "/seed", "seeds=x", 303, 200},
			{"POST", "/override", "key=x", 303, 200},
		} {
			for auth, want := range map[string]int{"": c.free, "Bearer " + testToken + "x": c.free,
				"Bearer " + testToken: c.status} {
				if o.Operator == "" {
					want = c.free // no client can have a token that does not exist
				}
				req := request(t, c.method, hs.URL+c.path, c.body)
				if c.method != "GET" {
					req.Header.Set("Content-Type",
						map[bool]string{true: "application/json", false: "text/plain"}[c.method == "PUT"])
				}
				if auth != "" {
					req.Header.Set("Authorization", auth)
				}
				res := do(t, req)
				if res.StatusCode != want {
					t.Errorf("%s %s with %q, operator %q: %d, want %d", c.method, c.path, auth, o.Operator,
						res.StatusCode, want)
				}
				if res.StatusCode == 303 && res.Header.Get("Location") != "/login" {
					t.Errorf("%s leads to %s", c.path, res.Header.Get("Location"))
				}
			}
		}
	}
	if _, err := New(Options{Operator: "short"}); err == nil {
		t.Error("a short token was taken")
	}
}

// A page on the web, or of another server on this machine, makes a browser send requests to
// this peer.
func TestAttackCrossSiteQuery(t *testing.T) {
	var asked atomic.Int64
	p := fake()
	query, export := p.Query, p.Export
	p.Query = counted2(&asked, query)
	p.Export = counted3(&asked, export)
	_, base := serve(t, Options{Peer: p, UI: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			asked.Add(1) // the dashboard runs the query in ?q=
		}
	})})
	const mozilla = "Mozilla/5.0 (X11; Linux x86_64)"
	costly := []string{"/api/v1/query?q=x", "/api/v1/export", "/api/v1/export?local=true", "/?q=x", "/api/v1/gaps",
		"/api/v1/copies?key=web:https://example.org/", "/metrics", "/ui/live", "/login?code=x"}
	for name, headers := range map[string][]string{
		"image":  {fetchSite, "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		"script": {fetchSite, "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"},
		"fetch": {fetchSite, "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin",
			"https://evil.example"},
		"navigation":        {fetchSite, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		"frame":             {fetchSite, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"another port here": {fetchSite, "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		"what is to come":   {fetchSite, "who-knows"},
		"an old browser":    {"User-Agent", mozilla, "Referer", "https://evil.example/page"},
		"a silent one":      {"User-Agent", mozilla},
		"a sandboxed frame": {"Origin", "null"},
		"a referrer alone":  {"Referer", "http://127.0.0.1:1/"},
	} {
		for _, path := range costly {
			res := do(t, request(t, "GET", base+path, "", headers...))
			if want := map[bool]int{true: 401, false: 403}[name == "a silent one"]; res.StatusCode != want &&
				!(name == "a silent one" && (path == "/?q=x" || strings.HasPrefix(path, "/login")) &&
					res.StatusCode == 303) {
				t.Errorf("%s, %s: %s, want %d", name, path, res.Status, want)
			}
			if got := res.Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s may be read by %s", path, got)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d queries and exports were started", n)
	}
	// What must still work: a link to the dashboard, its own requests, a typed address, a
	// program.
	for _, c := range []struct {
		path    string
		headers []string
	}{
		{"/", []string{fetchSite, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"/login", []string{fetchSite, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"/?q=x", []string{fetchSite, "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"/?q=x", []string{fetchSite, "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"/ui/live", []string{fetchSite, "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty",
			"User-Agent", mozilla}},
		{"/api/v1/query?q=x", []string{"User-Agent", "curl/8"}},
		{"/api/v1/query?q=x", []string{"User-Agent", mozilla, "Authorization", "Bearer " + testToken}},
		{"/api/v1/query?q=x", []string{"Referer", base + "/", "Origin", base}},
	} {
		if res := do(t, request(t, "GET", base+c.path, "", c.headers...)); res.StatusCode != 200 {
			t.Errorf("%s %v: %s", c.path, c.headers, res.Status)
		}
	}
	if asked.Load() == 0 {
		t.Error("the queries are not counted")
	}
	// A name that leads here (DNS rebinding) makes the page's origin the same as ours.
	req := request(t, "GET", base+"/api/v1/query?q=x", "", fetchSite, "same-origin")
	req.Host = "evil.example"
	if res := do(t, req); res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("rebinding: %s", res.Status)
	}
}

func TestALoginLinkWorksOnce(t *testing.T) {
	s, err := New(Options{Peer: fake(), UI: ui(), Operator: testToken})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	defer hs.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	void := s.LoginPath()
	link := s.LoginPath()
	get := func(path string) (end string) {
		t.Helper()
		res, err := browser.Do(request(t, "GET", hs.URL+path, "", fetchSite, "none", "User-Agent", "Mozilla/5.0"))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.Request.URL.RequestURI()
	}
	seed := func() int {
		t.Helper()
		res, err := browser.Do(request(t, "POST", hs.URL+"/seed", "seeds=x", "Content-Type",
			"application/x-www-form-urlencoded", fetchSite, "same-origin"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != "ui /seed" {
			return http.StatusUnauthorized
		}
		return res.StatusCode
	}
	if got := seed(); got != 401 {
		t.Errorf("without a login: %d", got)
	}
	for _, wrong := range []string{void, link + "x", "/login?code=."} {
		if end := get(wrong); end != "/login?used=1" {
			t.Errorf("%s leads to %s", wrong, end)
		}
	}
	if end := get(link); end != "/" || seed() != 200 {
		t.Errorf("the link leads to %s", end)
	}
	browser.Jar = nil
	if end := get(link); end != "/login?used=1" {
		t.Errorf("the link works twice: %s", end)
	}
	for range session.Burst {
		get("/login?code=y")
	}
	if end := get(s.LoginPath()); end != "/login?wait=1" {
		t.Errorf("wrong links are not limited: %s", end)
	}
}

func TestTheDashboardKnowsWhoMayOnlyLook(t *testing.T) {
	_, base := serve(t, Options{Peer: fake(),
		UI: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, ReadOnly(r.Context())) })})
	for auth, want := range map[string]string{"": "true", "Bearer " + testToken: "false"} {
		res := do(t, request(t, "GET", base+"/", "", "Authorization", auth))
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != want {
			t.Errorf("%q: %s %v", auth, b, err)
		}
	}
	form := url.Values{"token": {testToken}}
	if res := post(t, base+"/login", form, nil); len(res.Cookies()) != 1 || res.Header.Get("Location") != "/" {
		t.Errorf("the operator's token at the login: %s %v", res.Status, res.Header)
	}
}

func counted2[I, T any](n *atomic.Int64, fn func(context.Context, I) (T, error)) func(context.Context, I) (T, error) {
	return func(ctx context.Context, in I) (T, error) { n.Add(1); return fn(ctx, in) }
}

func counted3[I, F, T any](n *atomic.Int64, fn func(context.Context, I, F) (T, error)) func(context.Context, I, F) (T,
	error) {
	return func(ctx context.Context, in I, f F) (T, error) { n.Add(1); return fn(ctx, in, f) }
}
