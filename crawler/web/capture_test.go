package web

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/store"
)

// archive is a site with some pages that may not be kept.
func archive(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	switch r.URL.Path {
	case "/packed":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, "<title>T</title>words")
		_ = z.Close()
	case "/meta":
		fmt.Fprint(w, `<meta name=robots content="max-snippet:1, NoArchive">words`)
	case "/header":
		w.Header().Set("X-Robots-Tag", "noarchive")
		fmt.Fprint(w, "words")
	case "/noindex":
		w.Header().Set("X-Robots-Tag", "noindex")
		http.Redirect(w, r, "/meta", http.StatusFound)
	case "/image":
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("X-Robots-Tag", "noindex")
		fmt.Fprint(w, "\x89PNG")
	case "/other":
		w.Header().Set("X-Robots-Tag", "otherbot: noarchive")
		fmt.Fprint(w, "words")
	case "/same":
		w.WriteHeader(http.StatusNotModified)
	default:
		http.NotFound(w, r)
	}
}

// The store gets the request and response in HTTP/1.1 form, and the information whether the page
// may be kept.
func TestExchangesAreGiven(t *testing.T) {
	s, srv := site(t, fetch.Options{}, archive)
	s.o.Keep = true
	for path, archived := range map[string]bool{"/packed": true, "/meta": false, "/header": false, "/noindex": false,
		"/image": false, "/other": true} {
		r, _ := get(t, s, srv.URL+path, store.Due{}, store.Site{})
		if r.Capture == nil || r.Record == nil || r.Record.NoArchive == archived {
			t.Errorf("%s: %+v", path, r.Record)
		}
	}
	r, _ := get(t, s, srv.URL+"/packed", store.Due{}, store.Site{})
	c := r.Capture
	if string(c.Body) != "<title>T</title>words" || c.Cut || c.Addr != "127.0.0.1" || c.Protocol != "HTTP/1.1" {
		t.Errorf("%+v", c)
	}
	host := strings.TrimPrefix(srv.URL, "http://")
	if text := string(c.Request); !strings.HasPrefix(text,
		"GET /packed HTTP/1.1\r\nHost: "+host+"\r\nAccept: text/html") ||
		!strings.Contains(text, "\r\nUser-Agent: echo-node/") || !strings.HasSuffix(text, "\r\n") {
		t.Errorf("%q", text)
	}
	if text := string(c.Response); !strings.HasPrefix(text, "HTTP/1.1 200 OK\r\n") ||
		!strings.Contains(text, "\r\nContent-Encoding: gzip\r\n") || strings.Contains(text, "\r\n\r\n") {
		t.Errorf("%q", text)
	}
	r, _ = get(t, s, srv.URL+"/same", store.Due{ETag: `"v1"`}, store.Site{})
	if c := r.Capture; c == nil || c.Revisit != store.NotModified || c.At.Before(now) ||
		!strings.HasPrefix(string(c.Response), "HTTP/1.1 304 Not Modified\r\n") ||
		!strings.Contains(string(c.Request), "If-None-Match: \"v1\"\r\n") {
		t.Errorf("%+v", c)
	}
	r, _ = get(t, s, srv.URL+"/image", store.Due{}, store.Site{})
	if c := r.Capture; len(c.Body) != 0 || !c.Cut {
		t.Errorf("what was not read: %+v", c)
	}
	s.o.Keep = false
	r, _ = get(t, s, srv.URL+"/packed", store.Due{}, store.Site{})
	if c := r.Capture; c == nil || len(c.Response)+len(c.Request)+len(c.Body) != 0 {
		t.Errorf("not to be kept: %+v", c)
	}
}
