package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// An endless response is read as it arrives, until ctx ends it. The guard applies and redirects are
// not followed.
func TestOpen(t *testing.T) {
	var asked http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = r.Header; r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	o := Options{Contact: "test@example.org", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.Open(ctx, Request{URL: srv.URL, Accept: "text/event-stream",
		Header: map[string]string{"Authorization": "Bearer x"}})
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); line != "one\n" || err != nil {
		t.Errorf("%q %v", line, err)
	}
	if asked.Get("Accept") != "text/event-stream" || asked.Get("Accept-Encoding") != "identity" ||
		asked.Get("Authorization") != "Bearer x" || asked.Get("User-Agent") == "" {
		t.Errorf("asked with %v", asked)
	}
	cancel()
	if _, err := in.ReadString('\n'); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	_ = resp.Body.Close()
	moved, err := c.Open(t.Context(), Request{URL: srv.URL + "/moved"})
	if err != nil || moved.StatusCode != http.StatusFound {
		t.Fatalf("a redirect: %+v %v", moved, err)
	}
	_ = moved.Body.Close()
	o.AllowNet = nil
	closed, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Open(t.Context(), Request{URL: srv.URL}); !errors.Is(err, ErrPrivate) {
		t.Errorf("a private address: %v", err)
	}
}
