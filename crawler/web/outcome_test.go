package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// outcomes is a site with a path for each outcome.
func outcomes(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html")
	switch r.URL.Path {
	case "/robots.txt":
		h.Set("Content-Type", "text/plain")
		fmt.Fprint(w, "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
	case "/moved":
		h.Set("Location", "to?b=1#f")
		w.WriteHeader(http.StatusMovedPermanently)
	case "/loop":
		http.Redirect(w, r, "/loop#again", http.StatusFound)
	case "/nowhere":
		w.WriteHeader(http.StatusFound)
	case "/mail":
		h.Set("Location", "mailto:a@example.org")
		w.WriteHeader(http.StatusFound)
	case "/same":
		if r.Header.Get("If-None-Match") == `"v1"` && r.Header.Get("If-Modified-Since") == "then" {
			w.WriteHeader(http.StatusNotModified)
		}
	case "/gone":
		w.WriteHeader(http.StatusGone)
	case "/forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "/slow":
		h.Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	case "/broken":
		w.WriteHeader(http.StatusInternalServerError)
	case "/image":
		h.Set("Content-Type", "image/png")
		w.Write(bytes.Repeat([]byte("x"), 1<<20))
	case "/untyped":
		h["Content-Type"] = nil
		fmt.Fprint(w, "<!doctype html><title>Found</title>")
	case "/text":
		h.Set("Content-Type", "text/plain; charset=iso-8859-1")
		w.Write([]byte("ol\xe1\r\n\r\n  mundo"))
	case "/session": // a new session for each request
		http.Redirect(w, r, "/session?PHPSESSID="+strconv.FormatInt(time.Now().UnixNano(), 36), http.StatusFound)
	case "/login":
		http.Redirect(w, r, "/a?PHPSESSID=123&x=1", http.StatusFound)
	case "/noindex":
		fmt.Fprint(w, `<title>T</title><meta name=ROBOTS content="NOINDEX">secret <a href=/a>a</a>`)
	case "/nofollow":
		h.Add("X-Robots-Tag", "googlebot: noindex")
		h.Add("X-Robots-Tag", "nofollow")
		fmt.Fprint(w, `<title>T</title>words <a href=/a>a</a>`)
	case "/huge":
		for range 3 << 10 {
			fmt.Fprint(w, strings.Repeat("ab ", 341)+"\n")
		}
	case "/short":
		h.Set("Content-Length", "100")
		fmt.Fprint(w, "abc")
	default:
		http.NotFound(w, r)
	}
}

func TestOutcomes(t *testing.T) {
	s, srv := site(t, fetch.Options{MaxBody: 2 << 20}, outcomes)
	base := partition.Key("web:" + srv.URL)
	type want struct {
		path, reason, stop string
		state              store.State
		record             bool
		check              func(*testing.T, fetch.Result)
	}
	tests := []want{
		{path: "/moved", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if r.Record.Redirect != base+"/to?b=1" || r.Record.Status != 301 || len(r.Links) != 1 ||
				r.Links[0].Key != base+"/to?b=1" {
				t.Errorf("%+v", r.Record)
			}
		}},
		{path: "/loop", state: store.StateRefused, reason: "redirects to itself", stop: "redirect"},
		{path: "/session", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if len(r.Links) != 1 || !strings.HasPrefix(string(r.Links[0].Key), string(base+"/session?PHPSESSID=")) {
				t.Errorf("%+v", r.Links)
			}
		}},
		{path: "/session?PHPSESSID=abc", state: store.StateRefused, reason: "redirects to itself with another session",
			stop: "session"},
		{path: "/login", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if len(r.Links) != 1 || r.Links[0].Key != base+"/a?x=1" {
				t.Errorf("%+v", r.Links)
			}
		}},
		{path: "/nowhere", state: store.StateRefused, reason: "status 302 without a usable Location", stop: "redirect"},
		{path: "/mail", state: store.StateRefused, reason: "status 302 without a usable Location", stop: "redirect"},
		{path: "/same", state: store.StateDone},
		{path: "/gone", state: store.StateGone, reason: "status 410"},
		{path: "/none", state: store.StateGone, reason: "status 404"},
		{path: "/forbidden", state: store.StateRefused, reason: "status 403", stop: "status"},
		{path: "/private/a", state: store.StateRefused, reason: "robots", stop: "robots"},
		{path: "/slow", state: store.StatePending, reason: "status 429", stop: "slowed",
			check: func(t *testing.T, r fetch.Result) {
				if wait := r.Next.At.Sub(now); wait < 90*time.Second ||
					r.Site.NextAllowed.Before(now.Add(90*time.Second)) || r.Site.BackOff == 0 {
					t.Errorf("wait %v, site %+v", wait, r.Site)
				}
			}},
		{path: "/broken", state: store.StatePending, reason: "status 500", stop: "status"},
		{path: "/short", state: store.StatePending, reason: "body: unexpected EOF", stop: "unreachable"},
		{path: "/image", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if r.Record.MediaType != "image/png" || r.Record.Text != "" || r.Bytes > 100_000 {
				t.Errorf("%+v, %d bytes", r.Record, r.Bytes)
			}
		}},
		{path: "/untyped", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if r.Record.MediaType != "text/html" || r.Record.Title != "Found" ||
				!strings.HasPrefix(r.Record.Digest, "sha256:") {
				t.Errorf("%+v", r.Record)
			}
		}},
		{path: "/text", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if r.Record.Text != "olá\nmundo" {
				t.Errorf("%q", r.Record.Text)
			}
		}},
		{path: "/noindex", state: store.StateDone, record: true, stop: "noindex",
			check: func(t *testing.T, r fetch.Result) {
				if !r.Record.NoIndex || r.Record.Text != "" || r.Record.Title != "" || len(r.Links) != 1 ||
					r.Links[0].NoFollow {
					t.Errorf("%+v", r.Record)
				}
			}},
		{path: "/nofollow", state: store.StateDone, record: true, check: func(t *testing.T, r fetch.Result) {
			if r.Record.NoIndex || r.Record.Text != "words a" || len(r.Links) != 1 || !r.Links[0].NoFollow {
				t.Errorf("%+v", r.Record)
			}
		}},
		{path: "/huge", state: store.StateDone, record: true, reason: "cut off at body-size, text-size",
			stop: "body-size", check: func(t *testing.T, r fetch.Result) {
				if len(r.Record.Text) > 1<<20 || len(r.Record.Text) < 1<<20-10 {
					t.Errorf("%d bytes of text", len(r.Record.Text))
				}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			r, _ := get(t, s, srv.URL+tt.path, store.Due{ETag: `"v1"`, Modified: "then"}, store.Site{})
			if r.Next.State != tt.state || r.Next.Reason != tt.reason || r.Stop != tt.stop ||
				(r.Record != nil) != tt.record {
				t.Fatalf("next %+v, stop %q, record %v", r.Next, r.Stop, r.Record)
			}
			if r.Site.Delay != 2*time.Second {
				t.Errorf("delay %v", r.Site.Delay)
			}
			if tt.check != nil {
				tt.check(t, r)
			}
		})
	}
}

func TestAttemptsEnd(t *testing.T) {
	s, srv := site(t, fetch.Options{}, outcomes)
	r, _ := get(t, s, srv.URL+"/broken", store.Due{Attempts: 4}, store.Site{})
	if r.Next.State != store.StateRefused || r.Next.Reason != "unreachable: status 500" {
		t.Errorf("%+v", r.Next)
	}
}

func TestCrawlDelayTooLong(t *testing.T) {
	var pages atomic.Int64
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			pages.Add(1)
		}
		fmt.Fprint(w, "User-agent: *\nCrawl-delay: 3600\n")
	})
	r, reqs := get(t, s, srv.URL+"/", store.Due{}, store.Site{})
	if r.Next.State != store.StateRefused || r.Stop != "crawl-delay" ||
		r.Site.Stopped != "crawl-delay 1h0m0s is over 30s" || reqs != 1 || pages.Load() != 0 {
		t.Errorf("%+v, %d requests", r, reqs)
	}
}

// A site that does not respond is tried Retry.Attempts times. Then its Keys are refused without a
// request. A site whose failure would repeat is tried once.
func TestSiteDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s, _ := site(t, fetch.Options{Contact: "me@example.org"}, outcomes)
	down := "http://" + l.Addr().String()
	r, reqs := get(t, s, down+"/a", store.Due{}, store.Site{})
	if reqs != 5 || r.Next.State != store.StateRefused || !strings.HasPrefix(r.Next.Reason, "unreachable: ") ||
		!strings.Contains(r.Next.Reason, "refused") {
		t.Fatalf("%d requests, %+v", reqs, r.Next)
	}
	later := r.Site
	r, reqs = get(t, s, down+"/b", store.Due{}, later)
	if reqs != 0 || r.Next.State != store.StateRefused {
		t.Errorf("the second Key: %d requests, %+v", reqs, r.Next)
	}
	r, reqs = get(t, s, "http://10.0.0.1/", store.Due{}, store.Site{})
	if reqs != 0 || r.Next.State != store.StateRefused || !strings.Contains(r.Next.Reason, "private address") {
		t.Errorf("a private site: %d requests, %+v", reqs, r.Next)
	}
}

// A site that responds with 503 for a while is crawled in the end.
func TestSiteRecovers(t *testing.T) {
	var n atomic.Int64
	s, srv := site(t, fetch.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		outcomes(w, r)
	})
	r, reqs := get(t, s, srv.URL+"/text", store.Due{}, store.Site{})
	if reqs != 5 || r.Next.State != store.StateDone || r.Site.Failures != 0 {
		t.Errorf("%d requests, %+v", reqs, r)
	}
}

func TestNoContact(t *testing.T) {
	s, _ := site(t, fetch.Options{}, outcomes)
	r, reqs := get(t, s, "https://example.org/", store.Due{}, store.Site{})
	if reqs != 0 || r.Next.State != store.StateRefused || r.Next.At != now.Add(time.Hour) ||
		!strings.Contains(r.Next.Reason, "--contact") {
		t.Errorf("%d requests, %+v", reqs, r.Next)
	}
}

func TestGateShut(t *testing.T) {
	shut := errors.New("shut")
	s, srv := site(t, fetch.Options{}, func(http.ResponseWriter, *http.Request) { t.Error("asked") })
	k, _ := partition.ParseKey(srv.URL + "/")
	fresh := store.Site{Robots: map[string]store.Robots{srv.URL: {Status: 404, Fetched: now,
		Expires: now.Add(time.Hour)}}}
	for _, st := range []store.Site{{}, fresh} {
		_, err := s.Fetch(context.Background(), fetch.Task{Due: store.Due{Key: k}, Site: st, Now: now,
			Gate: func(context.Context) error { return shut }})
		if !errors.Is(err, shut) {
			t.Error(err)
		}
	}
}

func TestOptionFaults(t *testing.T) {
	_, err := New(Options{MaxText: -1})
	if err == nil || !strings.Contains(err.Error(), "client") || !strings.Contains(err.Error(), "MaxText") {
		t.Error(err)
	}
}
