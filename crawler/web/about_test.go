package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/store"
)

func TestAbout(t *testing.T) {
	p := mustExtract(t, read(`<head><script type="application/ld+json">{"@context":"https://schema.org","@graph":[
{"@type":"WebSite","name":"Site","description":"of the site"},
{"@type":"NewsArticle","headline":"Head \u00e9","datePublished":"2024-05-06T07:08:09Z","description":"from data",
 "author":[{"@type":"Person","name":"Ana"},"Rui",{"name":"https://example.org/bot"}],
 "contentLocation":{"address":{"addressLocality":"Porto","addressCountry":{"name":"PT"}}},"comment":[{"author":"Nobody","datePublished":"1999-01-01"}]}],
"geo":{"latitude":41.15,"longitude":-8.61}}</script><script type="application/ld+json">{broken</script><script>var x="<title>no</title>"</script>
<meta property="og:description" content="from og"><link rel="alternate" hreflang="es" href="/es"><link rel=canonical href="/dir/page?PHPSESSID=1"><link rel=canonical href=/late>
<body>text`))
	if p.title != "Head é" || p.description != "from og" || p.author != "Ana, Rui" || p.canonical != "" ||
		p.text != "text" ||
		p.published == nil || p.published.Format(time.RFC3339) != "2024-05-06T07:08:09Z" ||
		!slices.Equal(p.declared, []string{"Porto, PT", "41.15,-8.61"}) {
		t.Errorf("%+v, published %v", p, p.published)
	}
	if len(p.links) != 2 || p.links[0].Lang != "es" || p.links[1].Key != "web:https://example.org/late" {
		t.Errorf("%+v", p.links)
	}
	p = mustExtract(t, read(`<base href=https://other.example/x/><link rel="CANONICAL nofollow" href=one><meta name=author content="A  B"><meta name=Description content=d>`))
	if p.canonical != "web:https://other.example/x/one" || p.author != "A B" || p.description != "d" {
		t.Errorf("%+v", p)
	}
	deep := `<script type=application/ld+json>` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `</script>` +
		`<script type=application/ld+json>[` + strings.Repeat(`{"headline":"h"},`,
		10_000) + `{"headline":"h"}]</script>after`
	if p := mustExtract(t, read(deep)); p.title != "h" || p.text != "after" {
		t.Errorf("%+v", p)
	}
}

func TestCanonicalHeader(t *testing.T) {
	for value, want := range map[string]string{
		`<https://example.org/a>; rel="canonical"`:                              "https://example.org/a",
		`<style.css>; rel=preload; as=style, </b>; title="x, y"; rel=Canonical`: "/b",
		`</c>; rel="next canonical"`:                                            "/c",
		`</d>; rel="next"`:                                                      "",
		`<`:                                                                     "",
		`>; rel=canonical<`:                                                     "",
		"":                                                                      "",
	} {
		if got := canonicalHeader([]string{value}); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// A copy that names its original is kept, and the original is followed. The copy cannot be found in
// a search, unless the original is in another domain.
func TestCanonicalIsMerged(t *testing.T) {
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/copy":
			fmt.Fprint(w, "<!doctype html><link rel=canonical href=/original><p>words")
		case "/header":
			w.Header().Set("Link", "</original>; rel=canonical")
			fmt.Fprint(w, "<p>words")
		case "/far":
			fmt.Fprint(w, "<!doctype html><link rel=canonical href=https://example.org/><p>words")
		default:
			http.NotFound(w, r)
		}
	})
	for path, merged := range map[string]bool{"/copy": true, "/header": true, "/far": false} {
		r, _ := get(t, s, srv.URL+path, store.Due{}, store.Site{})
		if r.Record == nil || r.Record.Merged() != merged || (r.Stop == "canonical") != merged ||
			r.Record.Text != "words" || r.Record.Canonical == "" {
			t.Errorf("%s: %+v, stop %q", path, r.Record, r.Stop)
		}
	}
}
