package api

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/node/api/session"
)

func TestOptionsAreCheckedAllAtOnce(t *testing.T) {
	_, err := New(Options{Addr: "0.0.0.0:7700", Timeout: -1})
	if !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "negative") ||
		!strings.Contains(err.Error(), "--api-token-file") {
		t.Errorf("%v", err)
	}
	for _, o := range []Options{
		{Addr: ":7700"}, {Addr: "192.0.2.1:1"}, {Addr: "peer.example:1"}, {Addr: "[::]:1"}, {Addr: "nonsense"},
		{Token: "short"}, {Token: strings.Repeat("x", 513)}, {Token: "0123456789 0123456789"},
		{Token: "0123456789é123456789"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	for _, o := range []Options{{}, {Addr: "127.0.0.1:0"}, {Addr: "[::1]:7700"}, {Addr: "localhost:1"},
		{Addr: "127.9.9.9:1"}, {Addr: ":7700", Token: testToken}} {
		if _, err := New(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// addrListener reports an address to which it is not bound.
type addrListener struct {
	net.Listener
	closed bool
}

func (l *addrListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 7700} }
func (l *addrListener) Close() error   { l.closed = true; return nil }

func TestServeRefusesAnOpenListenerWithoutAToken(t *testing.T) {
	for _, token := range []string{"", testToken} {
		s, err := New(Options{Peer: fake(), Token: token})
		if err != nil {
			t.Fatal(err)
		}
		ln := &addrListener{}
		err = s.Serve(t.Context(), ln)
		if err == nil || !ln.closed || errors.Is(err, ErrToken) != (token == "") {
			t.Errorf("token %q: %v, closed %v", token, err, ln.closed)
		}
	}
}

func TestTheTokenIsAsked(t *testing.T) {
	_, base := serve(t, Options{Peer: fake(), Token: testToken, Addr: "0.0.0.0:7700", UI: ui()})
	for _, c := range []struct {
		path, auth string
		status     int
	}{
		{"/api/v1/status", "", 401},
		{"/api/v1/status", "Bearer", 401},
		{"/api/v1/status", "Bearer " + testToken + "x", 401},
		{"/api/v1/status", "Bearer " + testToken[:21], 401},
		{"/api/v1/status", "Basic " + testToken, 401},
		{"/api/v1/status", "Bearer " + testToken, 200},
		{"/api/v1/status", "bearer " + testToken, 200},
		{"/metrics", "", 401},
		{"/nothing", "", 401},
		{"/ui/live", "", 401},
		{"/ui/static/../live", "", 307}, // to /ui/live, which is not free
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/openapi.json", "", 200},
		{"/login", "", 200},
		{"/ui/static/style.css", "", 200},
		{"/", "", 303},
		{"/", "Bearer " + testToken, 200},
	} {
		req, err := http.NewRequest("GET", base+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.auth != "" {
			req.Header.Set("Authorization", c.auth)
		}
		res := do(t, req)
		if res.StatusCode != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.auth, res.StatusCode, c.status)
		}
		if c.status == 401 {
			problem(t, res, 401)
			if res.Header.Get("WWW-Authenticate") == "" {
				t.Error("no WWW-Authenticate")
			}
		}
	}
	c, err := NewClient(base, "another token, wrong")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "--api-token-file") {
		t.Errorf("%v", err)
	}
}

// ui replaces the dashboard.
func ui() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ui "+r.URL.Path) })
}

func post(t testing.TB, target string, form url.Values, cookie *http.Cookie) *http.Response {
	t.Helper()
	req, err := http.NewRequest("POST", target, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != nil {
		req.AddCookie(cookie)
	}
	return do(t, req)
}

func TestALoginGivesACookieThatIsNotTheToken(t *testing.T) {
	_, base := serve(t, Options{Peer: fake(), Token: testToken, UI: ui()})
	res := post(t, base+"/login", url.Values{"token": {" " + testToken + "\n"}}, nil)
	if res.StatusCode != 303 || res.Header.Get("Location") != "/" || len(res.Cookies()) != 1 {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 ||
		strings.Contains(c.Value, testToken) {
		t.Errorf("cookie %+v", c)
	}
	ask := func(c *http.Cookie) int {
		req, err := http.NewRequest("GET", base+"/api/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(c)
		return do(t, req).StatusCode
	}
	if got := ask(c); got != 200 {
		t.Errorf("with the cookie: %d", got)
	}
	until, sum, _ := strings.Cut(c.Value, ".")
	for _, forged := range []string{"", ".", until, until + ".", "9" + until + "." + sum, until +
		"." + strings.ToUpper(sum) + "0", testToken} {
		if got := ask(&http.Cookie{Name: c.Name, Value: forged}); got != 401 {
			t.Errorf("with %q: %d", forged, got)
		}
	}
	res = post(t, base+"/logout", nil, c)
	if res.StatusCode != 303 || len(res.Cookies()) != 1 || res.Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %s %v", res.Status, res.Cookies())
	}
}

func TestWrongLoginsAreLimitedEvenWhenThenRight(t *testing.T) {
	_, base := serve(t, Options{Peer: fake(), Token: testToken, UI: ui()})
	for i := range session.Burst {
		res := post(t, base+"/login", url.Values{"token": {fmt.Sprint("wrong", i)}}, nil)
		if res.Header.Get("Location") != "/login?wrong=1" {
			t.Fatalf("try %d: %s %s", i, res.Status, res.Header.Get("Location"))
		}
	}
	res := post(t, base+"/login", url.Values{"token": {testToken}}, nil)
	if res.Header.Get("Location") != "/login?wait=1" || len(res.Cookies()) != 0 {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}

func TestALoginWithoutATokenLeadsHome(t *testing.T) {
	s, err := New(Options{Peer: fake(), UI: ui()})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	defer hs.Close()
	base := hs.URL
	if res := post(t, base+"/login", url.Values{"token": {"x"}}, nil); res.Header.Get("Location") != "/" ||
		len(res.Cookies()) != 0 {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}

func TestAPageOfAnotherOriginMayNotChangeAnything(t *testing.T) {
	seeded := 0
	_, base := serve(t, Options{Peer: fake(),
		UI: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seeded++ })})
	for _, c := range []struct {
		path, header, value string
		refused             bool
	}{
		{"/api/v1/seeds", "Sec-Fetch-Site", "cross-site", true},
		{"/api/v1/seeds", "Sec-Fetch-Site", "same-site", true},
		{"/api/v1/seeds", "Origin", "https://evil.example", true},
		{"/api/v1/seeds", "Origin", "null", true},
		{"/seed", "Origin", "https://evil.example", true},
		{"/override", "Origin", "https://evil.example", true},
		{"/login", "Sec-Fetch-Site", "cross-site", true},
		{"/logout", "Sec-Fetch-Site", "cross-site", true},
		{"/seed", "Sec-Fetch-Site", "same-origin", false},
		{"/seed", "Origin", base, false},
		{"/seed", "X-Script", "1", false},
	} {
		req, err := http.NewRequest("POST", base+c.path, strings.NewReader("https://example.org/"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "text/plain")
		req.Header.Set("Authorization", "Bearer "+testToken)
		req.Header.Set(c.header, c.value)
		res := do(t, req)
		if c.refused {
			problem(t, res, http.StatusForbidden)
		} else if res.StatusCode != 200 {
			t.Errorf("%s %s: %s", c.path, c.header, res.Status)
		}
	}
	if seeded != 3 {
		t.Errorf("%d seeds went through", seeded)
	}
}

func TestALoopbackPeerAnswersToLoopbackNamesOnly(t *testing.T) {
	s, err := New(Options{Peer: fake(), Addr: "127.0.0.1:7700"})
	if err != nil {
		t.Fatal(err)
	}
	open, err := New(Options{Peer: fake(), Addr: "0.0.0.0:7700", Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:7700": 200, "127.0.0.1": 200, "localhost:7700": 200, "LOCALHOST": 200, "[::1]:7700": 200,
		"[::1]":               200,
		"peer.localhost:7700": 200, "127.0.0.2:1": 200,
		"evil.example": 421, "evil.example:7700": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example:80": 421,
		"192.0.2.7:7700": 421, "": 421, "[::2]:1": 421, "notlocalhost": 421,
	} {
		for _, server := range []*Server{s, open} {
			r := httptest.NewRequest("GET", "/healthz", nil)
			r.Host = host
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if server == s && w.Code != want || server == open && w.Code != 200 {
				t.Errorf("Host %q: %d", host, w.Code)
			}
		}
	}
}

func TestBodiesAndHeadersAreCapped(t *testing.T) {
	c, base := serve(t, Options{Peer: fake(), UI: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err == nil {
			t.Error("a form of any size is read")
		}
	})})
	req, err := http.NewRequest("POST", base+"/seed",
		strings.NewReader(url.Values{"seeds": {strings.Repeat("x", maxFormBytes)}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+testToken)
	do(t, req)
	req, err = http.NewRequest("POST", base+"/api/v1/seeds", strings.NewReader(strings.Repeat("#", maxSeedBytes+1)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("Content-Type", "text/plain")
	problem(t, do(t, req), http.StatusRequestEntityTooLarge)
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
}
