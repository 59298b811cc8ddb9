package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// badServer answers every request on every connection according to its shape, and counts the bytes
// that it could send.
type badServer struct {
	url   string
	sent  atomic.Int64
	conns atomic.Int64
}

// badShape is a response: its beginning, and a block that repeats as long as the client reads.
type badShape struct {
	name    string
	first   string
	endless []byte
	// last is the limit or the error text with which the client ends the response. It is "" if the
	// body is cut off or not wanted.
	last string
}

// serveBad starts a server that reads one request per connection and answers with the shape.
func serveBad(t *testing.T, s badShape) *badServer {
	t.Helper()
	return serveConns(t, "http://", func(c net.Conn) {
		buf := make([]byte, 4096)
		if _, err := c.Read(buf); err != nil {
			return
		}
		if _, err := io.WriteString(c, s.first); err != nil {
			return
		}
		flood(c, s.endless)
	})
}

// flood writes block until an error.
func flood(w io.Writer, block []byte) {
	if len(block) == 0 {
		return
	}
	block = bytes.Repeat(block, 1+(32<<10)/len(block))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// serveConns starts a server that calls serve for each connection and counts the bytes written to
// it.
func serveConns(t *testing.T, scheme string, serve func(net.Conn)) *badServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &badServer{url: scheme + l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.conns.Add(1)
			// at most this much is written but not yet sent
			_ = conn.(*net.TCPConn).SetWriteBuffer(8 << 10)
			all.Go(func() {
				defer conn.Close()
				serve(countedWrites{conn, &b.sent})
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return b
}

type countedWrites struct {
	net.Conn
	n *atomic.Int64
}

func (c countedWrites) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// emptyGzip returns a gzip member without content.
func emptyGzip() []byte {
	var b bytes.Buffer
	_ = gzip.NewWriter(&b).Close() // a write to memory does not fail
	return b.Bytes()
}

const ok200 = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// serveHTTP2 starts an HTTP/2 server with TLS. It answers the first request with endless frames.
func serveHTTP2(t *testing.T, frame func(f *http2.Framer, stream uint32) error) (*badServer, *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	b := serveConns(t, "https://", func(raw net.Conn) {
		c := tls.Server(raw, &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2"}})
		in := bufio.NewReader(c)
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(in, preface); err != nil {
			return
		}
		f := http2.NewFramer(c, in)
		if f.WriteSettings() != nil {
			return
		}
		for {
			got, err := f.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := got.(*http2.HeadersFrame); ok {
				for frame(f, h.StreamID) == nil {
				}
				return
			}
		}
	})
	return b, s.Client().Transport.(*http.Transport).TLSClientConfig
}
