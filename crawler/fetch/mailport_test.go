package fetch

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Ports of mail servers, shells and databases get no request, in any way to connect.
func TestAttackMailPort(t *testing.T) {
	for _, port := range []string{"22", "23", "25", "53", "110", "143", "465", "587", "5060", "6667", "6000", "10080"} {
		for _, text := range []string{"http://victim.example:" + port + "/", "https://[2001:db8::1]:" + port + "/x",
			"mastodon:a@victim.example:" + port, "bluesky:did:web:victim.example%3A" + port,
			"twitter:1/media/https://victim.example:" + port + "/x", "feed:http://victim.example:" + port + "/"} {
			if k, err := partition.ParseKey(text); err == nil {
				t.Errorf("%q is a Key", k)
			}
		}
	}
	askMailServer(t, client(t, Options{}))
}

// askMailServer lets c connect, in every way, to a server on a forbidden port that needs no
// privilege. It checks that no connection arrives, and returns the error of each way.
func askMailServer(t *testing.T, c *Client) map[string]error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.5:6667")
	if err != nil {
		t.Skipf("port 6667 is taken: the dial was NOT tried: %v", err)
	}
	var dialled atomic.Int64
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		done.Wait()
		if n := dialled.Load(); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
	moved := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.5:6667/robots.txt", http.StatusFound)
	})
	_, pageErr := c.Get(t.Context(), Request{URL: "http://127.0.0.5:6667/x"}, nil)
	_, openErr := c.Open(t.Context(), Request{URL: "http://127.0.0.5:6667/x"})
	_, _, socketErr := c.WebSocket(t.Context(), "ws://127.0.0.5:6667/x")
	_, _, robotsErr, err := c.Robots(t.Context(), moved, time.Now(), free)
	if err != nil {
		t.Error(err)
	}
	answers := map[string]error{"page": pageErr, "stream": openErr, "websocket": socketErr, "robots.txt": robotsErr}
	for way, err := range answers {
		if Stop(err) != "port" || !Final(err) {
			t.Errorf("%s: %v", way, err)
		}
	}
	return answers
}
