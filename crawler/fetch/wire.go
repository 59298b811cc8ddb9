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

// What one answer may cost on the wire is counted at the connection, below TLS and below every framing: handshakes,
// header, 1xx answers, chunk extensions, trailers, members without content. So nothing that a server sends escapes.
const (
	// wireFloor is what every answer may cost, however short the wanted body is: a handshake and a header fit.
	wireFloor = 1 << 20
	// recvBuffer is what the system is asked to hold of a connection before it is read; it takes twice as much.
	recvBuffer = 192 << 10
	// wireIdle is what a connection may receive between two answers.
	wireIdle = 64 << 10
	// wireSpare is what may have arrived without having been read.
	wireSpare = 2*recvBuffer + wireIdle
)

// wireLimit is how many bytes may be read for an answer whose body has that cap, so that no more than twice the
// cap (or wireFloor) arrive, those that the system holds included.
func wireLimit(body int64) int64 { return max(2*min(body, 1<<60), wireFloor) - wireSpare }

// wireConn counts what is received on a connection and stops it at a limit. Answers are counted by themselves
// on a connection that is used again; those that share one at the same time (HTTP/2) share the sum of their limits.
type wireConn struct {
	net.Conn

	mu    sync.Mutex
	total int64 // received since it was dialled
	most  int64 // what total may become
	used  bool  // a request had it
	open  map[*receipt]struct{}
	shut  error // nothing is written any more
}

// receipt is one answer under way.
type receipt struct {
	conn  *wireConn
	from  int64 // total when it began
	limit *LimitError
	over  func(error)
}

func newWireConn(c net.Conn) *wireConn {
	return &wireConn{Conn: c, most: wireFloor - wireSpare, open: map[*receipt]struct{}{}}
}

// wireOf is the counted connection below conn, nil when there is none.
func wireOf(conn net.Conn) *wireConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	w, _ := conn.(*wireConn)
	return w
}

// Read is of net.Conn.
func (c *wireConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	room := c.most - c.total
	c.mu.Unlock()
	if int64(len(p))-1 > room { // one more than there may be says that there is more
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

// Write is of net.Conn.
func (c *wireConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	shut := c.shut
	c.mu.Unlock()
	if shut != nil {
		return 0, shut
	}
	return c.Conn.Write(p)
}

// refuse ends c before anything more is sent on it.
func (c *wireConn) refuse(why error) {
	c.mu.Lock()
	c.shut = why
	c.mu.Unlock()
	_ = c.Close() // nothing was promised to the server
}

// begin counts an answer that may cost limit bytes; over is called when c received more. The first answer pays for the
// handshake.
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

// end stops counting and says how much came. A nil receipt is none.
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

// lift takes the limit away: the rest has no end, and who reads it counts.
func (r *receipt) lift() {
	if r == nil {
		return
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	r.conn.most = 1 << 60
}

// bytes is how much came so far.
func (r *receipt) bytes() int64 {
	if r == nil {
		return 0
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	return r.conn.total - r.from
}

// exchange is one request under way, as its connection sees it.
type exchange struct {
	c      *Client
	leave  leave
	limit  int64 // on the wire
	bound  bool  // to the address of its leave: it took the turn of that one
	cancel context.CancelCauseFunc
	late   *time.Timer // ends a request that is not connected when its leave ends

	receipt *receipt
	reached bool // the request got a connection
	stale   bool // that connection led to an address that has no turn
}

// got looks at the connection that a request was given, before anything is sent on it. It may be one that an earlier
// request left, to an address that its name had then and that is not the one whose turn was taken now.
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

// errStale ends a connection to an address whose turn was not taken; the transport then dials the one that was.
var errStale = errors.New("connected to another address than the one with the host lease")

// failed is what ended a request without an answer.
func (x *exchange) failed(ctx context.Context, err error) error {
	var busy *BusyError
	switch {
	case x.stale: // and the transport did not dial another: who comes again will
		return &BusyError{time.Now()}
	case errors.As(context.Cause(ctx), &busy) && !x.reached &&
		x.c.dead.has(netip.AddrPortFrom(x.leave.addr, x.leave.port), time.Now()):
		return errNobody
	}
	return err
}

// errNobody is of an address where a dial that was given all its time found nobody, and none in its turn.
var errNobody = errors.New("no peer answers at its address")
