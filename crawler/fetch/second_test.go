package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// victim counts the connections and measures the shortest gap between them.
type victim struct {
	at netip.AddrPort

	mu    sync.Mutex
	hits  int
	last  time.Time
	least time.Duration
}

func (v *victim) hit() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.hits++; v.hits > 1 && (v.least == 0 || now.Sub(v.last) < v.least) {
		v.least = now.Sub(v.last)
	}
	v.last = now
}

// newVictim listens at its own address, and at the given port if that is not 0. It counts
// connections.
func newVictim(t *testing.T, addr string, port uint16) *victim {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(addr, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{at: netip.MustParseAddrPort(l.Addr().String())}
	answer := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, addr) }
	s := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			v.hit()
		}
	}
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return v
}

func (v *victim) check(t *testing.T, gap time.Duration) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hits < 2 || v.least < gap*8/10 { // with fewer than two connections the test shows nothing
		t.Errorf("%d connections, the shortest gap %v, want %v", v.hits, v.least, gap)
	}
	t.Logf("%d connections, the shortest gap %v", v.hits, v.least)
}

// asking is one way to send a request to a host.
type asking func(ctx context.Context, c *Client, host string) error

func getPage(ctx context.Context, c *Client, host string) error {
	_, err := c.Get(ctx, Request{URL: "http://" + host}, nil)
	return err
}

// Each name has two addresses: one is closed, the other is the victim's. The pace of the victim
// holds for any number of names and any way to connect.
func TestAttackSecondAddress(t *testing.T) {
	const gap = 150 * time.Millisecond
	for name, ask := range map[string]asking{
		"pages": getPage,
		"robots": func(ctx context.Context, c *Client, host string) error {
			_, _, why, err := c.Robots(ctx, "http://"+host, time.Now(), free)
			return errors.Join(why, err)
		},
	} {
		t.Run(name, func(t *testing.T) { askSecond(t, Options{AddrDelay: gap}, gap, ask) })
	}
}

// askSecond sends requests to several names, repeatedly, and checks the gaps at their second
// address.
func askSecond(t *testing.T, o Options, gap time.Duration, ask asking) {
	t.Helper()
	v := newVictim(t, "127.0.0.6", 0)
	o.Contact, o.Connect = "me@example.org", 5*time.Second
	c := client(t, o)
	var names atomic.Int64
	c.names.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		n := names.Add(1)
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 9, byte(n >> 8), byte(n)}), v.at.Addr()}, nil
	}
	ctx, stop := context.WithTimeout(t.Context(), 8*gap)
	defer stop()
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 8 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; {
				host := fmt.Sprintf("h%d-%d.evil.example:%d", i, n, v.at.Port())
				var busy *BusyError
				if err := ask(ctx, c, host); errors.As(err, &busy) {
					_ = Sleep(ctx, max(time.Millisecond, time.Until(busy.Until)))
				} else {
					n++
					// the victim does not support WebSocket
					if err == nil || strings.Contains(err.Error(), "bad handshake") {
						answered.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	v.check(t, gap)
	if n := answered.Load(); n < 2 {
		t.Errorf("%d answers", n)
	}
}
