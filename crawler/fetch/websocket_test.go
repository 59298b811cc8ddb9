package fetch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// A WebSocket follows the rules of every request: no private address, a contact, our User-Agent. A
// refusal returns its header, and an endless header is cut off.
func TestWebSocket(t *testing.T) {
	agent := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		if r.URL.Path == "/full" {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		up := websocket.Upgrader{}
		if c, err := up.Upgrade(w, r, nil); err == nil {
			_ = c.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("x", 1<<20)))
			_ = c.Close()
		}
	}))
	defer srv.Close()
	at := "ws" + strings.TrimPrefix(srv.URL, "http")
	o := Options{Contact: "test@example.org", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	open, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := open.WebSocket(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if _, b, err := conn.ReadMessage(); err != nil || len(b) != 1<<20 || !strings.Contains(agent, "test@example.org") {
		t.Errorf("%d bytes, %v; agent %q", len(b), err, agent)
	}
	_ = conn.Close()
	if _, resp, err := open.WebSocket(t.Context(), at+"/full"); err == nil || resp == nil || resp.StatusCode != 429 ||
		resp.Header.Get("Retry-After") != "7" {
		t.Errorf("refused: %+v %v", resp, err)
	}
	if _, _, err := open.WebSocket(t.Context(), srv.URL); err == nil {
		t.Error("http is no WebSocket")
	}
	o.AllowNet = nil
	closed, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := closed.WebSocket(t.Context(), at); !errors.Is(err, ErrPrivate) {
		t.Errorf("a private address: %v", err)
	}
	nobody, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := nobody.WebSocket(t.Context(), "wss://jetstream.example/subscribe"); !errors.Is(err, ErrContact) {
		t.Errorf("without a contact: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // a test
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // a test
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n")
		for err == nil {
			_, err = io.WriteString(c, "X: "+strings.Repeat("y", 1000)+"\r\n")
		}
	}()
	var over *LimitError
	if _, _, err := open.WebSocket(context.Background(), "ws://"+ln.Addr().String()); !errors.As(err, &over) ||
		over.Name != LimitHeader {
		t.Errorf("a header without an end: %v", err)
	}
}
