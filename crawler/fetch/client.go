package fetch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"code.dny.dev/ssrf"
)

// Client sends requests to sites. It is safe for concurrent use.
type Client struct {
	o     Options
	agent string
	names *names
	paces *paces
	dead  *graves
	guard *ssrf.Guardian
	http  *http.Client
}

// New returns a Client. The error reports all faults of o together.
func New(o Options) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &Client{o: o, agent: o.agent(), names: newNames(o),
		paces: &paces{share: o.Share, addrs: map[netip.Addr]*pace{}},
		dead:  &graves{until: map[netip.AddrPort]time.Time{}}, guard: newGuard(o)}
	var transport http.RoundTripper = &http.Transport{
		Proxy:                  nil, // a proxy from the environment would skip the guard
		DialContext:            c.dialCounted,
		TLSHandshakeTimeout:    o.Connect,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // body.go decodes, under limits
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    1, // a site gets one request at a time
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: o.MaxHeader,
		ReadBufferSize:         16 << 10,
	}
	if o.Transport != nil {
		transport = o.Transport
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return c, nil
}

// Close closes idle connections. It does not touch requests in progress.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one GET.
type Request struct {
	URL      string
	ETag     string            // If-None-Match
	Modified string            // If-Modified-Since
	Accept   string            // default "*/*"
	Header   map[string]string // further headers
	MaxBody  int64             // default Options.MaxBody
	Room     Room              // called before a body grows above smallBody; nil = no limit
	// Want is called after the header was read and reports whether to read the body. nil = always.
	Want func(status int, h http.Header) bool
}

// Response is one response. Its body is already read, decoded and closed.
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte // without Content-Encoding; at most MaxBody bytes
	Truncated string // the limit at which Body was cut, "" = complete
	Unread    bool   // Want returned false, so the body was not read
	// Bytes is the number of received bytes. With HTTP/1 it counts everything, TLS and framing
	// included. Otherwise it is the header (estimated) plus the body as sent.
	Bytes   int64
	Addr    netip.Addr
	Asked   time.Time     // when the first byte of the response came
	Elapsed time.Duration // from the request to that byte

	request *http.Request // as it was sent
	proto   string
	status  string // status code and phrase
}

// Get sends one request. A response of any status is a Response. An error is a network failure, a
// *LimitError, a *BusyError (nothing was sent), ErrPrivate or ErrContact. If gate is not nil, Get
// calls it just before the request: the name is resolved and the address is free then. Get returns
// gate's error unchanged.
func (c *Client) Get(ctx context.Context, r Request, gate func(context.Context) error) (*Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("fetch: not an http address: %q", r.URL)
	}
	port, err := portOf(u)
	if err == nil {
		err = c.Port(port)
	}
	if err != nil {
		return nil, err
	}
	leave, err := c.mayAsk(ctx, u.Hostname(), u.Host, port)
	if err != nil {
		return nil, err
	}
	defer leave.answered(Visit{})
	if gate != nil {
		if err := gate(ctx); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.o.Total, &LimitError{LimitTotal, c.o.Total})
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !leave.holds(time.Now()) {
		return nil, &BusyError{time.Now()}
	}
	resp, err := c.do(ctx, cancel, r, leave)
	if err != nil {
		return resp, fmt.Errorf("fetch: get: %w", c.elsewhere(leave, resp, cause(ctx, err)))
	}
	return resp, nil
}

// elsewhere returns err, or a *BusyError if the dial found no server and the name has another
// address. A retry then takes the turn of that other address.
func (c *Client) elsewhere(l leave, tried *Response, err error) error {
	now := time.Now()
	ap := netip.AddrPortFrom(l.addr, l.port)
	if tried != nil || !c.dead.has(ap, now) {
		return err
	}
	for _, a := range l.all {
		if other := netip.AddrPortFrom(a, l.port); other != ap && c.alive(other, now) {
			return &BusyError{now}
		}
	}
	return err
}

// leave is the permission to send one request to an address.
type leave struct {
	addr     netip.Addr
	port     uint16
	all      []netip.Addr // the addresses of the name, in the order of the attempts
	until    time.Time    // the request must be sent before this time; zero = no limit
	answered func(Visit)
}

func (l leave) holds(now time.Time) bool { return l.until.IsZero() || Before(now, l.until) }

// NeedsContact returns ErrContact if a request to host needs a contact and none is set. A name that
// only DNS can resolve does not count as loopback, because the lookup itself would reveal the
// crawl.
func (c *Client) NeedsContact(host string) error {
	if a, known := c.names.known(host); c.o.Contact == "" && !(known && a.IsLoopback()) {
		return fmt.Errorf("fetch: %w (host %s)", ErrContact, host)
	}
	return nil
}

// mayAsk resolves host and takes the turn of its address. The caller must call answered when the
// response begins or fails. A second call does nothing.
func (c *Client) mayAsk(ctx context.Context, host, authority string, port uint16) (leave, error) {
	if err := c.NeedsContact(host); err != nil {
		return leave{}, err
	}
	a, known := c.names.known(host)
	l := leave{addr: a, port: port, answered: func(Visit) {}}
	if !known {
		ctx, stop := context.WithTimeout(ctx, c.o.Connect)
		defer stop()
		addrs, err := c.names.find(ctx, host)
		if err != nil {
			return leave{}, fmt.Errorf("fetch: %w", err)
		}
		l.all = c.order(addrs, port)
		a, l.addr = l.all[0], l.all[0]
	}
	gap := c.AddrGap(a)
	if gap <= 0 {
		return l, nil
	}
	// take no turn for an address that the guard refuses
	if c.o.Share != nil || c.o.Transport == nil {
		if err := c.Reachable(a); err != nil {
			return leave{}, err
		}
	}
	again, until := c.paces.turn(a, authority, gap, time.Now())
	if !again.IsZero() {
		return leave{}, &BusyError{again}
	}
	var once sync.Once
	l.until, l.answered = until, func(v Visit) { once.Do(func() { c.paces.answered(a, v, time.Now()) }) }
	return l, nil
}

// AddrGap returns the least gap that this client keeps between two requests to a. A value of 0 or
// less means no gap.
func (c *Client) AddrGap(a netip.Addr) time.Duration {
	if c.o.AddrDelay == 0 && !a.IsLoopback() {
		return time.Second
	}
	return c.o.AddrDelay
}

// do sends the request and reads the response under the limits of the client.
func (c *Client) do(ctx context.Context, cancel context.CancelCauseFunc, r Request, leave leave) (*Response, error) {
	out := &Response{}
	begun := time.Now()
	limit := c.o.MaxBody
	if r.MaxBody > 0 {
		limit = r.MaxBody
	}
	x := &exchange{c: c, leave: leave, limit: wireLimit(limit), bound: c.o.AddrDelay >= 0, cancel: cancel}
	// without a connection by then, nothing is sent
	if !leave.until.IsZero() && c.o.Transport == nil {
		x.late = time.AfterFunc(time.Until(leave.until), func() { cancel(&BusyError{leave.until}) })
		defer x.late.Stop()
	}
	defer func() { x.receipt.end() }()
	trace := &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			x.got(i.Conn)
			out.Addr, _ = remote(i.Conn)
		},
	}
	if x.bound { // otherwise each connection takes the turn of its address: see dial
		ctx = context.WithValue(ctx, turnOf{}, leave.addr)
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, r.URL, nil)
	if err != nil {
		return nil, err
	}
	c.header(req, r)
	idle := time.AfterFunc(c.o.Idle+c.o.Connect, func() { cancel(&LimitError{LimitIdle, c.o.Idle}) })
	defer idle.Stop()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, x.failed(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read side
	out.Asked = time.Now()
	out.Elapsed = out.Asked.Sub(begun)
	leave.answered(visit(resp, out.Elapsed))
	out.Status, out.Header = resp.StatusCode, resp.Header
	out.request, out.proto, out.status = req, resp.Proto, resp.Status
	fields := 0
	for k, vs := range resp.Header {
		fields += len(vs)
		for _, v := range vs {
			out.Bytes += int64(len(k) + len(v) + 4)
		}
	}
	if fields > maxFields {
		return out, &LimitError{LimitFields, maxFields}
	}
	if r.Want != nil && !r.Want(resp.StatusCode, resp.Header) {
		out.Unread = true
		return out, nil
	}
	wire := &wireReader{r: resp.Body, idle: idle, wait: c.o.Idle, most: x.limit}
	out.Body, out.Truncated, err = c.body(ctx, wire, resp.Header, limit, r.Room)
	// HTTP/1: alone on its connection
	if out.Bytes += wire.n; x.receipt != nil && resp.ProtoMajor == 1 {
		out.Bytes = x.receipt.bytes()
	}
	return out, err
}

// visit returns what a response says about the pace of its address.
func visit(resp *http.Response, took time.Duration) Visit {
	v := Visit{Slow: took, Slowed: resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusServiceUnavailable}
	if v.Slowed {
		v.After, _ = RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return v
}

// header sets the headers of a request.
func (c *Client) header(req *http.Request, r Request) {
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept-Encoding", "gzip, br, zstd")
	if r.Accept == "" {
		r.Accept = "*/*"
	}
	req.Header.Set("Accept", r.Accept)
	for k, v := range r.Header {
		req.Header.Set(k, v)
	}
	if r.ETag != "" {
		req.Header.Set("If-None-Match", r.ETag)
	}
	if r.Modified != "" {
		req.Header.Set("If-Modified-Since", r.Modified)
	}
	if strings.Contains(c.o.Contact, "@") { // RFC 9110 section 10.1.2: a machine-usable address
		req.Header.Set("From", strings.TrimPrefix(c.o.Contact, "mailto:"))
	}
}
