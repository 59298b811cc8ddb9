package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Google's own robots tests, from a directory named by ECHO_CONFORMANCE.
func TestRobotsConformance(t *testing.T) {
	dir := os.Getenv("ECHO_CONFORMANCE")
	if dir == "" {
		t.Skip("ECHO_CONFORMANCE names no directory: robots-google.json was NOT run")
	}
	data, err := os.ReadFile(filepath.Join(dir, "robots-google.json"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no robots-google.json in ECHO_CONFORMANCE: it was NOT run")
	}
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Test, Robots, Agent, URL string
		Allowed                  bool
		GoogleOnly               bool `json:"google_only"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	passed, raw := 0, 0
	for i, c := range cases {
		if got := allows([]byte(c.Robots), c.Agent, c.URL); got != c.Allowed {
			if strings.ContainsFunc(c.URL, func(r rune) bool { return r > 0x7e }) {
				raw++ // the reference leaves such a URL as it is, the parser escapes it first; a Key is always escaped
				continue
			}
			t.Errorf("case %d (%s, google only: %v): agent %q, %q: allowed %v, want %v; robots\n%s", i, c.Test, c.GoogleOnly, c.Agent, c.URL, got, c.Allowed, c.Robots)
			continue
		}
		passed++
	}
	t.Logf("robots-google.json: %d of %d cases pass; %d differ only for URLs that are not escaped, which no Key is", passed, len(cases), raw)
	if passed < 100 {
		t.Error("too few cases: is it the right file?")
	}
}

func free(context.Context) error { return nil }

func TestRobotsAnswers(t *testing.T) {
	big := "user-agent: *\n" + strings.Repeat("# padding\n", 51_300) + "disallow: /private\n" // cut inside the padding
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
			rob, used, why, err := client(t, Options{}).Robots(t.Context(), url, now, func(context.Context) error { gates++; return nil })
			if err != nil || rob.Status != tt.status || (why != nil) != Unreachable(rob) {
				t.Fatalf("status %d, why %v, err %v", rob.Status, why, err)
			}
			if got := Allowed(rob, url+tt.page); got != tt.allowed {
				t.Errorf("%s allowed: %v", tt.page, got)
			}
			if gates != used.Reqs || gates == 0 || used.Bytes == 0 || len(rob.Body) > maxRobotsBody || rob.Expires.Sub(now) != 24*time.Hour {
				t.Errorf("%d gates, %+v, %d bytes kept till %v", gates, used, len(rob.Body), rob.Expires)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		rob, _, why, err := client(t, Options{}).Robots(t.Context(), "http://127.0.0.1:1", time.Now(), free)
		if err != nil || why == nil || rob.Status != 0 || Allowed(rob, "http://127.0.0.1:1/") {
			t.Errorf("%+v %v %v", rob, why, err)
		}
	})
	t.Run("gate shut", func(t *testing.T) {
		shut := errors.New("shut")
		if _, used, _, err := client(t, Options{}).Robots(t.Context(), "http://127.0.0.1:1", time.Now(), func(context.Context) error { return shut }); err != shut || used.Reqs != 0 {
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
