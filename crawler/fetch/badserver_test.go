package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// badServer answers every request on every connection as its shape says, and counts what it could send.
type badServer struct {
	url   string
	sent  atomic.Int64
	conns atomic.Int64
}

// badShape is an answer: a beginning, and what follows for as long as the client takes it.
type badShape struct {
	name    string
	first   string
	endless []byte
	last    string // the limit or the words that the client ends it with; "" = it is cut off, or has all it wants
}

// serveBad starts a server that reads one request of each connection and answers with the shape.
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

// flood writes block for ever.
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

// serveConns has serve answer each connection, and counts what is written to it.
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
			_ = conn.(*net.TCPConn).SetWriteBuffer(8 << 10) // what is written has left, but for so much
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

// emptyGzip is a gzip member without content.
func emptyGzip() []byte {
	var b bytes.Buffer
	_ = gzip.NewWriter(&b).Close() // to memory
	return b.Bytes()
}

const ok200 = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// badShapes are endless answers, each made of something else that is no content.
func badShapes() []badShape {
	skippable := binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 1000) // RFC 8878 section 3.1.2
	skippable = append(skippable, make([]byte, 1000)...)
	emptyFrame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00} // one raw block of nothing, the last
	emptyBlocks := []byte{0x00, 0x00, 0x00}                                    // raw blocks of nothing, none the last
	gzipHead := string(emptyGzip()[:10])
	return []badShape{
		{"gzip members without content", ok200 + "Content-Encoding: gzip\r\n\r\n", emptyGzip(), LimitOverhead},
		{"stored blocks without content", ok200 + "Content-Encoding: gzip\r\n\r\n" + gzipHead, []byte{0, 0, 0, 0xff, 0xff}, LimitOverhead},
		{"brotli metadata", ok200 + "Content-Encoding: br\r\n\r\n\x0c", []byte{0x06}, LimitOverhead}, // RFC 7932 section 9.2: meta-blocks that skip 0 bytes
		{"zstd frames to skip", ok200 + "Content-Encoding: zstd\r\n\r\n", skippable, LimitOverhead},
		{"zstd frames without content", ok200 + "Content-Encoding: zstd\r\n\r\n", emptyFrame, LimitOverhead},
		{"zstd blocks without content", ok200 + "Content-Encoding: zstd\r\n\r\n\x28\xb5\x2f\xfd\x00\x58", emptyBlocks, LimitOverhead},
		{"gzip in zstd", ok200 + "Content-Encoding: gzip, zstd\r\n\r\n", skippable, LimitOverhead},
		{"deflate", ok200 + "Content-Encoding: deflate\r\n\r\n", []byte{0, 0, 0, 0xff, 0xff}, "unknown content encoding"},
		{"chunk extensions", ok200 + "Transfer-Encoding: chunked\r\n\r\n", []byte("1;" + strings.Repeat("e", 2000) + "\r\nx\r\n"), LimitChunks},
		{"chunks of one byte", ok200 + "Transfer-Encoding: chunked\r\n\r\n", []byte("1\r\nx\r\n"), LimitWire},
		{"chunks with short extensions", ok200 + "Transfer-Encoding: chunked\r\n\r\n", []byte("1;eeeeeeeeee\r\nx\r\n"), LimitWire},
		{"early hints", "", []byte("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), LimitHeader},
		{"continue", "", []byte("HTTP/1.1 100 Continue\r\n\r\n"), LimitHeader},
		{"header fields", ok200, []byte("X-Y: z\r\n"), LimitHeader},
		{"one header field", ok200 + "X: ", []byte("y"), LimitHeader},
		{"trailers", ok200 + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\nx\r\n0\r\n", []byte("X: y\r\n"), "trailer"},
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

// serveHTTP2 speaks HTTP/2 by TLS, and answers the first request with frames without an end.
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
