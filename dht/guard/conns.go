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

// checkTimeout is how long an old connection has to answer.
const checkTimeout = 2 * time.Second

// connected looks after a new connection. When a peer is killed and comes back,
// its old connection looks alive for half a minute, and libp2p may well choose
// it for new streams, which then vanish. So a second connection to a peer puts
// the others to the test.
func (g *Guard) connected(n network.Network, c network.Conn) {
	if g.gate != nil && !g.gate.connected(c) {
		// Not from here: libp2p still tells others of the connection.
		go func() { _ = c.CloseWithError(network.ConnResourceLimitExceeded) }()
		return
	}
	for _, old := range n.ConnsToPeer(c.RemotePeer()) {
		if old != c {
			g.testConn(old)
		}
	}
}

func (g *Guard) disconnected(_ network.Network, c network.Conn) {
	if g.gate != nil {
		g.gate.disconnected(c)
	}
}

// Suspect puts all connections to p to the test, after a call failed.
func (g *Guard) Suspect(p peer.ID) {
	for _, c := range g.base.Network().ConnsToPeer(p) {
		g.testConn(c)
	}
}

// testConn closes c unless it answers a ping in time.
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

// pingConn exchanges a libp2p ping on exactly this connection.
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
