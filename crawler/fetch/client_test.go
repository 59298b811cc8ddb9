package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	if o.AllowNet == nil {
		o.AllowNet = loopback
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func server(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// raw starts a server that answers every connection with these bytes and then calls rest.
func raw(t *testing.T, answer string, rest func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			conn.Read(buf)
			io.WriteString(conn, answer)
			if rest != nil {
				rest(conn)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// closed returns an address where no server listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestEncodings(t *testing.T) {
	text := strings.Repeat("olá mundo ", 500)
	packed := map[string][]byte{"": []byte(text)}
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	io.WriteString(g, text)
	g.Close()
	packed["gzip"] = bytes.Clone(b.Bytes())
	b.Reset()
	br := brotli.NewWriter(&b)
	io.WriteString(br, text)
	br.Close()
	packed["br"] = bytes.Clone(b.Bytes())
	z, _ := zstd.NewWriter(nil)
	packed["zstd"] = z.EncodeAll([]byte(text), nil)
	packed["gzip, zstd"] = z.EncodeAll(packed["gzip"], nil)
	z.Close()
	for name, body := range packed {
		t.Run(name, func(t *testing.T) {
			url := server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "gzip, br, zstd" {
					t.Errorf("accept-encoding %q", r.Header.Get("Accept-Encoding"))
				}
				w.Header().Set("Content-Encoding", name)
				w.Write(body)
			})
			r, err := client(t, Options{}).Get(t.Context(), Request{URL: url}, nil)
			if err != nil || string(r.Body) != text || r.Truncated != "" {
				t.Fatalf("%v, %d bytes", err, len(r.Body))
			}
			if r.Bytes < int64(len(body)) || r.Bytes > int64(len(body))+1000 || !r.Addr.IsLoopback() ||
				r.Asked.IsZero() {
				t.Errorf("%d bytes received of %d, from %v", r.Bytes, len(body), r.Addr)
			}
		})
	}
}

// The guard works after DNS: it refuses every name of a private address.
func TestPrivate(t *testing.T) {
	asked := atomic.Bool{}
	url := server(t, func(http.ResponseWriter, *http.Request) { asked.Store(true) })
	port := url[strings.LastIndex(url, ":"):]
	hosts := map[string]netip.Addr{"rebind.example": netip.MustParseAddr("127.0.0.1"),
		"mapped.example": netip.MustParseAddr("::ffff:127.0.0.1"),
		"meta.example":   netip.MustParseAddr("169.254.169.254"), "lan.example": netip.MustParseAddr("10.0.0.1"),
		"six.example": netip.MustParseAddr("fd00::1")}
	c := client(t, Options{Contact: "me@example.org", AllowNet: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Hosts: hosts, AddrDelay: -1})
	for _, host := range []string{"rebind.example", "mapped.example", "meta.example", "lan.example", "six.example",
		"127.0.0.1", "localhost", "[::1]", "0.0.0.0"} {
		_, err := c.Get(t.Context(), Request{URL: "http://" + host + port}, nil)
		if !errors.Is(err, ErrPrivate) || !Final(err) || Stop(err) != "private" {
			t.Errorf("%s: %v", host, err)
		}
	}
	if asked.Load() {
		t.Error("a private address was asked")
	}
	for _, bad := range []string{"ftp://example.org/", "file:///etc/passwd", "http://", ":"} {
		if _, err := c.Get(t.Context(), Request{URL: bad}, nil); err == nil {
			t.Errorf("%s was fetched", bad)
		}
	}
}

// The client uses no proxy from the environment. A proxy could be used to reach private addresses.
func TestNoProxy(t *testing.T) {
	proxy := server(t, func(w http.ResponseWriter, _ *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("http_proxy", proxy)
	c := client(t, Options{Contact: "me@example.org",
		Hosts: map[string]netip.Addr{"a.example": netip.MustParseAddr("10.0.0.1")}})
	if _, err := c.Get(t.Context(), Request{URL: "http://a.example/"}, nil); !errors.Is(err, ErrPrivate) {
		t.Error(err)
	}
}

func TestContact(t *testing.T) {
	c := client(t, Options{})
	for _, host := range []string{"example.org", "10.1.2.3", "8.8.8.8"} {
		_, err := c.Get(t.Context(), Request{URL: "http://" + host + "/"}, nil)
		if !errors.Is(err, ErrContact) || !strings.Contains(err.Error(), "--contact") {
			t.Errorf("%s: %v", host, err)
		}
	}
	got := make(chan *http.Request, 1)
	url := server(t, func(_ http.ResponseWriter, r *http.Request) { got <- r })
	c = client(t, Options{Version: "1.2", Contact: "me@example.org"})
	if _, err := c.Get(t.Context(), Request{URL: url, ETag: `"x"`, Modified: "yesterday"}, nil); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.UserAgent() != "echo-node/1.2 (+me@example.org)" || r.Header.Get("From") != "me@example.org" ||
		r.Header.Get("If-None-Match") != `"x"` || r.Header.Get("If-Modified-Since") != "yesterday" {
		t.Errorf("header %v", r.Header)
	}
}

// Each trap ends at the limit made for it, and the error or the response names that limit.
func TestTraps(t *testing.T) {
	o := Options{MaxBody: 2 << 20, MaxHeader: 8 << 10}
	hasty := o // for the traps that only a timeout ends
	hasty.Total, hasty.Idle, hasty.Connect = 3*time.Second, 300*time.Millisecond, 500*time.Millisecond
	stop := make(chan struct{})
	hang := func(net.Conn) { <-stop }
	defer close(stop)
	endless := func(every time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			for block := bytes.Repeat([]byte("x"), 1<<14); ; time.Sleep(every) {
				if _, err := c.Write(block); err != nil {
					return
				}
			}
		}
	}
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	for zeros := make([]byte, 1<<20); packed.Len() < 8<<10; {
		g.Write(zeros)
	}
	g.Close()
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	}
	tests := []struct {
		name, url, limit, text string
		truncated              bool
	}{
		{name: "never answers", url: raw(t, "", hang), limit: LimitIdle},
		{name: "stalled body", url: raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", hang),
			limit: LimitIdle},
		{name: "stalled header", url: raw(t, "HTTP/1.1 200 OK\r\nContent-", hang), limit: LimitIdle},
		{name: "trickle", url: raw(t, "HTTP/1.1 200 OK\r\n\r\n", endless(50*time.Millisecond)), limit: LimitTotal},
		{name: "infinite stream", url: raw(t, "HTTP/1.1 200 OK\r\n\r\n", endless(0)), truncated: true},
		{name: "gzip bomb", url: server(t, bomb), limit: LimitExpansion},
		{name: "huge header", url: raw(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("y", 1<<16)+"\r\n\r\n", nil),
			limit: LimitHeader},
		{name: "too short", url: raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", nil),
			text: "unexpected EOF"},
		{name: "reset", url: raw(t, "", func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }), text: ""},
		{name: "no http", url: raw(t, "SSH-2.0-OpenSSH_9\r\n", nil), text: "malformed"},
		{name: "bad gzip", url: raw(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
			nil), text: "gzip"},
		{name: "unknown encoding",
			url:  raw(t, "HTTP/1.1 200 OK\r\nContent-Encoding: rot13\r\nContent-Length: 3\r\n\r\nabc", nil),
			text: "rot13"},
		{name: "many encodings",
			url:   raw(t, "HTTP/1.1 200 OK\r\nContent-Encoding: br, br, br, br\r\nContent-Length: 3\r\n\r\nabc", nil),
			limit: LimitEncodings},
		{name: "refused", url: "http://" + closed(t), text: "refused"},
	}
	patient, quick := client(t, o), client(t, hasty)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := patient
			if tt.limit == LimitIdle || tt.limit == LimitTotal {
				c = quick
			}
			r, err := c.Get(t.Context(), Request{URL: tt.url}, nil)
			if tt.truncated {
				if err != nil || r.Truncated != LimitBody || int64(len(r.Body)) != o.MaxBody {
					t.Fatalf("%v", err)
				}
				return
			}
			var limit *LimitError
			errors.As(err, &limit)
			if err == nil || tt.limit != "" && (limit == nil || limit.Name != tt.limit) ||
				!strings.Contains(err.Error(), tt.text) {
				t.Fatalf("error %v, want limit %q, text %q", err, tt.limit, tt.text)
			}
			if Reason(err) == "" || len(Reason(err)) > 200 || Stop(err) == "" {
				t.Errorf("reason %q, stop %q", Reason(err), Stop(err))
			}
		})
	}
}

func TestRedirectsAreAnswers(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/next", http.StatusMovedPermanently)
	})
	r, err := client(t, Options{}).Get(t.Context(), Request{URL: url}, nil)
	if err != nil || r.Status != http.StatusMovedPermanently || r.Header.Get("Location") != "/next" {
		t.Fatal(r, err)
	}
}

func TestHTTP2AndTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := client(t, Options{})
	if _, err := c.Get(t.Context(), Request{URL: s.URL}, nil); err == nil || !Final(err) || Stop(err) != "tls" {
		t.Errorf("a certificate nobody signed: %v", err)
	}
	signed := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c.http.Transport.(*http.Transport).TLSClientConfig.RootCAs = signed
	if r, err := c.Get(t.Context(), Request{URL: s.URL}, nil); err != nil || string(r.Body) != "HTTP/2.0" {
		t.Errorf("%v %v", r, err)
	}
}

func TestSourceAddress(t *testing.T) {
	from := make(chan string, 1)
	url := server(t, func(_ http.ResponseWriter, r *http.Request) { from <- r.RemoteAddr })
	if _, err := client(t, Options{FromAddr: netip.MustParseAddr("127.0.0.77")}).Get(t.Context(), Request{URL: url},
		nil); err != nil {
		t.Fatal(err)
	}
	if got := <-from; !strings.HasPrefix(got, "127.0.0.77:") {
		t.Error(got)
	}
}

func TestNameCache(t *testing.T) {
	url := server(t, func(http.ResponseWriter, *http.Request) {})
	c := client(t, Options{Contact: "me@example.org", AddrDelay: -1})
	lookups := 0
	c.names.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if lookups++; host == "none.example" {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	port := url[strings.LastIndex(url, ":"):]
	for range 3 {
		if _, err := c.Get(t.Context(), Request{URL: "http://some.example" + port}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if lookups != 1 {
		t.Errorf("%d lookups", lookups)
	}
	_, err := c.Get(t.Context(), Request{URL: "http://none.example/"}, nil)
	if err == nil || !Final(err) || Stop(err) != "dns" {
		t.Error(err)
	}
	for i := range maxNames + 10 {
		if _, err := c.names.find(t.Context(), fmt.Sprint("n", i, ".example")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.names.cache); n > maxNames {
		t.Errorf("%d names kept", n)
	}
}

func TestOptionFaults(t *testing.T) {
	_, err := New(Options{MaxBody: -1, Total: -1, Contact: "a\nb", AllowNet: []netip.Prefix{{}},
		Hosts: map[string]netip.Addr{"x": {}}})
	for _, want := range []string{"MaxBody", "Total", "contact", "AllowNet", `"x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts(strings.NewReader("# world\n127.0.0.2 a.example B.example # two\n\n::1\tsix.example\n"))
	if err != nil || len(got) != 3 || got["b.example"] != netip.MustParseAddr("127.0.0.2") ||
		got["six.example"] != netip.MustParseAddr("::1") {
		t.Error(got, err)
	}
	_, err = ParseHosts(strings.NewReader("a.example 127.0.0.1\n127.0.0.1\n127.0.0.1 ok\n"))
	if err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}
