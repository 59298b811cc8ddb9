package api

import (
	"net"
	"net/http"
	"sync"
)

// unusedConns are the connections on which nothing was asked yet, as browsers open
// ahead of need. http.Server.Shutdown takes each for a request under way until it is
// 5 seconds old, so a peer with a dashboard open somewhere would take that long to stop.
type unusedConns struct {
	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func newUnusedConns() *unusedConns { return &unusedConns{open: map[net.Conn]bool{}} }

// changed is http.Server.ConnState: a connection is used from its first byte on.
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

// close closes them, and those that are still accepted.
func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.open {
		_ = c.Close()
	}
	u.open = nil
}
