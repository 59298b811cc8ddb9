package crawltest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Served serves h on the given listeners with plain HTTP until stop is called.
func Served(h http.Handler, at ...net.Listener) (stop func() error) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan error, len(at))
	for _, ln := range at {
		go func() { served <- srv.Serve(ln) }()
	}
	return func() error {
		err := srv.Close()
		for range at {
			<-served // Serve returns because of Close
		}
		return err
	}
}

// Transport returns a RoundTripper that calls h without a connection. Requests seem to come from
// the address from, unless it is the zero Addr.
func Transport(h http.Handler, from netip.Addr) http.RoundTripper { return transport{h, from} }

type transport struct {
	h    http.Handler
	from netip.Addr
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if t.from.IsValid() {
		in.RemoteAddr = netip.AddrPortFrom(t.from, 40000).String()
	}
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	t.h.ServeHTTP(rec, in)
	if r.Method == http.MethodHead {
		rec.body.Reset()
	}
	return &http.Response{
		Status: strconv.Itoa(rec.status) + " " + http.StatusText(rec.status), StatusCode: rec.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: rec.header,
		Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: r,
	}, nil
}

// recorder is the http.ResponseWriter of a transport.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
