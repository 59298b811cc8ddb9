package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func TestClientAddresses(t *testing.T) {
	for addr, base := range map[string]string{
		"127.0.0.1:7700": "http://127.0.0.1:7700", "http://127.0.0.1:7700": "http://127.0.0.1:7700",
		"http://peer.example:1/": "http://peer.example:1",
		"https://peer.example":   "https://peer.example", "[::1]:7700": "http://[::1]:7700",
		"localhost:1": "http://localhost:1",
	} {
		if c, err := NewClient(addr, ""); err != nil || c.base != base {
			t.Errorf("%q: %v, %v", addr, c, err)
		}
	}
	for _, addr := range []string{"", "7700", "localhost", "ftp://a:1", "http://", "http://a/b", "http://u:p@a",
		"http://a?x=1", "http://[::1", "::1:7700:"} {
		if _, err := NewClient(addr, ""); err == nil {
			t.Errorf("%q was taken", addr)
		}
	}
}

func TestNobodyThereIsSaidPlainly(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(addr, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Status(t.Context())
	if !errors.Is(err, ErrNoPeer) || !strings.Contains(err.Error(), addr+"; is `echo-node run` running there?") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoPeer) {
		t.Errorf("%v", err)
	}
}

// stranger is a server that is not a peer.
func stranger(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	hs := httptest.NewServer(h)
	c, err := NewClient(hs.URL, testToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); hs.Close() })
	return c
}

func TestAStrangerIsSaidPlainly(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"html":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"html 404": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"json error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_,
				_ = io.WriteString(w, `{}`)
		},
		"error list": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_,
				_ = io.WriteString(w, `[]`)
		},
		"empty 204": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"wrong types": func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, `{"records":"many"}`)
		},
		"redirects off": func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, "/else", http.StatusFound)
		},
	} {
		if _, err := stranger(t, h).Status(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "is not an echo-node peer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheTokenIsNotCarriedAlongARedirect(t *testing.T) {
	seen := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen++ }))
	defer other.Close()
	c := stranger(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Status(t.Context()); err == nil || seen != 0 {
		t.Errorf("%v, the other was asked %d times", err, seen)
	}
}

func TestAnExportOfAStrangerIsNotTaken(t *testing.T) {
	none := func(store.Record, string) error { return nil }
	for name, text := range map[string]string{"no trailer": "{\"v\":1,\"cursor\":\"1\"}\n", "not JSON": "hello\n",
		"torn": `{"v":1`, "empty": ""} {
		c := stranger(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
		if _, err := c.Export(t.Context(), Export{}, none); err == nil ||
			errors.Is(err, ErrBroken) == (name == "not JSON") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProblemsReadAsOneLine(t *testing.T) {
	for want, p := range map[string]Problem{
		"404 Not Found": {Status: 404, Title: "Not Found"},
		"gone fishing":  {Status: 503, Detail: "gone fishing"},
		`validation failed: limit "0" must be more; unknown`: {Status: 422, Detail: "validation failed",
			Faults: []Fault{{Message: "must be more", Location: "query.limit", Value: "0"},
				{Message: "unknown", Location: "body"}}},
	} {
		if got := p.Error(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	for target, status := range map[error]int{ErrInvalid: 422, ErrNotFound: 404, ErrUnavailable: 503,
		ErrNotBuilt: 501} {
		if !errors.Is(&Problem{Status: status}, target) || errors.Is(&Problem{Status: 500}, target) {
			t.Errorf("%v is not %d", target, status)
		}
	}
	if status, text := Explain(nil); status != 200 || text != "" {
		t.Errorf("%d %q", status, text)
	}
}

// The server receives the key and the post, and the client gets the group of copies.
func TestCopiesAreAsked(t *testing.T) {
	p := fake()
	p.Copies = func(_ context.Context, k partition.Key, post string) (CopyGroup, error) {
		if k != testKey {
			return CopyGroup{}, fmt.Errorf("%w: %s", ErrNotFound, k)
		}
		return CopyGroup{Key: k, Post: post, Group: "g", Members: []GroupMember{{Key: k, Reason: "representative"},
			{Key: k, Reason: "edit", Distance: 2}}}, nil
	}
	c, _ := serve(t, Options{Peer: p})
	a, err := c.Copies(t.Context(), testKey, "https://m.test/1?a=b&c")
	if err != nil || a.Post != "https://m.test/1?a=b&c" || len(a.Members) != 2 || a.Members[1].Distance != 2 ||
		a.Coverage.Missing == nil {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := c.Copies(t.Context(), "web:https://other.test/", ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	c, _ = serve(t, Options{Peer: Peer{}})
	if _, err := c.Copies(t.Context(), testKey, ""); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("a peer without: %v", err)
	}
}

func TestGapsAreAsked(t *testing.T) {
	c, _ := serve(t, Options{Peer: fake()})
	a, err := c.Gaps(t.Context(), GapQuery{Site: "mastodon:x.example", Since: testTime, Limit: 7, Cursor: "c",
		Local: true})
	if err != nil || len(a.Gaps) != 1 || a.Gaps[0].Reason != "mastodon:x.example7 true" ||
		!a.Gaps[0].From.Equal(testTime) || a.Cursor != "c" || a.Missing == nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// The server receives a person's verdict. The API refuses an invalid one without asking a peer.
func TestOverridesAreSaid(t *testing.T) {
	var said []store.Override
	p := fake()
	p.Overrule = func(_ context.Context, o store.Override) error {
		if o.By == "nobody" {
			return fmt.Errorf("the owner is away: %w", ErrUnavailable)
		}
		said = append(said, o)
		return nil
	}
	p.Mistakes = func(context.Context) (Mistakes, error) {
		return Mistakes{Overrides: len(said),
			Mistakes: []Mistake{{Override: said[0], Judged: store.Judged{Verdict: "out", Score: 0.01}}}}, nil
	}
	c, _ := serve(t, Options{Peer: p})
	got, err := c.Overrule(t.Context(), Overruling{Key: "mastodon:Ana@M.test", Verdict: "in", By: "rui",
		Why: "born there"})
	if err != nil || got.Key != "mastodon:ana@m.test" || len(said) != 1 ||
		said[0] != (store.Override{V: 1, Key: "mastodon:ana@m.test", Verdict: "in", By: "rui", Why: "born there"}) {
		t.Fatalf("%+v, %v, %+v", got, err, said)
	}
	if _, err := c.Overrule(t.Context(), Overruling{Key: "mastodon:ana@m.test", By: "rui"}); err != nil ||
		len(said) != 2 || said[1].Verdict != "" {
		t.Errorf("taken back: %v, %+v", err, said)
	}
	for name, bad := range map[string]Overruling{
		"no account": {Key: "https://example.org/", Verdict: "in", By: "rui"}, "no key": {Verdict: "in", By: "rui"},
		"no such verdict": {Key: "mastodon:ana@m.test", Verdict: "perhaps", By: "rui"},
		"nobody":          {Key: "mastodon:ana@m.test", Verdict: "in"},
	} {
		if _, err := c.Overrule(t.Context(), bad); !errors.Is(err, ErrInvalid) || len(said) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Overrule(t.Context(), Overruling{Key: "mastodon:ana@m.test", Verdict: "in",
		By: "nobody"}); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	m, err := c.Mistakes(t.Context())
	if err != nil || m.Overrides != 2 || len(m.Mistakes) != 1 || m.Mistakes[0].Override.By != "rui" ||
		m.Missing == nil {
		t.Errorf("%+v, %v", m, err)
	}
}
