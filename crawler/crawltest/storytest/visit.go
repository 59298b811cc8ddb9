package storytest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"strconv"
)

// RoundTripper has serve answer requests, as if they came from that address, without
// a connection.
func RoundTripper(serve http.HandlerFunc, from netip.Addr) http.RoundTripper {
	return roundTripper{serve, from}
}

type roundTripper struct {
	serve http.HandlerFunc
	from  netip.Addr
}

// RoundTrip is of http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	in.RemoteAddr = netip.AddrPortFrom(t.from, 40000).String()
	in.RequestURI = r.URL.RequestURI()
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	t.serve(rec, in)
	return &http.Response{
		Status: strconv.Itoa(rec.status) + " " + http.StatusText(rec.status), StatusCode: rec.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: rec.header,
		Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: r,
	}, nil
}

// recorder is the http.ResponseWriter of a RoundTripper.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// Report is what a server saw.
type Report struct {
	Requests int
	Refused  int // for a limit
	ByAddr   map[netip.Addr]int
	ByPath   map[string]int // ids are written as :id
}

// Saw counts a request.
func (r *Report) Saw(from netip.Addr, path string) {
	if r.ByAddr == nil {
		r.ByAddr, r.ByPath = map[netip.Addr]int{}, map[string]int{}
	}
	r.Requests++
	r.ByAddr[from]++
	r.ByPath[path]++
}

// Copy is r as it is now.
func (r Report) Copy() Report {
	r.ByAddr, r.ByPath = maps.Clone(r.ByAddr), maps.Clone(r.ByPath)
	return r
}

// From is who makes a request, by its address.
func From(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// Answer writes one answer, as far as the lies let it.
type Answer struct {
	RW        http.ResponseWriter
	Truncated bool // half of the JSON
	Huge      int  // so many bytes of white space before it
}

// JSON answers a value.
func (a Answer) JSON(status int, x any) {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err) // what worlds say has a JSON form
	}
	if a.Truncated {
		b = b[:len(b)/2]
	}
	a.RW.Header().Set("Content-Type", "application/json; charset=utf-8")
	a.RW.WriteHeader(status)
	_, _ = a.RW.Write(bytes.Repeat([]byte(" "), a.Huge)) // a visitor that went away is not our fault
	_, _ = a.RW.Write(b)
}

// Page answers HTML.
func (a Answer) Page(status int, html string) {
	a.RW.Header().Set("Content-Type", "text/html; charset=utf-8")
	a.RW.WriteHeader(status)
	_, _ = io.WriteString(a.RW, html)
}

// Broken answers for a server that answers nothing well: a status of 5xx, a redirect to
// another origin, or HTML with a good status.
func (a Answer) Broken(down int, redirect string, html bool) bool {
	switch {
	case down != 0:
		if down == http.StatusServiceUnavailable {
			a.RW.Header().Set("Retry-After", "30")
		}
		a.Page(down, "<html><body>down</body></html>")
	case redirect != "":
		a.RW.Header().Set("Location", redirect)
		a.Page(http.StatusMovedPermanently, "")
	case html:
		a.Page(http.StatusOK, "<!doctype html><title>Just a moment</title><p>Checking your browser</p>")
	default:
		return false
	}
	return true
}

// Garbage puts something that is no object behind each element of a list.
func Garbage(list []any) []any {
	mixed := []any{}
	for i, e := range list {
		mixed = append(mixed, e, []any{"x", nil, i, []any{}}[i%4])
	}
	return mixed
}
