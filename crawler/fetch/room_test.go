package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// A body asks for room once, before it grows above smallBody, and reports what it used. If it gets
// no room, it is not read further.
func TestAttackBodiesTakeRoom(t *testing.T) {
	size := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush() // no Content-Length
		_, _ = w.Write(make([]byte, size))
	}))
	defer srv.Close()
	c, err := New(Options{MaxBody: 4 << 20, AddrDelay: -1,
		AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, k := range []struct {
		size, body int
		asks       int
	}{{0, 0, 0}, {smallBody - 1, smallBody - 1, 0}, {smallBody + 1, smallBody + 1, 1}, {3 << 20, 3 << 20, 1},
		{9 << 20, 4 << 20, 1}} {
		size = k.size
		var asks, kept int64
		resp, err := c.Get(t.Context(),
			Request{URL: srv.URL, Room: func(_ context.Context, need int64) (func(int64), error) {
				asks++
				if need != growth*4<<20 {
					t.Errorf("%d bytes: asks for %d", k.size, need)
				}
				return func(used int64) { kept = used }, nil
			}}, nil)
		if err != nil {
			t.Fatalf("%d bytes: %v", k.size, err)
		}
		if len(resp.Body) != k.body || int(asks) != k.asks {
			t.Errorf("%d bytes: %d read, asked %d times", k.size, len(resp.Body), asks)
		}
		if k.asks > 0 && (kept < int64(k.body) || kept > growth*4<<20+smallBody) {
			t.Errorf("%d bytes: keeps %d", k.size, kept)
		}
	}
	full := errors.New("full")
	size = 3 << 20
	if _, err := c.Get(t.Context(),
		Request{URL: srv.URL, Room: func(context.Context, int64) (func(int64), error) { return nil, full }},
		nil); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// While a body waits for room, the idle timeout does not run, because this peer causes the silence.
func TestWaitForRoomIsNotTheSites(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 2<<20))
	}))
	defer srv.Close()
	c, err := New(Options{Idle: time.Second, Connect: time.Second, AddrDelay: -1,
		AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var once sync.Once
	resp, err := c.Get(t.Context(),
		Request{URL: srv.URL, Room: func(ctx context.Context, _ int64) (func(int64), error) {
			once.Do(func() { _ = Sleep(ctx, 2500*time.Millisecond) })
			return func(int64) {}, ctx.Err()
		}}, nil)
	if err != nil || len(resp.Body) != 2<<20 {
		t.Errorf("%v", err)
	}
}
