package node_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
)

// A feed's hints about pages of other slices reach their owners with the links. The owners follow
// them, and the next visits find whether the hints were right.
func TestHintsReachTheOwners(t *testing.T) {
	const pages = 8
	page := func(i int) string { return fmt.Sprintf("127.77.201.%d", i+1) }
	const feed = "127.77.200.1"
	edition := func() int64 { return time.Now().Unix() / 40 }
	beside := func(r *http.Request) *http.Response {
		host := r.URL.Hostname()
		if !strings.HasPrefix(host, "127.77.20") {
			return nil
		}
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.URL.Path == "/robots.txt":
			w.WriteHeader(http.StatusNotFound)
		case host == feed:
			w.Header().Set("Content-Type", "application/rss+xml")
			fmt.Fprint(w, `<rss version="2.0"><channel><title>News</title>`)
			for i := range pages {
				fmt.Fprintf(w, "<item><title>Page %d</title><link>http://%s/</link><pubDate>%s</pubDate></item>", i,
					page(i), time.Unix(edition()*40, 0).UTC().Format(time.RFC1123Z))
			}
			fmt.Fprint(w, "</channel></rss>")
		default:
			fmt.Fprintf(w, "<!doctype html><title>Page</title><p>Edition %c of this page.", 'a'+rune(edition()%26))
		}
		resp := w.Result()
		resp.Request = r
		return resp
	}
	o := nodetest.SimOptions{Seed: 5, World: crawltest.Options{Seed: 5, Sites: 1, Pages: 1},
		Node: node.Options{Delay: time.Second, Revisit: time.Minute}, SliceBits: 6, Beside: beside}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		a, b := s.Add(), s.Add()
		s.Settle(5 * time.Minute)
		k, err := partition.ParseKey("http://" + feed + "/feed.xml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Node().Seed(context.Background(), []partition.Key{k}); err != nil {
			t.Fatal(err)
		}
		s.Until("the owners of both hear", 20*time.Minute, func() string {
			ha, hb := a.Node().Status().Hints, b.Node().Status().Hints
			if ha["received"] == 0 || hb["received"] == 0 || ha["right"]+ha["wrong"] == 0 ||
				hb["right"]+hb["wrong"] == 0 {
				return fmt.Sprint(ha, hb)
			}
			return ""
		})
	})
}
