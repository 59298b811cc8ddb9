package storytest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/netip"
)

// Report is what a server measured.
type Report struct {
	Requests int
	Refused  int // because of a limit
	Invalid  int // because of a bad request, in worlds that count these
	ByAddr   map[netip.Addr]int
	ByPath   map[string]int // IDs are written as :id
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

// Copy returns a copy of r that does not share its maps.
func (r Report) Copy() Report {
	r.ByAddr, r.ByPath = maps.Clone(r.ByAddr), maps.Clone(r.ByPath)
	return r
}

// From returns the client address of a request.
func From(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// Answer writes one response, changed by its fields.
type Answer struct {
	RW        http.ResponseWriter
	Truncated bool // only half of the JSON is sent
	Huge      int  // bytes of white space before the JSON
}

// JSON writes x as JSON.
func (a Answer) JSON(status int, x any) {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err) // values of worlds always have a JSON form
	}
	if a.Truncated {
		b = b[:len(b)/2]
	}
	a.RW.Header().Set("Content-Type", "application/json; charset=utf-8")
	a.RW.WriteHeader(status)
	// errors are ignored, because the visitor may leave
	_, _ = a.RW.Write(bytes.Repeat([]byte(" "), a.Huge))
	_, _ = a.RW.Write(b)
}

// Page writes an HTML page.
func (a Answer) Page(status int, html string) {
	a.RW.Header().Set("Content-Type", "text/html; charset=utf-8")
	a.RW.WriteHeader(status)
	_, _ = io.WriteString(a.RW, html)
}

// Broken responds for a completely broken server: a 5xx status, a redirect to another origin, or
// HTML with status 200. It returns false if no argument asks for that.
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

// Garbage adds a value that is not an object after each element of a list.
func Garbage(list []any) []any {
	mixed := []any{}
	for i, e := range list {
		mixed = append(mixed, e, []any{"x", nil, i, []any{}}[i%4])
	}
	return mixed
}
