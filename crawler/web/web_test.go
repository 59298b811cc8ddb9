package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// site serves h on loopback and returns a Source that may fetch from it.
func site(t *testing.T, o fetch.Options, h http.HandlerFunc) (*Source, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.AllowNet = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c, err := fetch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := New(Options{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	return s, srv
}

// get fetches url until there is a result, as the crawler would. It also returns the number of
// requests.
func get(t *testing.T, s *Source, url string, due store.Due, st store.Site) (fetch.Result, int) {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	due.Key = k
	at, reqs := now, 0
	for range 20 {
		res, err := s.Fetch(context.Background(),
			fetch.Task{Due: due, Site: st, Now: at, Gate: func(context.Context) error { return nil }})
		if err != nil {
			t.Fatalf("fetch %s: %v", url, err)
		}
		reqs += res.Reqs
		if !res.Again {
			return res, reqs
		}
		st = res.Site
		if at = at.Add(time.Second); st.NextAllowed.After(at) {
			at = st.NextAllowed
		}
	}
	t.Fatalf("%s: never answered", url)
	return fetch.Result{}, 0
}

func TestPage(t *testing.T) {
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.Error(w, "none", http.StatusNotFound)
		case "/":
			if !strings.HasPrefix(r.UserAgent(), "echo-node/") {
				t.Errorf("user agent %q", r.UserAgent())
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("ETag", `"v1"`)
			w.Write([]byte(`<!doctype html><html lang="pt-BR"><title> A  página </title><meta name=date content=2024-03-02>
<nav><a href=/menu>Menu</a></nav><h1>Olá</h1><p>Um <b>texto</b>.<script>x()</script><p>Outro
<a href="b?x=1#frag" rel=" NoFollow ">bê</a> <a href=mailto:a@b>m</a><a href=/c><img alt="cê"></a>`))
		}
	})
	res, reqs := get(t, s, srv.URL+"/", store.Due{}, store.Site{})
	if reqs != 2 || res.Next.State != store.StateDone || res.Record == nil {
		t.Fatalf("%d requests, %+v", reqs, res)
	}
	r := res.Record
	if r.Title != "A página" || r.Text != "Olá\nUm texto.\nOutro bê m" || r.Lang != "pt-BR" || r.ETag != `"v1"` ||
		r.MediaType != "text/html" {
		t.Errorf("title %q, text %q, lang %q, etag %q, type %q", r.Title, r.Text, r.Lang, r.ETag, r.MediaType)
	}
	if r.PublishedAt == nil || r.PublishedAt.Format("2006-01-02") != "2024-03-02" {
		t.Errorf("published %v", r.PublishedAt)
	}
	base := partition.Key("web:" + srv.URL)
	want := []store.Link{{Key: base + "/menu", Anchor: "Menu"}, {Key: base + "/b?x=1", Anchor: "bê", Rel: "nofollow",
		NoFollow: true}, {Key: base + "/c", Anchor: "cê"}}
	if len(r.Links) != len(want) {
		t.Fatalf("links %+v", r.Links)
	}
	for i, l := range r.Links {
		if l != want[i] {
			t.Errorf("link %d is %+v, want %+v", i, l, want[i])
		}
	}
}
