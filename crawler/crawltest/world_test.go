package crawltest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

func TestWorldHasTheSizeAndVarietyOfTheDemo(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Seed: 1})
	expected := w.Expected(w.Seeds())
	if w.Sites() < 80 || len(expected) < 600 {
		t.Fatalf("%d sites and %d pages, want 80 and 600", w.Sites(), len(expected))
	}
	langs, statuses := map[string]int{}, map[int]int{}
	texts := map[string]string{}
	links, leaving := 0, 0
	for _, u := range expected {
		p, ok := w.Page(u)
		if !ok {
			t.Fatalf("expected %s is no page", u)
		}
		langs[p.Lang]++
		statuses[p.Status]++
		if p.Status == http.StatusOK && !strings.Contains(u, "/copia/") {
			if other, twice := texts[p.Text]; twice {
				t.Errorf("%s and %s have the same text", u, other)
			}
			texts[p.Text] = u
		}
		for _, l := range p.Links {
			links++
			if host(t, l.URL) != host(t, u) {
				leaving++
			}
		}
	}
	for _, lang := range []string{"pt", "es", "en"} {
		if langs[lang] < 150 {
			t.Errorf("only %d pages in %s", langs[lang], lang)
		}
	}
	for _, status := range []int{200, 301, 302, 404} {
		if statuses[status] < 8 {
			t.Errorf("only %d answers of status %d", statuses[status], status)
		}
	}
	if share := float64(leaving) / float64(links); share < 0.20 || share > 0.5 {
		t.Errorf("%.3f of %d links leave their site, want at least 0.20", share, links)
	}
}

func host(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestWorldIsAFunctionOfItsSeed(t *testing.T) {
	a, b, c := crawltest.NewWorld(crawltest.Options{Seed: 5}), crawltest.NewWorld(crawltest.Options{Seed: 5}),
		crawltest.NewWorld(crawltest.Options{Seed: 6})
	same, differ := 0, 0
	for _, u := range a.Expected(a.Seeds()) {
		body := get(t, a, u)
		if body != get(t, b, u) {
			t.Fatalf("%s differs between two worlds of one seed", u)
		}
		if body == get(t, c, u) {
			same++
		} else {
			differ++
		}
	}
	if differ < 10*same {
		t.Errorf("another seed gave %d equal and %d different pages", same, differ)
	}
}

func get(t *testing.T, w *crawltest.World, u string) string {
	t.Helper()
	resp, err := (&http.Client{Transport: w.RoundTripper(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Get("Location") + string(body)
}

// Expected was written by hand. A crawler that knows only HTTP, HTML and robots.txt must fetch the
// same set.
func TestExpectedIsWhatACorrectCrawlerFetches(t *testing.T) {
	for name, o := range map[string]crawltest.Options{
		"demo":      {Seed: 1},
		"names":     {Seed: 2, Names: true, Sites: 40, Port: 8080},
		"small":     {Seed: 3, Sites: 12},
		"plain":     {Seed: 4, Sites: 12, Pages: 40, Plain: true},
		"one site":  {Seed: 5, Sites: 1, Pages: 30},
		"one page":  {Seed: 6, Sites: 20, Pages: 1},
		"tree only": {Seed: 7, Sites: 20, Pages: 30, Degree: -1},
		"no cross":  {Seed: 8, Sites: 20, Pages: 10, Cross: -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := crawltest.NewWorld(o)
			v := newVisitor(t, w.RoundTripper(), w.AllowNet())
			v.crawl(w.Seeds())
			expected := w.Expected(w.Seeds())
			if d := w.Compare(expected); !d.None() {
				t.Fatalf("difference %+v", d)
			}
			r := w.Report()
			if int(r.Pages) != len(expected) || r.Requests != r.Pages+r.Robots || r.Robots != int64(w.Sites()) ||
				r.MaxRobots != 1 {
				t.Errorf("counts do not add up: %+v, expected %d", r, len(expected))
			}
			if r.Duplicates+r.Stray+r.RobotsViolations+r.BeforeRobots+r.Forbidden+r.Maze != 0 {
				t.Errorf("a correct crawler is accused: %+v", r)
			}
			for u, title := range v.titles {
				if p, _ := w.Page(u); p.Title != title {
					t.Errorf("%s: title %q, truth %q", u, title, p.Title)
				}
			}
		})
	}
}

func TestReportCatchesARudeCrawler(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 12, Maze: true})
	v := newVisitor(t, w.RoundTripper(), netip.MustParsePrefix("0.0.0.0/0"))
	v.rude, v.limit = true, 400
	v.crawl(w.Seeds())
	r := w.Report()
	if r.RobotsViolations == 0 || r.BeforeRobots == 0 || r.Forbidden == 0 || r.Maze == 0 {
		t.Errorf("not caught: %+v", r)
	}
	if d := w.Compare(w.Expected(w.Seeds())); len(d.Extra) == 0 {
		t.Error("what nofollow and robots.txt hide was fetched, and nothing is extra")
	}
	w.Reset()
	get(t, w, w.Home(0))
	get(t, w, w.Home(0))
	get(t, w, w.Home(0)+"comentario")
	r = w.Report()
	if r.Duplicates != 1 || r.Stray != 1 || r.Pages != 1 || r.Requests != 3 {
		t.Errorf("after reset: %+v", r)
	}
	if len(r.Repeats) != 1 || !r.Repeats[0].Again.After(r.Repeats[0].Before) ||
		!strings.HasPrefix(r.Repeats[0].URL, "http://") {
		t.Errorf("repeats %+v", r.Repeats)
	}
	if d := w.Compare([]string{w.Home(0), w.Home(1)}); len(d.Missing) != 1 || len(d.Twice) != 1 || len(d.Extra) != 0 {
		t.Errorf("compare: %+v", d)
	}
}

func TestStartServesEverySiteOnItsOwnAddress(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Seed: 9, Sites: 12})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Start(); err == nil {
		t.Error("started twice")
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	newVisitor(t, tr, w.AllowNet()).crawl(w.Seeds())
	if d := w.Compare(w.Expected(w.Seeds())); !d.None() {
		t.Fatalf("difference %+v", d)
	}
	_, port, err := net.SplitHostPort(host(t, w.Home(0)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Get("http://127.0.0.1:" + port + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r := w.Report(); r.Forbidden != 1 {
		t.Errorf("a request to 127.0.0.1 was not noticed: %+v", r)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if resp, err := (&http.Client{}).Get(w.Home(0)); err == nil {
		resp.Body.Close()
		t.Error("answers after Close")
	}
}

// With fake time, an hour of polite waiting costs nothing, and gaps are exact.
func TestPipeIsMeasuredInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawltest.NewWorld(crawltest.Options{Sites: 3, Names: true, Gap: time.Second,
			Think: 200 * time.Millisecond})
		defer w.Close()
		tr := &http.Transport{DialContext: w.Pipe().DialContext}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		for i, pause := range []time.Duration{0, time.Hour, 800 * time.Millisecond, 700 * time.Millisecond} {
			time.Sleep(pause)
			resp, err := client.Get(w.Home(1))
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			resp.Body.Close()
		}
		r := w.Report()
		if r.MinGap != 900*time.Millisecond || r.Hurried != 1 || r.MaxAtOnce != 1 {
			t.Errorf("min gap %v, hurried %d, at once %d; want 900ms, 1, 1", r.MinGap, r.Hurried, r.MaxAtOnce)
		}
		var pauses []time.Duration
		for _, p := range r.Pauses {
			pauses = append(pauses, p.To.Sub(p.From))
		}
		if want := []time.Duration{time.Hour + 200*time.Millisecond, time.Second,
			900 * time.Millisecond}; !slices.Equal(pauses, want) {
			t.Errorf("pauses of %v, want %v", pauses, want)
		}
	})
}

func TestPipeRefusesWhatIsNotInTheWorld(t *testing.T) {
	for _, names := range []bool{false, true} {
		w := crawltest.NewWorld(crawltest.Options{Sites: 3, Names: names})
		p := w.Pipe()
		for _, addr := range []string{"169.254.169.254:80", "[::1]:80", "10.0.0.1:80", w.Addr(0).String() + ":81",
			"127.77.200.1:80", "nosuch.test:80", "nonsense"} {
			if c, err := p.DialContext(t.Context(), "tcp", addr); err == nil {
				c.Close()
				t.Errorf("dialled %s", addr)
			}
		}
		c, err := p.DialContext(t.Context(), "tcp", w.Addr(0).String()+":80")
		if err != nil {
			t.Fatal(err)
		}
		if c.RemoteAddr().String() != w.Addr(0).String()+":80" {
			t.Errorf("remote address %s", c.RemoteAddr())
		}
		c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.Close()
		if c, err := p.DialContext(ctx, "tcp", w.Addr(0).String()+":80"); err == nil {
			c.Close()
			t.Error("dialled a closed world")
		}
	}
}

func TestConditionalRequestsAreAnswered304(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 3})
	client := &http.Client{Transport: w.RoundTripper()}
	first, err := client.Get(w.Home(0))
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	req, _ := http.NewRequest(http.MethodGet, w.Home(0), nil)
	req.Header.Set("If-None-Match", first.Header.Get("ETag"))
	again, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	again.Body.Close()
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("status %d", again.StatusCode)
	}
	post, err := client.Post(w.Home(0), "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	post.Body.Close()
	if post.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("post: status %d", post.StatusCode)
	}
}

func TestMatchingFindsAPageByItsToken(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Seed: 1, Sites: 20})
	expected := w.Expected(w.Seeds())
	p, ok := w.Page(w.Home(4))
	if !ok {
		t.Fatal("no home page")
	}
	if got := w.Matching(strings.ToUpper(p.Token), expected); !slices.Equal(got, []string{p.URL}) {
		t.Errorf("token %s is on %v", p.Token, got)
	}
	for _, word := range w.Words() {
		if n := len(w.Matching(word, expected)); n < 2 {
			t.Errorf("%q is on %d pages, want several", word, n)
		}
	}
	copies := 0
	for _, u := range expected {
		if c, _ := w.Page(u); strings.Contains(u, "/copia/") {
			copies++
			if n := len(w.Matching(c.Token, expected)); n != 2 {
				t.Errorf("the token of copy %s is on %d pages, want 2", u, n)
			}
		}
	}
	if copies == 0 {
		t.Error("no copies")
	}
}

func TestPageKnowsOnlyCanonicalURLs(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Names: true, Sites: 10})
	home := w.Home(0)
	for _, u := range []string{home + "?x=1", home + "artigos/nosuch-1", strings.ToUpper(home), home + "copia/99",
		"https" + home[4:], "%", home + "eco", home + "agenda/x/1", "http://nosuch.test/", "http://127.0.0.1/"} {
		if p, ok := w.Page(u); ok {
			t.Errorf("%q is page %+v", u, p)
		}
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	err := crawltest.Options{Sites: -1, Pages: -2, Words: -3, Degree: 5000, Cross: 3, Seeds: -4, Port: 99999,
		Prefix: "x", Think: -1}.Check()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"sites -1", "pages -2", "words -3", "degree 5000", "cross 3", "seeds -4",
		"port 99999", `prefix "x"`, "negative duration"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if err := (crawltest.Options{}).Check(); err != nil {
		t.Error(err)
	}
}

func FuzzPagePath(f *testing.F) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 12, Maze: true})
	for _, u := range w.Expected(w.Seeds()) {
		f.Add(u)
	}
	f.Add("http://127.77.0.7/eco/eco")
	f.Add("http://127.77.0.2/agenda/2026/12")
	f.Add("http://127.77.0.1/artigos/-9999999999999999999")
	f.Fuzz(func(t *testing.T, u string) {
		if p, ok := w.Page(u); ok && p.URL != u {
			t.Errorf("%q became %q", u, p.URL)
		}
	})
}

func BenchmarkServe(b *testing.B) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 200, Pages: 2000, Words: 1500, Plain: true, Degree: 20})
	client := &http.Client{Transport: w.RoundTripper()}
	homes := make([]string, w.Sites())
	for s := range homes {
		homes[s] = w.Home(s)
	}
	for i := 0; b.Loop(); i++ {
		resp, err := client.Get(homes[i%len(homes)])
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(resp.ContentLength)
		resp.Body.Close()
	}
}

// Not every client sends the port in Host.
func TestHostWithoutPort(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 2, Port: 8080})
	for host, want := range map[string]int{"127.77.0.1:8080": http.StatusOK, "127.77.0.1": http.StatusOK,
		"127.77.0.1:80": http.StatusMisdirectedRequest, "127.77.9.1": http.StatusMisdirectedRequest} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		if w.Handler().ServeHTTP(rec, r); rec.Code != want {
			t.Errorf("%s: %d, want %d", host, rec.Code, want)
		}
	}
}
