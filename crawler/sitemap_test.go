package crawler

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web"
)

// Pages to which only a sitemap in robots.txt leads are crawled: through an index, and a compressed
// sitemap in it. Each is asked once, robots.txt first.
func TestSitemapsOfRobots(t *testing.T) {
	srv := serve(t, "127.0.0.31", func(s *realSite, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: otherbot\nDisallow: /\nSITEMAP: /index.xml\n")
		case "/index.xml":
			w.Header().Set("Content-Type", "text/xml")
			fmt.Fprintf(w, "<sitemapindex><sitemap><loc>%s/part.xml.gz</loc></sitemap></sitemapindex>", s.URL)
		case "/part.xml.gz":
			w.Header().Set("Content-Type", "application/gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, "<urlset><url><loc>%s/hidden</loc></url></urlset>", s.URL)
			z.Close()
		case "/":
			fmt.Fprint(w, "<!doctype html><title>Home</title>no links")
		case "/hidden":
			fmt.Fprint(w, "<!doctype html><title>Hidden</title>found")
		default:
			http.NotFound(w, r)
		}
	})
	s := memStore(t)
	defer s.Close()
	admit(t, s, key(t, srv.URL+"/"))
	c := crawlWeb(t, s, 30*time.Second, fetch.Options{AllowNet: loopback()}, web.Options{},
		Options{Delay: 5 * time.Millisecond})
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, path := range []string{"/robots.txt", "/", "/index.xml", "/part.xml.gz", "/hidden"} {
		if srv.asked[path] != 1 {
			t.Errorf("%s asked %d times", path, srv.asked[path])
		}
	}
	if rec, err := s.Archive.Record(key(t, srv.URL+"/hidden")); err != nil || rec.Title != "Hidden" ||
		len(srv.asked) != 5 {
		t.Errorf("%v %+v, asked %v", err, rec, srv.asked)
	}
	for i := 1; i < len(srv.at); i++ {
		if gap := srv.at[i].Sub(srv.at[i-1]); gap < 5*time.Millisecond {
			t.Errorf("a gap of %v", gap)
		}
	}
	if st := c.Stats(); st.Fetched != 4 || st.Requests != 5 {
		t.Errorf("%+v", st)
	}
}
