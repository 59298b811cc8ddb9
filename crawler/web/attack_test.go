package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// An older data directory may hold a Key with the port of another service. It is refused without a
// request. So is a Key with a port that only this operator does not allow. Neither a link nor a
// redirect makes such a Key.
func TestAttackMailPort(t *testing.T) {
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "http://127.0.0.1:25/x", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<a href="http://127.0.0.1:6667/irc">a</a> <a href="http://127.0.0.1:81/low">b</a> <a href="//127.0.0.1:110/">c</a>`))
	})
	for _, text := range []string{"web:http://127.0.0.1:25/", "web:http://127.0.0.1:6667/x",
		"web:http://127.0.0.1:81/"} {
		k, err := partition.KeyFromWire(text)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Fetch(context.Background(),
			fetch.Task{Due: store.Due{Key: k}, Now: now,
				Gate: func(context.Context) error { t.Error("asked"); return nil }})
		if err != nil || res.Next.State != store.StateRefused || res.Stop != "port" ||
			!strings.Contains(res.Next.Reason, "port") || !res.Next.At.After(now) {
			t.Errorf("%s: %+v %v", k, res.Next, err)
		}
	}
	if res, _ := get(t, s, srv.URL+"/moved", store.Due{}, store.Site{}); res.Next.State != store.StateRefused ||
		len(res.Links) != 0 {
		t.Errorf("a redirect: %+v %v", res.Next, res.Links)
	}
	res, _ := get(t, s, srv.URL+"/", store.Due{}, store.Site{})
	if len(res.Links) != 1 || res.Links[0].Key != "web:http://127.0.0.1:81/low" { // what others may be allowed to fetch
		t.Errorf("links %v", res.Links)
	}
}

// The kept part of a header is short, however long the header is.
func TestAttackHeaderValues(t *testing.T) {
	long := strings.Repeat("a", 100<<10)
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch w.Header().Set("Content-Type", "text/"+long); r.URL.Path {
		case "/wide":
			w.Header().Set("Content-Type", "text/"+long[:500])
		case "/params":
			w.Header().Set("Content-Type", "text/html"+strings.Repeat("; a*0=b", 10_000))
		}
		w.Header().Set("ETag", long)
		_, _ = w.Write([]byte("<title>x</title>"))
	})
	for _, path := range []string{"/", "/wide", "/params"} {
		res, _ := get(t, s, srv.URL+path, store.Due{}, store.Site{})
		if res.Record == nil || len(res.Record.MediaType) > maxMediaType || res.Record.ETag != "" {
			t.Errorf("%s: %+v", path, res.Next)
		}
	}
}

// A robots.txt over a limit forbids everything, and the limit is named.
func TestAttackRobotsPatterns(t *testing.T) {
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("User-agent: *\n" + strings.Repeat("allow:*aaab\n", 40_000)))
	})
	res, _ := get(t, s, srv.URL+"/"+strings.Repeat("a", 1900), store.Due{}, store.Site{})
	if res.Next.State != store.StateRefused || res.Stop != fetch.LimitSteps ||
		!strings.Contains(res.Next.Reason, fetch.LimitSteps) {
		t.Errorf("%+v %s", res.Next, res.Stop)
	}
}
