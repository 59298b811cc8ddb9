package crawler

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrap(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.org/":                                                  "",
		"https://example.org/2024/05/05/05/05/page":                             "",
		"https://example.org/doc/doc/doc/doc":                                   "",
		"https://example.org/doc/doc/doc/doc/doc":                               "repetition",
		"https://example.org/a/x/a/x/a/x/a/x/a/x/a/x":                           "",
		"https://example.org/" + strings.Repeat("a/b1/", 6):                     "repetition",
		"https://example.org/?id=1&id=2&id=3&id=4&id=5&id=6":                    "",
		"https://example.org/?" + strings.Repeat("filter=some-long-value&", 12): "repetition",
		"https://example.org" + strings.Repeat("/1", 50):                        "deep-path",
	} {
		if got := trap(key(t, url)); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// An endless site ends at the budget, a path that repeats itself before; the
// good site beside it is crawled whole, and Stats say what stopped the others.
func TestEndlessSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		f.reply = func(task Task, _ int) (Result, error) {
			url := task.Due.Key.URL()
			switch task.Due.Key.Host() {
			case "endless.example.org":
				f.mu.Lock()
				n := len(f.times)
				f.mu.Unlock()
				f.link(task.Due.Key, key(t, fmt.Sprintf("https://endless.example.org/%da", n)), key(t, fmt.Sprintf("https://endless.example.org/%db", n)))
			case "echo.example.org":
				f.link(task.Due.Key, key(t, url+"again/"))
			}
			return f.page(task), nil
		}
		good := key(t, "https://good.example.org/")
		for i := range 10 {
			f.links[good] = append(f.links[good], key(t, fmt.Sprint(good.URL(), i)))
		}
		admit(t, s, good, key(t, "https://endless.example.org/"), key(t, "https://echo.example.org/"))
		c := crawl(t, s, f, Options{MaxPages: 60}, 5*time.Minute)
		got := c.Stats()
		if got.Fetched != 60+5+11 || got.Stops["repetition"] != 1 || got.Stops["budget"] == 0 || s.Stats().Pending != 0 {
			t.Errorf("%+v, %+v", got, s.Stats())
		}
	})
}
