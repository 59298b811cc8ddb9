package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Google's own robots tests: every assertion of robots_test.cc that is about one agent and has
// constant arguments (testdata/README.md).
func TestRobotsConformance(t *testing.T) { robotsFixture(t, "robots_google.json", 140) }

// robotsCase is a robots.txt, an agent, a URL, and the expected verdict.
type robotsCase struct {
	Robots  string `json:"robots"`
	Agent   string `json:"agent"`
	URL     string `json:"url"`
	Allowed bool   `json:"allowed"`
}

// The expected verdicts are those of grobotstxt, a translation of Google's parser, for generated
// files. This package used grobotstxt earlier.
func TestRobotsAsBefore(t *testing.T) { robotsFixture(t, "robots_grobotstxt.json", 500) }

func robotsFixture(t *testing.T, name string, least int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var cases []robotsCase
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < least {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for i, c := range cases {
		if got, over := judge([]byte(c.Robots), c.Agent, c.URL); got != c.Allowed || over != nil {
			t.Errorf("case %d: agent %q, %q: allowed %v, want %v (%v); robots\n%s", i, c.Agent, c.URL, got, c.Allowed,
				over, c.Robots)
		}
	}
}

func free(context.Context) error { return nil }

func TestRobotsAnswers(t *testing.T) {
	// the cut is inside the padding
	big := "user-agent: *\n" + strings.Repeat("# padding\n", 51_300) + "disallow: /private\n"
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		page    string
		allowed bool
	}{
		{"rules", write(200, "User-agent: echo-node\nDisallow: /a\nUser-agent: *\nDisallow: /"), 200, "/b", true},
		{"own group", write(200, "User-agent: echo-node\nDisallow: /a\nUser-agent: *\nDisallow: /b"), 200, "/a", false},
		{"group for all", write(200, "User-agent: *\nDisallow: /a"), 200, "/a/b", false},
		{"not found", write(404, "User-agent: *\nDisallow: /"), 404, "/a", true},
		{"forbidden", write(403, ""), 403, "/a", true},
		{"too many", write(429, ""), 429, "/a", false},
		{"broken", write(500, "User-agent: *\nAllow: /"), 500, "/a", false},
		{"large", write(200, big), 200, "/private", true},
		{"five redirects", redirects(5), 200, "/a", false},
		{"six redirects", redirects(6), 302, "/a", true},
		{"nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(301) }, 301, "/a", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gates := 0
			url := server(t, tt.handler)
			now := time.Now()
			rob, used, why, err := client(t, Options{}).Robots(t.Context(), url, now,
				func(context.Context) error { gates++; return nil })
			if err != nil || rob.Status != tt.status || (why != nil) != Unreachable(rob) {
				t.Fatalf("status %d, why %v, err %v", rob.Status, why, err)
			}
			if got := Allowed(rob, url+tt.page); got != tt.allowed {
				t.Errorf("%s allowed: %v", tt.page, got)
			}
			if gates != used.Reqs || gates == 0 || used.Bytes == 0 || len(rob.Body) > maxRobotsBody ||
				rob.Expires.Sub(now) != 24*time.Hour {
				t.Errorf("%d gates, %+v, %d bytes kept till %v", gates, used, len(rob.Body), rob.Expires)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		rob, _, why, err := client(t, Options{}).Robots(t.Context(), "http://"+closed(t), time.Now(), free)
		if err != nil || why == nil || rob.Status != 0 || Allowed(rob, "http://127.0.0.1/") {
			t.Errorf("%+v %v %v", rob, why, err)
		}
	})
	t.Run("gate shut", func(t *testing.T) {
		shut := errors.New("shut")
		if _, used, _, err := client(t, Options{}).Robots(t.Context(), "http://"+closed(t), time.Now(),
			func(context.Context) error { return shut }); err != shut || used.Reqs != 0 {
			t.Error(err, used)
		}
	})
}

func write(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

func redirects(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		hop := strings.Count(r.URL.Path, "z")
		if hop < n {
			http.Redirect(w, r, "/robots"+strings.Repeat("z", hop+1), http.StatusFound)
			return
		}
		w.Write([]byte("user-agent: *\ndisallow: /"))
	}
}

func TestCrawlDelay(t *testing.T) {
	tests := []struct {
		robots string
		want   time.Duration
		ok     bool
	}{
		{"user-agent: *\ncrawl-delay: 10", 10 * time.Second, true},
		{"user-agent: *\ncrawl-delay: 0.5\ndisallow: /x", 500 * time.Millisecond, true},
		{"user-agent: *\ncrawl-delay: 10\n\nuser-agent: Echo-Node\ncrawl-delay: 2", 2 * time.Second, true},
		{"user-agent: *\ncrawl-delay: 10\n\nuser-agent: echo-node\ndisallow: /x", 0, false},
		{"user-agent: other\nuser-agent: echo-node/1.0\ncrawl-delay: 3", 3 * time.Second, true},
		{"user-agent: echo-node\ndisallow: /x\nuser-agent: other\ncrawl-delay: 3", 0, false},
		{"user-agent: other\ncrawl-delay: 3", 0, false},
		{"crawl-delay: 3", 0, false},
		{"user-agent: *\ncrawl-delay: -3\n", 0, false},
		{"user-agent: *\ncrawl-delay: NaN\n", 0, false},
		{"user-agent: *\ncrawl-delay: soon\n", 0, false},
		{"user-agent: *\ncrawl-delay: 1e300\n", 365 * 24 * time.Hour, true},
	}
	for _, tt := range tests {
		if d, ok := CrawlDelay(store.Robots{Status: 200, Body: []byte(tt.robots)}); d != tt.want || ok != tt.ok {
			t.Errorf("%q: %v %v, want %v %v", tt.robots, d, ok, tt.want, tt.ok)
		}
	}
}

// The matcher that walks the path once gives the same results as one that tries everything.
func TestRobotsPatterns(t *testing.T) {
	var slow func(path, pattern string) bool
	slow = func(path, pattern string) bool {
		switch {
		case pattern == "":
			return true
		case pattern == "$":
			return path == ""
		case pattern[0] == '*':
			return slow(path, pattern[1:]) || path != "" && slow(path[1:], pattern)
		}
		return path != "" && path[0] == pattern[0] && slow(path[1:], pattern[1:])
	}
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(letters string, most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	matched := 0
	for range 100_000 {
		path, pattern := "/"+draw("ab$", 8), "/"+draw("ab**$", 7)
		v := verdict{path: path}
		got := v.matches(pattern)
		if want := slow(path, pattern); got != want {
			t.Fatalf("%q matches %q: %v, want %v", path, pattern, got, want)
		}
		if got {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
}

func FuzzRobots(f *testing.F) {
	f.Add([]byte("user-agent: *\ndisallow: /a*b$\ncrawl-delay: 3\nsitemap: x"), "http://a/b")
	f.Add([]byte("\xef\xbb\xbfuser-agent echo-node\nallow /%e3%81\x00\r\r\n"), "http://a/%")
	f.Fuzz(func(t *testing.T, body []byte, url string) {
		rob := store.Robots{Status: 200, Body: body}
		first := Allowed(rob, url)
		if Allowed(rob, url) != first {
			t.Fatal("two answers for one question")
		}
		if d, ok := CrawlDelay(rob); d < 0 || !ok && d != 0 {
			t.Fatal(d, ok)
		}
	})
}
