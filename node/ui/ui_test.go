package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

const (
	evil  = `<script>alert(1)</script><img src=x onerror=alert(2)>" onmouseover="alert(3)`
	token = "0123456789abcdef-token"
)

// hostile is a Peer in which every text that can come from outside is an attack.
func hostile() api.Peer {
	key := partition.Key("web:https://evil.example/\"><script>alert(4)</script>")
	hits := []api.Hit{
		{Key: key, Kind: evil, Title: evil, Snippet: evil, Score: 1.5, Place: evil, Lang: evil, Peer: evil,
			FetchedAt: time.Now()},
		{Key: "web:javascript:alert(5)", Title: "script link"}, {Key: "mastodon:ana@social.example", Title: ""},
		{Key: "web:https://good.example/page?a=1&b=2", Title: "Bom dia & \"tchau\"", FetchedAt: time.Now()},
	}
	status := api.Status{ID: evil, Swarm: evil, Charter: evil, Version: evil, Records: 1234567, Limits: []string{evil},
		Stops: map[string]int64{evil: 3, "robots": 9}}
	return api.Peer{
		Status: func(context.Context) (api.Status, error) { return status, nil },
		Peers: func(context.Context) ([]api.PeerInfo, error) {
			return []api.PeerInfo{
				{Member: partition.Member{ID: evil, Location: &partition.Point{Lat: 38.7, Lon: -9.1}}, State: evil,
					Slices: 4096, Self: true, Status: &status},
				{Member: partition.Member{ID: "peer2"}, State: "gone"},
			}, nil
		},
		Recent: func(context.Context, int) ([]api.Hit, error) { return hits, nil },
		Query: func(_ context.Context, q api.Query) (api.Answer, error) {
			return api.Answer{Hits: hits, Total: 12345, TookMS: 3, Cursor: evil + q.Cursor, Coverage: api.Coverage{
				SlicesAnswered: 4000, SlicesTotal: 4096,
				Missing: []api.Missing{{Peer: "12D3KooWmissing", Reason: evil, Slices: 96}},
			}}, nil
		},
		Seed: func(_ context.Context, keys []partition.Key) ([]api.SeedAnswer, error) {
			answers := make([]api.SeedAnswer, len(keys))
			for i, k := range keys {
				answers[i] = api.SeedAnswer{Key: string(k) + evil, Answer: evil, Reason: evil, Owner: evil}
			}
			return answers, nil
		},
		Errors: func(context.Context) ([]api.Failure, error) {
			fs := make([]api.Failure, shownFailures+7)
			for i := range fs {
				fs[i] = api.Failure{Key: key, State: evil, Reason: evil, At: time.Now()}
			}
			return fs, nil
		},
	}
}

func newUI(t testing.TB, o Options) *UI {
	t.Helper()
	u, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func ask(t testing.TB, u http.Handler, method, target string, form url.Values) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	u.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// inspect parses page like a browser. It reports everything that could run or that is loaded
// from elsewhere.
func inspect(t *testing.T, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attrs := map[string]string{}
		for _, a := range n.Attr {
			attrs[a.Key] = a.Val
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
			if (a.Key == "src" || a.Key == "action" || a.Key == "href" && n.Data != "a") &&
				!strings.HasPrefix(a.Val, "/") {
				t.Errorf("<%s %s=%q> comes from elsewhere", n.Data, a.Key, a.Val)
			}
		}
		switch {
		case n.Data == "script" && (attrs["src"] != "/ui/static/live.js" || n.FirstChild != nil), n.Data == "style",
			n.Data == "iframe", n.Data == "object":
			t.Errorf("<%s> %v", n.Data, attrs)
		case n.Data == "img" && attrs["src"] != "/ui/static/icon.svg":
			t.Errorf("<img> %v", attrs)
		case n.Data == "a" && !strings.HasPrefix(attrs["href"], "/"):
			u, err := url.Parse(attrs["href"])
			if err != nil || u.Scheme != "https" && u.Scheme != "http" {
				t.Errorf("link to %q", attrs["href"])
			}
			if !strings.Contains(attrs["rel"], "noopener") || !strings.Contains(attrs["rel"], "noreferrer") {
				t.Errorf("link with rel %q", attrs["rel"])
			}
		}
	}
}

func TestWhatWasCrawledCannotRun(t *testing.T) {
	u := newUI(t, Options{Peer: hostile(), Login: true})
	for _, target := range []string{"/", "/?q=" + url.QueryEscape(evil), "/?q=a&lang=" + url.QueryEscape(evil) +
		"&site=" + url.QueryEscape(evil), "/ui/live", "/login?wrong=1&wait=1"} {
		status, page := ask(t, u, "GET", target, nil)
		if status != 200 && status != 422 {
			t.Errorf("%s: %d", target, status)
		}
		inspect(t, page)
	}
	status, page := ask(t, u, "POST", "/seed", url.Values{"seeds": {"https://example.org/\n" + evil}})
	if status != 200 {
		t.Errorf("seed: %d", status)
	}
	inspect(t, page)
}

func FuzzTheQueryPageIsSafe(f *testing.F) {
	f.Add("a", "pt", `"><script>`)
	f.Add("{{.}}", "javascript:", "`${x}`")
	u := newUI(f, Options{Peer: hostile()})
	f.Fuzz(func(t *testing.T, q, lang, site string) {
		_, page := ask(t, u, "GET", "/?"+url.Values{"q": {q}, "lang": {lang}, "site": {site}}.Encode(), nil)
		inspect(t, page)
	})
}

func TestThePageShowsThePeer(t *testing.T) {
	status, page := ask(t, newUI(t, Options{Peer: hostile()}), "GET", "/", nil)
	for _, want := range []string{
		"1\u202f234\u202f567", "this one", "did not answer", "38.70, -9.10", `value="100"`,
		"Bom dia &amp; &#34;tchau&#34;",
		`href="https://good.example/page?a=1&amp;b=2"`, "and 7 more", "mastodon:ana@social.example", "robots 9",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if status != 200 || strings.Contains(page, "log out") || strings.Index(page, "robots 9") > strings.Index(page,
		" 3</p>") {
		t.Errorf("%d, or a log out without a login, or reasons out of order", status)
	}
	if _, page := ask(t, newUI(t, Options{Peer: hostile(), Login: true}), "GET", "/", nil); !strings.Contains(page,
		`action="/logout"`) {
		t.Error("no way out")
	}
}

func TestAQueryShowsItsHitsAndWhatIsMissing(t *testing.T) {
	u := newUI(t, Options{Peer: hostile()})
	status, page := ask(t, u, "GET", "/?q=ol%C3%A1&kind=page&lang=pt", nil)
	for _, want := range []string{
		"answered by 4\u202f000 of 4\u202f096 slices", "…Wmissing</code> (96 slices,", "12\u202f345 hits",
		"score 1.500",
		`value="olá"`, `<option selected>page`, "<details open", "kind=page&amp;lang=pt", `rel="next"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if status != 200 || strings.Contains(page, "nothing missing") {
		t.Errorf("%d", status)
	}
}

func TestACompleteAnswerSaysSo(t *testing.T) {
	p := api.Peer{Query: func(context.Context, api.Query) (api.Answer, error) {
		return api.Answer{Total: 1, Coverage: api.Coverage{SlicesAnswered: 4, SlicesTotal: 4}}, nil
	}}
	_, page := ask(t, newUI(t, Options{Peer: p}), "GET", "/?q=x", nil)
	for _, want := range []string{"About 1 hit in", "answered by 4 of 4 slices, nothing missing", "Nothing found."} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	// Slices that no peer holds have no peer to name, but the page must show them.
	p.Query = func(context.Context, api.Query) (api.Answer, error) {
		return api.Answer{Coverage: api.Coverage{SlicesAnswered: 3, SlicesTotal: 4}}, nil
	}
	if _, page = ask(t, newUI(t, Options{Peer: p}), "GET", "/?q=x", nil); !strings.Contains(page, "unassigned slices") {
		t.Error("missing slices are hidden")
	}
}

func TestNextHitsAskForWhatFollows(t *testing.T) {
	var asked []api.Query
	p := api.Peer{Query: func(_ context.Context, q api.Query) (api.Answer, error) {
		asked = append(asked, q)
		return api.Answer{Hits: []api.Hit{{Title: "t"}}, Cursor: "c&2"}, nil
	}}
	u := newUI(t, Options{Peer: p})
	_, page := ask(t, u, "GET", "/?q=&site=s&since=2026-01-31", nil)
	m := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("no next hits")
	}
	ask(t, u, "GET", html.UnescapeString(m[1]), nil)
	want := asked[0]
	if want.Cursor = "c&2"; len(asked) != 2 || asked[1] != want {
		t.Errorf("%+v", asked)
	}
}

func TestTroubleIsShown(t *testing.T) {
	boom := fmt.Errorf("the store: %w <b>", errors.New("closed"))
	p := api.Peer{
		Status: func(context.Context) (api.Status, error) { return api.Status{}, boom },
		Query:  func(context.Context, api.Query) (api.Answer, error) { return api.Answer{}, boom },
		Seed:   func(context.Context, []partition.Key) ([]api.SeedAnswer, error) { return nil, api.ErrUnavailable },
	}
	u := newUI(t, Options{Peer: p})
	if status, page := ask(t, u, "GET", "/", nil); status != 200 ||
		!strings.Contains(page, "status: the store: closed &lt;b&gt;") {
		t.Errorf("%d %s", status, page)
	}
	if status, page := ask(t, u, "GET", "/?q=x", nil); status != 500 || !strings.Contains(page, "the store: closed") {
		t.Errorf("query: %d", status)
	}
	if status, page := ask(t, u, "GET", "/?q=x&near=here", nil); status != 501 && status != 500 || page == "" {
		t.Errorf("near: %d", status)
	}
	if status, page := ask(t, u, "GET", "/?q=x&since=yesterday", nil); status != 422 ||
		!strings.Contains(page, "yesterday") {
		t.Errorf("since: %d", status)
	}
	if status, _ := ask(t, u, "POST", "/seed", url.Values{"seeds": {"https://example.org/"}}); status != 503 {
		t.Errorf("seed: %d", status)
	}
	if status, _ := ask(t, u, "POST", "/seed?%zz", url.Values{"seeds": {"x"}}); status != 422 {
		t.Errorf("unreadable form: %d", status)
	}
}

// A person's verdict goes to the peer as with the API. An invalid one is refused and shown as
// typed, for correction.
func TestAPersonOverrulesTheJudge(t *testing.T) {
	var taken []store.Override
	u := newUI(t, Options{Peer: api.Peer{Overrule: func(_ context.Context,
		o store.Override) error {
		taken = append(taken, o)
		return nil
	}}})
	for _, verdict := range []string{"out", ""} {
		status, page := ask(t, u, "POST", "/override",
			url.Values{"key": {"mastodon:Ana@M.example"}, "verdict": {verdict}, "by": {evil}, "why": {evil}})
		inspect(t, page)
		last := taken[len(taken)-1]
		if status != 200 || last.Key != "mastodon:ana@m.example" || last.Verdict != verdict || last.By != evil ||
			last.Why != evil || !strings.Contains(page, ">taken<") {
			t.Errorf("%d, %+v", status, last)
		}
	}
	if len(taken) != 2 {
		t.Errorf("%d words", len(taken))
	}
	for name, bad := range map[string]url.Values{
		"no account": {"key": {"https://example.org/" + evil}, "verdict": {"in"}, "by": {"rui"}},
		"no key":     {"verdict": {"in"}, "by": {"rui"}},
		"no verdict": {"key": {"mastodon:ana@m.example"}, "verdict": {evil}, "by": {"rui"}},
		"nobody's":   {"key": {"mastodon:ana@m.example"}, "verdict": {"in"}, "why": {evil}},
	} {
		status, page := ask(t, u, "POST", "/override", bad)
		inspect(t, page)
		if status != 422 || len(taken) != 2 || !strings.Contains(page, `role="alert"`) ||
			!strings.Contains(page, html.EscapeString(bad.Get("key"))) {
			t.Errorf("%s: %d, %d words", name, status, len(taken))
		}
	}
}

func TestAPeerWithoutFunctionsStillHasAPage(t *testing.T) {
	status, page := ask(t, newUI(t, Options{}), "GET", "/", nil)
	if status != 200 || strings.Contains(page, `role="alert"`) || !strings.Contains(page, `name="q"`) {
		t.Errorf("%d %s", status, page)
	}
	inspect(t, page)
}

func TestStaticFilesAreServedAndPointNowhereElse(t *testing.T) {
	u := newUI(t, Options{})
	files, err := fs.Glob(static, "static/*")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	outside := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]`)
	for _, f := range files {
		status, text := ask(t, u, "GET", "/ui/"+f, nil)
		text = strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, "")
		if status != 200 || outside.MatchString(text) || strings.Contains(text, "@import") {
			t.Errorf("%s: %d, %q", f, status, outside.FindString(text))
		}
	}
	for _, target := range []string{"/ui/static/none.js", "/ui/page/home.html", "/ui/static/../ui.go"} {
		if status, _ := ask(t, u, "GET", target, nil); status == 200 {
			t.Errorf("%s is served", target)
		}
	}
}

// The dashboard behind the real server, with a token, as a browser uses it.
func TestLoggingInBehindTheServer(t *testing.T) {
	s, err := api.New(api.Options{Peer: hostile(), Token: token, UI: newUI(t, Options{Peer: hostile(), Login: true})})
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
	page := func(res *http.Response, err error) (string, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return res.Request.URL.Path, string(b)
	}
	if path, text := page(browser.Get(hs.URL + "/?q=x")); path != "/login" ||
		!strings.Contains(text, `type="password"`) || strings.Contains(text, "Bom dia") {
		t.Errorf("at first: %s", path)
	}
	if path, text := page(browser.PostForm(hs.URL+"/login", url.Values{"token": {"wrong"}})); path != "/login" ||
		!strings.Contains(text, "not this peer") {
		t.Errorf("a wrong token: %s", path)
	}
	if path, text := page(browser.PostForm(hs.URL+"/login", url.Values{"token": {token}})); path != "/" ||
		!strings.Contains(text, "Bom dia") {
		t.Errorf("the token: %s", path)
	}
	if path, text := page(browser.PostForm(hs.URL+"/seed",
		url.Values{"seeds": {"https://example.org/"}})); path != "/seed" ||
		!strings.Contains(text, "web:https://example.org/") {
		t.Errorf("seed: %s", path)
	}
	if path, _ := page(browser.PostForm(hs.URL+"/logout", nil)); path != "/login" {
		t.Errorf("log out: %s", path)
	}
}

// Text that shows words in another order than stored, and text that controls a terminal.
func TestAttackBidiOnTheDashboard(t *testing.T) {
	p := hostile()
	p.Query = func(context.Context, api.Query) (api.Answer, error) {
		return api.Answer{Hits: []api.Hit{{Key: testPage, Title: "pay\u202eelgoog\u2066\u200f",
				Snippet: "a\x1b]0;PWNED\x07b\u009b2J\U000e0041"}},
				Coverage: api.Coverage{Missing: []api.Missing{{Peer: "x", Reason: "later \x1b]0;PWNED\x07",
					Slices: 1}}}},
			nil
	}
	p.Status = func(context.Context) (api.Status, error) { return api.Status{}, errors.New("\u202e\x1b[31m") }
	_, page := ask(t, newUI(t, Options{Peer: p}), "GET", "/?q="+url.QueryEscape("\u202ex\u2029"), nil)
	if bad := regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e0fff]").FindString(page); bad != "" {
		t.Errorf("the page has %+q", bad)
	}
	if !strings.Contains(page, "payelgoog") || !strings.Contains(page, "]0;PWNED") {
		t.Error("the texts are not there")
	}
}

const testPage = partition.Key("web:https://example.org/")

// On loopback every user of this machine may read. Only a person who logged in by the link in
// the log gets forms.
func TestTheOperatorLogsInByALink(t *testing.T) {
	s, err := api.New(api.Options{Peer: hostile(), Operator: token,
		UI: newUI(t, Options{Peer: hostile(), Login: true})})
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
	// page sends a request like a browser, which says whether one of our pages sent it.
	page := func(method, path, from string, form url.Values) (string, string) {
		t.Helper()
		req, err := http.NewRequest(method, hs.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "Mozilla/5.0")
		req.Header.Set("Sec-Fetch-Site", from)
		req.Header.Set("Sec-Fetch-Mode", "navigate")
		req.Header.Set("Sec-Fetch-Dest", "document")
		if method == "POST" {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", hs.URL)
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return res.Request.URL.Path, string(b)
	}
	form := url.Values{"seeds": {"https://example.org/"}}
	if path, text := page("GET", "/?q=x", "none", nil); path != "/" || !strings.Contains(text, "Bom dia") ||
		strings.Contains(text, `action="/seed"`) ||
		strings.Contains(text, `action="/override"`) || strings.Contains(text, "/logout") ||
		!strings.Contains(text, `href="/login"`) {
		t.Errorf("at first: %s %s", path, text)
	}
	if path, text := page("POST", "/seed", "same-origin", form); path != "/login" ||
		strings.Contains(text, "web:https://example.org/") {
		t.Errorf("seed without a login: %s", path)
	}
	link := s.LoginPath()
	if path, text := page("GET", link, "none", nil); path != "/" || !strings.Contains(text, `action="/seed"`) ||
		!strings.Contains(text, "/logout") {
		t.Errorf("the link: %s", path)
	}
	if path, text := page("POST", "/seed", "same-origin", form); path != "/seed" ||
		!strings.Contains(text, "web:https://example.org/") {
		t.Errorf("seed: %s", path)
	}
	if path, _ := page("POST", "/seed", "cross-site", form); path != "/seed" {
		t.Errorf("seed from elsewhere: %s", path)
	} else if _, text := page("POST", "/seed", "cross-site", form); strings.Contains(text, "web:https://example.org/") {
		t.Error("a page of another origin seeds with the cookie")
	}
	if path, text := page("POST", "/logout", "same-origin", nil); path != "/" ||
		strings.Contains(text, `action="/seed"`) {
		t.Errorf("log out: %s", path)
	}
	if path, text := page("GET", link, "none", nil); path != "/login" || !strings.Contains(text, "used before") {
		t.Errorf("the link once more: %s", path)
	}
}
