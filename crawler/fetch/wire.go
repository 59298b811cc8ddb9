package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What one response may cost on the wire is counted at the connection, below TLS and all framing.
// That includes handshakes, headers, 1xx responses, chunk extensions, trailers and gzip members
// without content. So everything that a server sends is counted.
const (
	// wireFloor is what every response may cost, even if the wanted body is short: a handshake and
	// a header fit.
	wireFloor = 1 << 20
	// recvBuffer is the requested size of the system's receive buffer, in bytes. The system uses
	// twice as much.
	recvBuffer = 192 << 10
	// wireIdle is what a connection may receive between two responses, in bytes.
	wireIdle = 64 << 10
	// wireSpare is the number of bytes that may have arrived but are not read yet.
	wireSpare = 2*recvBuffer + wireIdle
)

// wireLimit returns how many bytes may be read for a response whose body has the given cap. With
// it, at most twice the cap (or wireFloor) arrives, including the bytes that the system buffers.
func wireLimit(body int64) int64 { return max(2*min(body, 1<<60), wireFloor) - wireSpare }

// wireConn counts the bytes received on a connection and stops it at a limit. Each response on a
// reused connection is counted separately. Responses that share the connection at the same time
// (HTTP/2) share the sum of their limits.
type wireConn struct {
	net.Conn

	mu    sync.Mutex
	total int64 // received since the dial
	most  int64 // the limit of total
	used  bool  // at least one request used it
	open  map[*receipt]struct{}
	shut  error // if set, Write fails with it
}

// receipt counts one response in progress.
type receipt struct {
	conn  *wireConn
	from  int64 // total when the response began
	limit *LimitError
	over  func(error)
}

func newWireConn(c net.Conn) *wireConn {
	return &wireConn{Conn: c, most: wireFloor - wireSpare, open: map[*receipt]struct{}{}}
}

// wireOf returns the counted connection below conn, nil if there is none.
func wireOf(conn net.Conn) *wireConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	w, _ := conn.(*wireConn)
	return w
}

// Read implements net.Conn. Above the limit it fails with a LimitError and ends all open requests.
func (c *wireConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	room := c.most - c.total
	c.mu.Unlock()
	if int64(len(p))-1 > room { // one byte above the limit shows that there is more
		p = p[:max(room, 0)+1]
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(n)
	if c.total <= c.most {
		return n, err
	}
	over := &LimitError{LimitWire, wireFloor - wireSpare}
	for r := range c.open {
		over = r.limit
		r.over(over)
	}
	return 0, over
}

// Write implements net.Conn. It fails after refuse.
func (c *wireConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	shut := c.shut
	c.mu.Unlock()
	if shut != nil {
		return 0, shut
	}
	return c.Conn.Write(p)
}

// refuse closes c before anything more is sent on it.
func (c *wireConn) refuse(why error) {
	c.mu.Lock()
	c.shut = why
	c.mu.Unlock()
	_ = c.Close() // the server expects nothing more
}

// begin starts to count a response that may cost limit bytes. If c receives more, over is called.
// The first response also pays for the handshake.
func (c *wireConn) begin(limit int64, over func(error)) *receipt {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &receipt{conn: c, limit: &LimitError{LimitWire, limit}, over: over}
	if c.used {
		r.from = c.total
	}
	if len(c.open) == 0 {
		c.most = r.from
	}
	c.most += min(limit, 1<<60-c.most)
	c.used, c.open[r] = true, struct{}{}
	return r
}

// end stops counting and returns the number of received bytes. It accepts a nil receipt.
func (r *receipt) end() int64 {
	if r == nil {
		return 0
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[r]; open {
		delete(c.open, r)
		if len(c.open) == 0 {
			c.most = c.total + wireIdle
		}
	}
	return c.total - r.from
}

// lift removes the limit: the rest of the response has no end, and its reader counts.
func (r *receipt) lift() {
	if r == nil {
		return
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	r.conn.most = 1 << 60
}

// bytes returns the number of bytes received so far.
func (r *receipt) bytes() int64 {
	if r == nil {
		return 0
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	return r.conn.total - r.from
}

// exchange is one request in progress, as its connection sees it.
type exchange struct {
	c      *Client
	leave  leave
	limit  int64 // in bytes on the wire
	bound  bool  // only the address of its leave may be dialled, because the request took that turn
	cancel context.CancelCauseFunc
	late   *time.Timer // ends a request that has no connection when its leave ends

	receipt *receipt
	reached bool // the request got a connection
	stale   bool // the connection led to an address without a turn
}

// got checks the connection that a request was given, before anything is sent on it. The connection
// may be from an earlier request, when the name had another address. Then its address is not the
// one whose turn was taken now.
func (x *exchange) got(conn net.Conn) {
	x.reached = true
	w := wireOf(conn)
	if x.late != nil {
		x.late.Stop()
		if !x.leave.holds(time.Now()) {
			busy := &BusyError{x.leave.until}
			x.cancel(busy)
			if w != nil {
				w.refuse(busy)
			}
			return
		}
	}
	if w == nil {
		return
	}
	if a, ok := remote(conn); ok && x.bound && a != x.leave.addr && x.c.connGap(a) > 0 {
		x.stale = true
		w.refuse(errStale)
		return
	}
	x.stale = false
	x.receipt.end()
	x.receipt = w.begin(x.limit, func(err error) { x.cancel(err) })
}

// errStale ends a connection to an address whose turn was not taken. The transport then dials the
// right address.
var errStale = errors.New("connected to another address than the one with the host lease")

// failed returns the error of a request that got no response.
func (x *exchange) failed(ctx context.Context, err error) error {
	var busy *BusyError
	switch {
	case x.stale: // and the transport did not dial the other address; a retry will
		return &BusyError{time.Now()}
	case errors.As(context.Cause(ctx), &busy) && !x.reached &&
		x.c.dead.has(netip.AddrPortFrom(x.leave.addr, x.leave.port), time.Now()):
		return errNobody
	}
	return err
}

// errNobody means that no server answers at an address. The dial was cut off when its leave ended,
// and an earlier dial that had its full time failed.
var errNobody = errors.New("no peer answers at its address")
