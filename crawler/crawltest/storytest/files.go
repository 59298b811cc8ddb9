package storytest

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Files simulates hosts with files that a test adds, and counts the requests. Any other URL is not
// found, so by default a host has no robots.txt. Files is safe for concurrent use.
type Files struct {
	mu    sync.Mutex
	files map[string]file
	asked map[string]int
	last  map[string]time.Time     // the last request, by host
	least map[string]time.Duration // the shortest gap between two requests, by host
}

type file struct {
	status int
	header http.Header
	body   []byte
}

// Put sets the response for url to a file of that media type.
func (f *Files) Put(url, mediaType string, body []byte) {
	f.Answer(url, http.StatusOK, http.Header{"Content-Type": {mediaType}}, body)
}

// Answer sets the response for url.
func (f *Files) Answer(url string, status int, h http.Header, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files, f.asked, f.last, f.least = map[string]file{}, map[string]int{}, map[string]time.Time{},
			map[string]time.Duration{}
	}
	f.files[url] = file{status, h, body}
}

// Asked returns the number of requests for url.
func (f *Files) Asked(url string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[url]
}

// LeastGap returns the shortest time between two requests to a host. It returns false if there were
// fewer than two.
func (f *Files) LeastGap(host string) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.least[host]
	return d, ok
}

// RoundTrip implements http.RoundTripper.
func (f *Files) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	url, host, now := r.URL.String(), r.URL.Host, time.Now()
	x, ok := f.files[url]
	if !ok {
		x = file{status: http.StatusNotFound, header: http.Header{"Content-Type": {"text/plain"}},
			body: []byte("nothing\n")}
	}
	if before, again := f.last[host]; again {
		if gap, had := f.least[host]; !had || now.Sub(before) < gap {
			f.least[host] = now.Sub(before)
		}
	}
	f.asked[url]++
	f.last[host] = now
	h := x.header.Clone()
	if h.Get("Content-Length") == "" {
		h.Set("Content-Length", strconv.Itoa(len(x.body)))
	}
	return &http.Response{StatusCode: x.status, Status: strconv.Itoa(x.status) + " " + http.StatusText(x.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(x.body)), ContentLength: int64(len(x.body)), Request: r}, nil
}
