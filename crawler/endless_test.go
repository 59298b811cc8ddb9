package crawler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// An endless site ends at the page limit, a path that repeats itself earlier. The good site beside
// them is crawled completely. Stats says what stopped the others.
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
				f.link(task.Due.Key, key(t, fmt.Sprintf("https://endless.example.org/%da", n)),
					key(t, fmt.Sprintf("https://endless.example.org/%db", n)))
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
		for host, why := range map[string]string{"endless.example.org": "budget", "echo.example.org": "repetition"} {
			site, err := s.Queue.Site(key(t, "https://"+host+"/").Site())
			if err != nil || site.Stops[why] == 0 || len(site.Stops) != 1 || site.Stops[why] > got.Stops[why] {
				t.Errorf("%s: %v in %+v", host, err, site)
			}
		}
		if got.Fetched != 60+5+11 || got.Stops["repetition"] != 1 || got.Stops["budget"] == 0 ||
			s.Stats().Pending != 0 {
			t.Errorf("%+v, %+v", got, s.Stats())
		}
	})
}
