package storytest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/netip"
)

// Report is what a server saw.
type Report struct {
	Requests int
	Refused  int // for a limit
	Invalid  int // for how it was asked, where a world counts that
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
