package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// wireCap is the cap of a body in these tests. A response may cost twice as much.
const wireCap = 4 << 20

// badShapes are endless responses. Each consists of a different thing that is not content.
func badShapes() []badShape {
	// RFC 8878 section 3.1.2
	skippable := binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 1000)
	skippable = append(skippable, make([]byte, 1000)...)
	// one empty raw block, the last
	emptyFrame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00}
	emptyBlocks := []byte{0x00, 0x00, 0x00} // empty raw blocks, none the last
	gzipHead := string(emptyGzip()[:10])
	return []badShape{
		{"gzip members without content", ok200 + "Content-Encoding: gzip\r\n\r\n", emptyGzip(), LimitOverhead},
		{"stored blocks without content", ok200 + "Content-Encoding: gzip\r\n\r\n" + gzipHead,
			[]byte{0, 0, 0, 0xff, 0xff}, LimitOverhead},
		// RFC 7932 section 9.2: meta-blocks that skip 0 bytes
		{"brotli metadata", ok200 + "Content-Encoding: br\r\n\r\n\x0c", []byte{0x06}, LimitOverhead},
		{"zstd frames to skip", ok200 + "Content-Encoding: zstd\r\n\r\n", skippable, LimitOverhead},
		{"zstd frames without content", ok200 + "Content-Encoding: zstd\r\n\r\n", emptyFrame, LimitOverhead},
		{"zstd blocks without content", ok200 + "Content-Encoding: zstd\r\n\r\n\x28\xb5\x2f\xfd\x00\x58", emptyBlocks,
			LimitOverhead},
		{"gzip in zstd", ok200 + "Content-Encoding: gzip, zstd\r\n\r\n", skippable, LimitOverhead},
		{"deflate", ok200 + "Content-Encoding: deflate\r\n\r\n", []byte{0, 0, 0, 0xff, 0xff},
			"unknown content encoding"},
		{"chunk extensions", ok200 + "Transfer-Encoding: chunked\r\n\r\n",
			[]byte("1;" + strings.Repeat("e", 2000) + "\r\nx\r\n"), LimitChunks},
		{"chunks of one byte", ok200 + "Transfer-Encoding: chunked\r\n\r\n", []byte("1\r\nx\r\n"), LimitWire},
		{"chunks with short extensions", ok200 + "Transfer-Encoding: chunked\r\n\r\n", []byte("1;eeeeeeeeee\r\nx\r\n"),
			LimitWire},
		{"early hints", "", []byte("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), LimitHeader},
		{"continue", "", []byte("HTTP/1.1 100 Continue\r\n\r\n"), LimitHeader},
		{"header fields", ok200, []byte("X-Y: z\r\n"), LimitHeader},
		{"one header field", ok200 + "X: ", []byte("y"), LimitHeader},
		{"trailers", ok200 + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\nx\r\n0\r\n", []byte("X: y\r\n"),
			"trailer"},
		{"after the end", ok200 + "Content-Length: 2\r\n\r\nok", []byte("more"), ""},
		{"after the last chunk", ok200 + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", []byte("more"), ""},
		{"body of 204", "HTTP/1.1 204 No Content\r\n\r\n", []byte("more"), ""},
		{"body of 304", "HTTP/1.1 304 Not Modified\r\n\r\n", []byte("more"), ""},
		{"body of a redirect", "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", []byte("more"), ""},
		{"body of an error", "HTTP/1.1 500 No\r\nContent-Encoding: gzip\r\n\r\n", emptyGzip(), LimitOverhead},
		{"plain body", ok200 + "\r\n", []byte("x"), ""},
		{"no http", "", []byte{0}, LimitHeader},
	}
}

// For every kind of response, the server can send at most twice the cap. The error names what ended
// it.
func TestAttackWire(t *testing.T) {
	quiet(t)
	for _, s := range badShapes() {
		t.Run(s.name, func(t *testing.T) {
			b := serveBad(t, s)
			c := client(t, Options{MaxBody: wireCap, Total: 10 * time.Second})
			r, err := c.Get(t.Context(), Request{URL: b.url}, nil)
			c.Close()
			checkWire(t, b, err, s.last)
			if r != nil && r.Bytes > 2*wireCap {
				t.Errorf("%d bytes received", r.Bytes)
			}
		})
	}
}

// quiet discards what net/http logs about a bad server.
func quiet(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
}

func checkWire(t *testing.T, b *badServer, err error, last string) {
	t.Helper()
	var limit *LimitError
	switch {
	case last == "" && err != nil && !errors.As(err, &limit), last != "" && err == nil:
		t.Errorf("error %v, want %q", err, last)
	case last != "" && !strings.Contains(err.Error(), last):
		t.Errorf("error %v, want %q", err, last)
	}
	if sent := b.sent.Load(); sent > 2*wireCap {
		t.Errorf("%d bytes sent, at most %d", sent, 2*wireCap)
	}
	t.Logf("%d KiB sent, %v", b.sent.Load()>>10, err)
}

// A body that is not wanted costs almost nothing. The response to a robots.txt request has its own
// cap.
func TestAttackSkippedBodies(t *testing.T) {
	for _, first := range []string{ok200, "HTTP/1.1 404 No\r\n", "HTTP/1.1 301 Moved\r\nLocation: /y\r\n"} {
		b := serveBad(t, badShape{first: first + "\r\n", endless: []byte("more")})
		c := client(t, Options{})
		r, err := c.Get(t.Context(), Request{URL: b.url, Want: func(int, http.Header) bool { return false }}, nil)
		if err != nil || !r.Unread || b.sent.Load() > wireFloor {
			t.Errorf("%q: %v, %d bytes sent", first, err, b.sent.Load())
		}
	}
	b := serveBad(t, badShape{first: ok200 + "Content-Encoding: gzip\r\n\r\n", endless: emptyGzip()})
	rob, used, why, err := client(t, Options{}).Robots(t.Context(), b.url, time.Now(), free)
	if err != nil || why == nil || Allowed(rob, b.url+"/x") || b.sent.Load() > wireFloor {
		t.Errorf("robots.txt: %+v %+v %v %v, %d bytes sent", rob, used, why, err, b.sent.Load())
	}
}

// The count is below TLS and includes HTTP/2: frames without content are counted.
func TestAttackHTTP2(t *testing.T) {
	quiet(t)
	block := make([]byte, 16<<10)
	shapes := map[string]func(f *http2.Framer, stream uint32) error{
		"unknown frames": func(f *http2.Framer, _ uint32) error { return f.WriteRawFrame(0xbb, 0, 0, block) },
		"padding": func(f *http2.Framer, stream uint32) error {
			return f.WriteDataPadded(stream, false, nil, block[:255])
		},
		"pings": func(f *http2.Framer, _ uint32) error { return f.WritePing(true, [8]byte{}) },
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			begun := false
			b, trust := serveHTTP2(t, func(f *http2.Framer, stream uint32) error {
				if !begun {
					begun = true
					var head strings.Builder
					if err := hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status",
						Value: "200"}); err != nil {
						return err
					}
					return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream,
						BlockFragment: []byte(head.String()), EndHeaders: true})
				}
				return shape(f, stream)
			})
			c := client(t, Options{MaxBody: wireCap, Total: 10 * time.Second, Idle: 5 * time.Second})
			c.http.Transport.(*http.Transport).TLSClientConfig = trust.Clone()
			_, err := c.Get(t.Context(), Request{URL: b.url}, nil)
			c.Close()
			if err == nil || name == "unknown frames" && Stop(err) != LimitWire {
				t.Errorf("ended with %v", err)
			}
			if sent := b.sent.Load(); sent > 2*wireCap {
				t.Errorf("%d bytes sent", sent)
			}
			t.Logf("%d KiB sent, %v", b.sent.Load()>>10, err)
		})
	}
}

// Each response on a reused connection is counted separately.
func TestWireCountsAnswersByThemselves(t *testing.T) {
	// each is below the limit for a cap of 1 MiB, together far above
	const size, answers = 700 << 10, 8
	var conns sync.Map
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	})
	c := client(t, Options{MaxBody: 1 << 20})
	for range answers {
		r, err := c.Get(t.Context(), Request{URL: url}, nil)
		if err != nil || len(r.Body) != size || r.Bytes < size || r.Bytes > size+4096 {
			t.Fatalf("%+v %v", r, err)
		}
	}
	used := 0
	conns.Range(func(any, any) bool { used++; return true })
	if used != 1 {
		t.Errorf("%d connections", used)
	}
}

// The fields of a header are limited, not only its bytes.
func TestAttackHeaderFields(t *testing.T) {
	url := raw(t, ok200+strings.Repeat("A: b\r\n", maxFields)+"Content-Length: 0\r\n\r\n", nil)
	var limit *LimitError
	if _, err := client(t, Options{}).Get(t.Context(), Request{URL: url}, nil); !errors.As(err, &limit) ||
		limit.Name != LimitFields {
		t.Error(err)
	}
}

// The second address of a name has a turn even if AddrDelay is negative, for every way to connect.
func TestAttackSecondAddressOfStreams(t *testing.T) {
	const gap = 150 * time.Millisecond
	for name, ask := range map[string]asking{
		"accounts": getPage,
		"streams": func(ctx context.Context, c *Client, host string) error {
			resp, err := c.Open(ctx, Request{URL: "http://" + host})
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		},
		"websockets": func(ctx context.Context, c *Client, host string) error {
			_, _, err := c.WebSocket(ctx, "ws://"+host)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { askSecond(t, Options{AddrDelay: -1, DialDelay: gap}, gap, ask) })
	}
}

// An idle connection leads to the address that its name had then. It is not used in the turn of
// another address.
func TestAttackIdleConnection(t *testing.T) {
	v := newVictim(t, "127.0.0.6", 0)
	other := newVictim(t, "127.0.0.8", v.at.Port())
	c := client(t, Options{AddrDelay: time.Millisecond, NameTTL: time.Nanosecond, Contact: "me@example.org"})
	now := v.at.Addr()
	c.names.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return []netip.Addr{now}, nil }
	url := fmt.Sprintf("http://moved.example:%d/", v.at.Port())
	for _, want := range []netip.Addr{v.at.Addr(), other.at.Addr(), v.at.Addr()} {
		now = want
		var r *Response
		for {
			var err error
			var busy *BusyError
			if r, err = c.Get(t.Context(), Request{URL: url}, nil); err == nil {
				break
			} else if !errors.As(err, &busy) {
				t.Fatal(err)
			}
		}
		if string(r.Body) != want.String() || r.Addr != want {
			t.Errorf("%s answered in the turn of %s", r.Body, want)
		}
	}
}

// A request to a name whose addresses are all closed fails. It is not retried for ever.
func TestDeadAddresses(t *testing.T) {
	port := netip.MustParseAddrPort(closed(t)).Port()
	c := client(t, Options{AddrDelay: time.Millisecond, Contact: "me@example.org"})
	var addrs []netip.Addr
	for i := range 20 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{127, 0, 9, byte(i + 1)}))
	}
	c.names.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return addrs, nil }
	for busy := 0; ; busy++ {
		_, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://dead.example:%d/", port)}, nil)
		var b *BusyError
		if !errors.As(err, &b) || busy > 2*len(addrs) {
			if err == nil || Stop(err) != "unreachable" || busy != len(addrs)-1 {
				t.Errorf("%v after %d addresses", err, busy)
			}
			return
		}
		time.Sleep(2 * time.Millisecond) // the gap of the address
	}
}

// Ports of mail servers, shells and databases get no request, even if an operator allows all ports.
func TestAttackMailPortAllowed(t *testing.T) {
	c := client(t, Options{AllowPorts: []PortRange{{1, 65535}}})
	for way, err := range askMailServer(t, c) {
		if !errors.Is(err, ErrPort) {
			t.Errorf("%s: %v", way, err)
		}
	}
	conn, err := c.dial(t.Context(), "tcp", "127.0.0.5:6667")
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, ErrPort) || Stop(err) != "port" || !Final(err) {
		t.Errorf("dial: %v", err)
	}
}

func TestPorts(t *testing.T) {
	some, err := ParsePorts([]string{"81", " 8000-8010", "1000-1002"})
	if err != nil {
		t.Fatal(err)
	}
	none, open := client(t, Options{}), client(t, Options{AllowPorts: some})
	for port, want := range map[uint16][2]bool{80: {true, true}, 443: {true, true}, 81: {false, true},
		82: {false, false}, 1001: {false, true},
		1024: {true, true}, 8080: {true, true}, 6379: {true, true}, 6000: {false, false}, 0: {false, false},
		25: {false, false}} {
		if got := [2]bool{none.Port(port) == nil, open.Port(port) == nil}; got != want {
			t.Errorf("port %d: %v, want %v", port, got, want)
		}
	}
	for _, bad := range []string{"", "x", "0", "70000", "9-8", "25", "6667", "1-"} {
		if _, err := ParsePorts([]string{bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := New(Options{AllowPorts: []PortRange{{25, 25}}}); err == nil ||
		!strings.Contains(err.Error(), "port 25") {
		t.Error(err)
	}
}

// The work to check one URL against one robots.txt is limited. A file that exceeds a limit allows
// nothing.
func TestAttackRobotsPatterns(t *testing.T) {
	fill := func(line string) string {
		return "User-agent: *\n" + strings.Repeat(line+"\n", (maxRobotsBody-20)/(len(line)+1))
	}
	long := "http://e.example/" + strings.Repeat("a", partition.MaxKeyBytes-100)
	for _, tt := range []struct {
		name, robots string
		allowed      bool
		over         string
	}{
		{"a thousand stars", fill("Disallow: /" + strings.Repeat("*a", 990)), false, ""},
		{"stars, and no match", fill("Disallow: /" + strings.Repeat("*a", 990) + "b"), true, ""},
		{"stars for the end", fill("Disallow: /" + strings.Repeat("*a", 990) + "b$"), true, ""},
		{"eight thousand stars", fill("Disallow: /" + strings.Repeat("*a", 8000)), false, LimitPattern},
		{"a long rule", fill("Allow: /" + strings.Repeat("a", maxRobotsPattern)), false, LimitPattern},
		{"many rules", fill("allow:/"), false, LimitRules},
		{"rules that walk far", fill("allow:*aaab"), false, LimitSteps},
		{"short lines", fill("allow"), true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun := time.Now()
			ok, over := Judge(store.Robots{Status: 200, Body: []byte(tt.robots)}, long)
			name := ""
			if over != nil {
				name = over.Name
			}
			if ok != tt.allowed || name != tt.over {
				t.Errorf("allowed %v, over %q", ok, name)
			}
			// 50 ms on an idle machine; without the limits, up to minutes
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			t.Logf("%d KiB: %v", len(tt.robots)>>10, time.Since(begun).Round(time.Microsecond))
		})
	}
}

// Tests every special-purpose address of IANA's registries, and every way to write an IPv4 address
// in an IPv6 address.
func TestAttackPrivateAddresses(t *testing.T) {
	addrs := []string{"127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255",
		"169.254.169.254", "172.16.0.1",
		"172.31.255.255", "192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.0.192",
		"192.0.2.1", "192.31.196.1", "192.52.193.1",
		"192.88.99.1", "192.168.1.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1",
		"::127.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b::a00:1", "64:ff9b:1::7f00:1", "100::1", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::", "2001:1::1",
		"2001:1::2", "2001:1::3", "2001:2::1",
		"2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:db8::1", "2002:7f00:1::1",
		"2002:a00:1::", "2002:808:808::1",
		"2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::5efe:7f00:1", "fec0::1",
		"ff02::1", "4000::1",
		"2400:cb00::5efe:7f00:1", "2400:cb00::200:5efe:a00:1", "2400:cb00::5efe:a9fe:a9fe"}
	var asked atomic.Int64
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	s.Listener = l
	s.Start()
	defer s.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, o := range []Options{{AddrDelay: -1}, {}} {
		o.Contact, o.Connect, o.Total, o.AllowNet = "me@example.org", 300*time.Millisecond, time.Second,
			[]netip.Prefix{}
		c := client(t, o)
		for _, text := range addrs {
			a := netip.MustParseAddr(text)
			c.names.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return []netip.Addr{a}, nil }
			host := text
			if a.Is6() {
				host = "[" + text + "]"
			}
			for _, at := range []string{fmt.Sprintf("%s:%d", host, port),
				fmt.Sprintf("h%x.evil.example:%d", a.As16(), port)} {
				if _, err := c.Get(t.Context(), Request{URL: "http://" + at + "/"}, nil); !errors.Is(err, ErrPrivate) {
					t.Errorf("%s by %s: %v", text, at, err)
				}
			}
		}
		for _, public := range []string{"8.8.8.8", "2400:cb00::1", "2400:cb00::5efe:808:808"} {
			if err := c.Reachable(netip.MustParseAddr(public)); err != nil {
				t.Error(err)
			}
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests reached a private server", asked.Load())
	}
}

// The name is public when its turn is taken, and private when it is dialled.
func TestAttackRebinding(t *testing.T) {
	var asked atomic.Int64
	url := server(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	port := url[strings.LastIndex(url, ":"):]
	c := client(t, Options{Contact: "me@example.org", AllowNet: []netip.Prefix{}, NameTTL: time.Nanosecond,
		Connect: 200 * time.Millisecond, AddrDelay: -1})
	looked := 0
	c.names.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		if looked++; looked == 1 {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	if _, err := c.Get(t.Context(), Request{URL: "http://rebind.example" + port}, nil); !errors.Is(err, ErrPrivate) ||
		asked.Load() != 0 {
		t.Errorf("%v, asked %d", err, asked.Load())
	}
}
