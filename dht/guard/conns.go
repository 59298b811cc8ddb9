package guard

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multistream"
)

// checkTimeout is the time in which an old connection must answer a ping.
const checkTimeout = 2 * time.Second

// connected handles a new connection. If a peer is killed and starts again, its old connection
// looks alive for half a minute. libp2p may choose it for new streams, which are then lost. So
// after a second connection to a peer, this peer tests the others.
func (g *Guard) connected(n network.Network, c network.Conn) {
	if g.gate != nil && !g.gate.connected(c) {
		// Close it in another goroutine, because libp2p is still reporting the connection to other
		// notifiees.
		go func() { _ = c.CloseWithError(network.ConnResourceLimitExceeded) }()
		return
	}
	for _, old := range n.ConnsToPeer(c.RemotePeer()) {
		if old != c {
			g.testConn(old)
		}
	}
}

// disconnected gives the place of a closed connection back.
func (g *Guard) disconnected(_ network.Network, c network.Conn) {
	if g.gate != nil {
		g.gate.disconnected(c)
	}
}

// Suspect tests all connections to p. Call it after a call to p failed. It does not wait for the
// tests.
func (g *Guard) Suspect(p peer.ID) {
	for _, c := range g.base.Network().ConnsToPeer(p) {
		g.testConn(c)
	}
}

// testConn closes c if it does not answer a ping within checkTimeout. It does not wait for that.
func (g *Guard) testConn(c network.Conn) {
	if !g.opts.Life.Begin() {
		return
	}
	go func() {
		defer g.opts.Life.End()
		if err := pingConn(g.opts.Life.Context(), c); err != nil && g.opts.Life.Context().Err() == nil {
			g.Count.StaleConns.Add(1)
			g.opts.Logger.Debug("closing a dead connection", "peer", c.RemotePeer().String(), "err", err)
			_ = c.Close()
		}
	}()
}

// pingConn exchanges a libp2p ping on c itself, and not on another connection to the same peer.
func pingConn(ctx context.Context, c network.Conn) error {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "ping"), checkTimeout)
	defer cancel()
	s, err := c.NewStream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if err := multistream.SelectProtoOrFail(ping.ID, s); err != nil {
		return err
	}
	var sent, back [ping.PingSize]byte
	if _, err := rand.Read(sent[:]); err != nil {
		return err
	}
	if _, err := s.Write(sent[:]); err != nil {
		return err
	}
	_, err = io.ReadFull(s, back[:])
	return err
}
