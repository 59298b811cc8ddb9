package crawltest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Trap is one site that would keep a crawler busy for ever, or use up its resources.
type Trap struct {
	Name string
	Home string // URL of the home page
	// Stops are echo-node's names of the limits that end the trap. At least one of them must appear
	// for the site. If Stops is empty, the trap ends by itself.
	Stops []string
	// Most returns the maximum number of requests from a crawler with a budget of pages per site,
	// with retries.
	Most func(pages int) int

	requests atomic.Int64
	sent     atomic.Int64
	serve    func(t *Trap, rw http.ResponseWriter, r *http.Request)
}

// Requests returns the number of requests to the trap, with robots.txt.
func (t *Trap) Requests() int64 { return t.requests.Load() }

// Sent returns about how many bytes of bodies the trap sent.
func (t *Trap) Sent() int64 { return t.sent.Load() }

// Traps are sites with one trap each. Every site has its own loopback address.
type Traps struct {
	All []*Trap

	servers []*http.Server
	serving sync.WaitGroup
	closed  chan struct{}
	once    sync.Once
}

// StartTraps listens on PREFIX.0.1, PREFIX.0.2 and so on. The default prefix is 127.78. The caller
// must call Close.
func StartTraps(prefix string) (*Traps, error) {
	if prefix == "" {
		prefix = "127.78"
	}
	ts := &Traps{All: append(traps(), brokenServers()...), closed: make(chan struct{})}
	for i, t := range ts.All {
		l, err := net.Listen("tcp4", fmt.Sprintf("%s.0.%d:0", prefix, i+1))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("crawltest: trap %s: %w", t.Name, err), ts.Close())
		}
		t.Home = "http://" + l.Addr().String() + "/"
		srv := &http.Server{ReadHeaderTimeout: time.Minute,
			Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				t.requests.Add(1)
				if r.URL.Path == "/robots.txt" && t.Name != "silent" {
					http.NotFound(rw, r)
					return
				}
				rw.Header().Set("Content-Type", "text/html; charset=utf-8")
				t.serve(t, hanger{rw, ts.closed}, r)
			})}
		ts.servers = append(ts.servers, srv)
		// returns http.ErrServerClosed, or an error when the listener ends
		ts.serving.Go(func() { _ = srv.Serve(l) })
	}
	return ts, nil
}

// Close ends all connections and goroutines.
func (ts *Traps) Close() error {
	ts.once.Do(func() { close(ts.closed) })
	var errs []error
	for _, srv := range ts.servers {
		errs = append(errs, srv.Close())
	}
	ts.serving.Wait()
	return errors.Join(errs...)
}

// hanger is a ResponseWriter with a channel that is closed when the traps close.
type hanger struct {
	http.ResponseWriter
	closed chan struct{}
}

// hang waits until the visitor leaves, the traps close, or the time most is over. In the last case
// it returns false.
func hang(rw http.ResponseWriter, r *http.Request, most time.Duration) (gone bool) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-rw.(hanger).closed:
	case <-r.Context().Done():
	case <-t.C:
		return false
	}
	return true
}

// hijacked sends answer as raw bytes, valid HTTP or not, and closes the connection, with a TCP
// reset if reset is true.
func hijacked(rw http.ResponseWriter, answer string, reset bool) {
	conn, _, err := rw.(hanger).ResponseWriter.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, answer)
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

const (
	streamBytes  = 100 << 30 // length of the endless stream
	bombMembers  = 1 << 10   // of 10 MiB each
	chainOfHops  = 10_000
	linksOfOne   = 50_000
	sessionPages = 10
	tries        = 12 // for one page and robots.txt, by a crawler that gives up after five attempts
)

// few and budget are values for Trap.Most.
func few(int) int          { return tries }
func budget(pages int) int { return pages + tries }

// traps returns the traps with valid HTTP servers, not listening yet.
func traps() []*Trap {
	bomb := bombMember()
	var b strings.Builder
	for n := range linksOfOne {
		fmt.Fprintf(&b, "<a href=/%d>%d</a>\n", n, n)
	}
	links := b.String()
	return []*Trap{
		{Name: "calendar", Stops: []string{"calendar", "budget"}, Most: budget, serve: serveCalendar},
		{Name: "sessions", Most: func(int) int { return sessionPages + 2 }, serve: serveSessions},
		{Name: "session redirects", Stops: []string{"session"}, Most: few,
			serve: func(t *Trap, rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "/?PHPSESSID="+t.lot(), http.StatusFound)
			}},
		{Name: "echo", Stops: []string{"repetition"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(rw, "<p>Nada aqui. <a href=ainda/>ainda</a>")
			}},
		{Name: "deep", Stops: []string{"deep-path"}, Most: func(int) int { return 50 },
			serve: func(_ *Trap, rw http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(rw, "<p>Fundo. <a href=n%d/>mais fundo</a>", strings.Count(r.URL.Path, "/"))
			}},
		{Name: "maze", Stops: []string{"budget"}, Most: budget,
			serve: func(t *Trap, rw http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(rw, "<p>Porta. <a href=/%s>esta</a> <a href=/%s>outra</a>", t.lot(), t.lot())
			}},
		{Name: "stream", Stops: []string{"body-size"}, Most: few,
			serve: func(t *Trap, rw http.ResponseWriter, _ *http.Request) {
				t.send(rw, []byte("<hr"+strings.Repeat(" ", 1<<16-4)+">"), streamBytes>>16)
			}},
		{Name: "bomb", Stops: []string{"expansion"}, Most: few,
			serve: func(t *Trap, rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Encoding", "gzip")
				t.send(rw, bomb, bombMembers)
			}},
		{Name: "chain", Stops: []string{"depth"}, Most: func(int) int { return 200 },
			serve: func(_ *Trap, rw http.ResponseWriter, r *http.Request) {
				var n int
				_, _ = fmt.Sscanf(r.URL.Path, "/salto/%d", &n)
				if n < chainOfHops {
					http.Redirect(rw, r, fmt.Sprintf("/salto/%d", n+1), http.StatusMovedPermanently)
				}
			}},
		{Name: "links", Stops: []string{"links"}, Most: budget,
			serve: func(_ *Trap, rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(rw, r)
					return
				}
				io.WriteString(rw, links)
			}},
	}
}

// brokenServers returns the traps whose servers violate HTTP.
func brokenServers() []*Trap {
	return []*Trap{
		{Name: "silent", Stops: []string{"unreachable"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, r *http.Request) { hang(rw, r, time.Hour) }},
		{Name: "silent pages", Stops: []string{"idle-time"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, r *http.Request) { hang(rw, r, time.Hour) }},
		{Name: "trickle", Stops: []string{"total-time"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, r *http.Request) {
				for !hang(rw, r, 20*time.Millisecond) {
					fmt.Fprint(rw, " ")
					rw.(hanger).ResponseWriter.(http.Flusher).Flush()
				}
			}},
		{Name: "reset", Stops: []string{"unreachable"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, _ *http.Request) { hijacked(rw, "", true) }},
		{Name: "too short", Stops: []string{"unreachable"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, _ *http.Request) {
				hijacked(rw, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nabc", false)
			}},
		{Name: "two lengths", Stops: []string{"unreachable"}, Most: few,
			serve: func(_ *Trap, rw http.ResponseWriter, _ *http.Request) {
				hijacked(rw, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 100\r\n\r\nabc", false)
			}},
		{Name: "too long", Most: few, serve: func(_ *Trap, rw http.ResponseWriter, _ *http.Request) {
			hijacked(rw, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n<a href=/nunca>nunca</a>", false)
		}},
		{Name: "bad text", Most: few, serve: func(_ *Trap, rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("ETag", "\"\xff\xfe\"")
			fmt.Fprint(rw, "<title>\xc3\x28 t\xedtulo</title><p lang=\xff>\xa0\xa1 texto \x00 \xf0\x28\x8c\x28 <a href='/\xe2\x28\xa1?\xff=\xfe'>\xfc</a>")
		}},
	}
}

// serveCalendar serves a page per month, with links to the months before and after.
func serveCalendar(_ *Trap, rw http.ResponseWriter, r *http.Request) {
	now := time.Now()
	year, month := now.Year(), int(now.Month())
	_, _ = fmt.Sscanf(r.URL.Path, "/agenda/%d/%d", &year, &month)
	at := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	next, last := at.AddDate(0, 1, 0), at.AddDate(0, -1, 0)
	fmt.Fprintf(rw, "<title>%d/%d</title><p>Sem eventos. <a href=/agenda/%d/%d>antes</a> <a href=/agenda/%d/%d>depois</a>",
		year, month, last.Year(), last.Month(), next.Year(), next.Month())
}

// serveSessions writes a new session ID into the links of each response.
func serveSessions(t *Trap, rw http.ResponseWriter, _ *http.Request) {
	for n := range sessionPages {
		switch n % 3 {
		case 0:
			fmt.Fprintf(rw, "<a href=/p%d?sid=%s>%d</a>", n, t.lot(), n)
		case 1:
			fmt.Fprintf(rw, "<a href=/p%d;jsessionid=%s>%d</a>", n, t.lot(), n)
		default:
			fmt.Fprintf(rw, "<a href=/(S(%s))/p%d>%d</a>", t.lot(), n, n)
		}
	}
}

// lot returns a new text of letters and digits on each call.
func (t *Trap) lot() string {
	return fmt.Sprintf("e%dc%016x", t.requests.Load(), mix(uint64(t.requests.Load())<<20+uint64(t.sent.Add(1))))
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// send writes block the given number of times, or until the visitor stops reading.
func (t *Trap) send(rw http.ResponseWriter, block []byte, times int) {
	for range times {
		n, err := rw.Write(block)
		if t.sent.Add(int64(n)); err != nil {
			return
		}
	}
}

// bombMember returns a gzip member with 10 MiB of zeros. Members may follow each other.
func bombMember() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 10<<20)) // a write to memory does not fail
	_ = z.Close()
	return b.Bytes()
}
