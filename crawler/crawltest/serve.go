package crawltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Handler serves every site of the world; the Host of a request selects the site. If the host is
// not a site, the response is 421 and Report.Forbidden counts the request.
func (w *World) Handler() http.Handler { return http.HandlerFunc(w.serve) }

func (w *World) serve(rw http.ResponseWriter, r *http.Request) {
	host := r.Host
	if !strings.Contains(host, ":") { // wget2 1.99 never sends the port
		host = net.JoinHostPort(host, strconv.Itoa(w.opts.Port))
	}
	s, ok := w.siteOf(host)
	if !ok {
		w.stray.forbid(r.Host + r.RequestURI)
		http.Error(rw, "no such site", http.StatusMisdirectedRequest)
		return
	}
	w.pauses.enter(time.Now())
	path := r.URL.RequestURI()
	if r.URL.Path == "/robots.txt" {
		w.tell(s, r, false)
		leave := w.counts[s].enter(time.Now(), w.opts.Gap, func(c *siteCount) { c.robots++ })
		defer leave()
		w.serveRobots(rw, s)
		return
	}
	ref, known := w.parsePath(s, path)
	var p Page
	if known {
		p = w.page(ref)
	}
	w.tell(s, r, known)
	leave := w.counts[s].enter(time.Now(), w.opts.Gap, func(c *siteCount) { c.page(path, known, p) })
	defer leave()
	if w.opts.Think > 0 {
		time.Sleep(w.opts.Think)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(rw, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if !known {
		p.Status = http.StatusNotFound
	}
	w.servePage(rw, r, s, p)
}

// tell calls Options.Seen for a request.
func (w *World) tell(s int, r *http.Request, page bool) {
	if w.opts.Seen == nil {
		return
	}
	v := Visit{Site: s, URL: "http://" + w.hostport(s) + r.URL.RequestURI(), At: time.Now(), Page: page}
	// without a socket there is no address
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		v.From = from.Addr()
	}
	w.opts.Seen(v)
}

func (w *World) serveRobots(rw http.ResponseWriter, s int) {
	text := w.robots(s)
	if text == "" {
		http.Error(rw, "no robots.txt", http.StatusNotFound)
		return
	}
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.send(rw, http.StatusOK, []byte(text))
}

func (w *World) servePage(rw http.ResponseWriter, r *http.Request, s int, p Page) {
	h := rw.Header()
	switch {
	case p.Redirect != "":
		h.Set("Location", p.Redirect)
		w.send(rw, p.Status, nil)
		return
	case p.Status != http.StatusOK:
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.send(rw, p.Status, []byte("<!doctype html><title>404</title><p>404</p>"))
		return
	}
	etag := `"` + p.Token + `"`
	h.Set("ETag", etag)
	h.Set("Last-Modified", "Mon, 02 Mar 2026 08:00:00 GMT")
	if p.NoIndex && w.headerRobots(s) {
		h.Set("X-Robots-Tag", "noindex")
	}
	if r.Header.Get("If-None-Match") == etag {
		w.send(rw, http.StatusNotModified, nil)
		return
	}
	body := w.render(s, p)
	h.Set("Content-Type", "text/html; charset=utf-8")
	if w.latin1(s) {
		h.Set("Content-Type", "text/html; charset=ISO-8859-1")
		body = toLatin1(body)
	}
	w.send(rw, p.Status, body)
}

// send writes a complete response. A write error is ignored, because the visitor may leave.
func (w *World) send(rw http.ResponseWriter, status int, body []byte) {
	if body != nil {
		rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	rw.WriteHeader(status)
	n, _ := rw.Write(body)
	w.stray.bytes.Add(int64(n))
}

// portTries is the number of free ports that Start tries before it fails. A port that is free on
// one address may be in use on the next.
const portTries = 20

// Start listens on the address of every site. It also listens on 127.0.0.1 and ::1, to see requests
// that no crawler may send. With Options.Port 0 it picks a free port, so URLs are known only after
// Start. The caller must call Close.
func (w *World) Start() error {
	if len(w.servers) > 0 {
		return errors.New("crawltest: started already")
	}
	for try := 1; ; try++ {
		ls, port, err := w.listen()
		if err == nil {
			w.setPort(port)
			for _, l := range ls {
				w.goServe(l)
			}
			return nil
		}
		if w.wanted != 0 || try == portTries {
			return fmt.Errorf("crawltest: start: %w", err)
		}
	}
}

// listen opens all listeners or none. It leaves out ::1 if that is not available, and 127.0.0.1 if
// Options.Port is set but in use there.
func (w *World) listen() (ls []net.Listener, port int, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
		}
	}()
	port = w.wanted
	for s := 0; s < w.opts.Sites; s += w.opts.Shared {
		l, err := net.Listen("tcp4", netip.AddrPortFrom(w.Addr(s), uint16(port)).String())
		if err != nil {
			return ls, 0, err
		}
		port = l.Addr().(*net.TCPAddr).Port
		ls = append(ls, l)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		switch {
		case err == nil:
			ls = append(ls, l)
		case host == "127.0.0.1" && w.wanted == 0:
			return ls, 0, err
		}
	}
	return ls, port, nil
}

// goServe serves l in a goroutine until Close.
func (w *World) goServe(l net.Listener) {
	srv := &http.Server{Handler: w.Handler(), ReadHeaderTimeout: time.Minute}
	w.mu.Lock()
	w.servers = append(w.servers, srv)
	w.mu.Unlock()
	w.serving.Go(func() {
		_ = srv.Serve(l) // returns http.ErrServerClosed, or an error when the listener ends
	})
}

// Close ends every listener, connection and goroutine of the world. The Report stays available.
func (w *World) Close() error {
	w.mu.Lock()
	servers := w.servers
	w.servers = nil
	w.mu.Unlock()
	var errs []error
	for _, srv := range servers {
		errs = append(errs, srv.Close())
	}
	w.serving.Wait()
	return errors.Join(errs...)
}

// RoundTripper answers requests directly from the world, without a connection. It is the fastest
// way to crawl a world in a test. Requests are counted as in the server.
func (w *World) RoundTripper() http.RoundTripper { return Transport(w.Handler(), netip.Addr{}) }

// Pipe serves the world over net.Pipe. So a real http.Client can crawl it in a testing/synctest
// bubble, where sockets would stop the fake clock.
type Pipe struct {
	w     *World
	conns chan net.Conn
	done  chan struct{}
}

// Pipe starts to serve over net.Pipe. Close of the World ends it.
func (w *World) Pipe() *Pipe {
	p := &Pipe{w: w, conns: make(chan net.Conn), done: make(chan struct{})}
	w.goServe(pipeListener{p})
	return p
}

// DialContext connects to the site at addr, a name or an IP address with a port, like
// net.Dialer.DialContext. It refuses any other address and counts it in Report.Forbidden.
func (p *Pipe) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("crawltest: dial: %w", err)
	}
	if !p.w.reachable(host, port) {
		p.w.stray.forbid("dial " + addr)
		return nil, fmt.Errorf("crawltest: dial %s: no route in this world", addr)
	}
	client, server := net.Pipe()
	select {
	case p.conns <- pipeConn{server, addr}:
		return pipeConn{client, addr}, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.done:
		err = net.ErrClosed
	}
	client.Close()
	server.Close()
	return nil, fmt.Errorf("crawltest: dial %s: %w", addr, err)
}

// reachable reports whether a site answers at host and port.
func (w *World) reachable(host, port string) bool {
	if _, ok := w.siteOf(net.JoinHostPort(host, port)); ok {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !w.opts.Names || !w.AllowNet().Contains(a) || port != strconv.Itoa(w.opts.Port) {
		return false
	}
	b := a.As4()
	s := int(b[2])*250 + int(b[3]) - 1
	return s < w.opts.Sites && s%w.opts.Shared == 0
}

// pipeConn is an end of a pipe that knows the address it was dialled with.
type pipeConn struct {
	net.Conn
	addr string
}

func (c pipeConn) RemoteAddr() net.Addr {
	if ap, err := netip.ParseAddrPort(c.addr); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return c.Conn.RemoteAddr()
}

// pipeListener is a net.Listener that accepts the connections of a Pipe.
type pipeListener struct{ p *Pipe }

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.p.conns:
		return c, nil
	case <-l.p.done:
		return nil, net.ErrClosed
	}
}

// Close must be called only once; the server does that.
func (l pipeListener) Close() error   { close(l.p.done); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
