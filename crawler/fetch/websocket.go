package fetch

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/gorilla/websocket"
)

// WebSocket opens a WebSocket connection. It resolves names and refuses private addresses as for
// every request. On success, the caller must close the connection and limit what it reads. On
// error, the response may be non-nil if the server refused: it has a status and a header, but no
// body. The connection waits for the turn of its address.
func (c *Client) WebSocket(ctx context.Context, address string) (*websocket.Conn, *http.Response, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.Host == "" || u.User != nil {
		return nil, nil, fmt.Errorf("fetch: not the address of a WebSocket: %.100q", address)
	}
	if err := c.NeedsContact(u.Hostname()); err != nil {
		return nil, nil, err
	}
	if err := c.PortOf(u); err != nil {
		return nil, nil, fmt.Errorf("fetch: websocket: %w", err)
	}
	var shaking *capped
	d := websocket.Dialer{HandshakeTimeout: c.o.Total, NetDialContext: func(ctx context.Context, network,
		addr string) (net.Conn, error) {
		conn, err := c.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		shaking = &capped{Conn: conn, most: c.o.MaxHeader}
		shaking.left.Store(c.o.MaxHeader)
		return shaking, nil
	}}
	conn, resp, err := d.DialContext(ctx, address, http.Header{"User-Agent": {c.agent}})
	if err != nil {
		return nil, resp, fmt.Errorf("fetch: websocket: %w", err)
	}
	shaking.left.Store(math.MaxInt64)
	return conn, resp, nil
}

// capped is a connection that limits the bytes read during the handshake.
type capped struct {
	net.Conn
	most int64
	left atomic.Int64
}

// Read implements net.Conn. It fails with LimitHeader when the limit is exceeded.
func (c *capped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.left.Add(-int64(n)) < 0 {
		return 0, &LimitError{LimitHeader, c.most}
	}
	return n, err
}
