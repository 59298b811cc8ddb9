package api

import (
	"net"
	"net/http"
	"sync"
)

// unusedConns holds the connections without a request, as browsers open them in advance.
// http.Server.Shutdown treats each as a running request until it is 5 seconds old. So a peer
// with an open dashboard somewhere would need that long to stop.
type unusedConns struct {
	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func newUnusedConns() *unusedConns { return &unusedConns{open: map[net.Conn]bool{}} }

// changed is http.Server.ConnState. A connection is in use from its first byte on.
func (u *unusedConns) changed(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.open, c)
	case u.closed:
		_ = c.Close()
	default:
		u.open[c] = true
	}
}

// close closes them, and those that are accepted later.
func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.open {
		_ = c.Close()
	}
	u.open = nil
}
