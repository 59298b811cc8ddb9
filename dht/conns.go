package dht

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
func (d *DHT) connected(n network.Network, c network.Conn) {
	if d.gate != nil && !d.gate.connected(c) {
		// Not from here: libp2p still tells others of the connection.
		go func() { _ = c.CloseWithError(network.ConnResourceLimitExceeded) }()
		return
	}
	for _, old := range n.ConnsToPeer(c.RemotePeer()) {
		if old != c {
			d.testConn(old)
		}
	}
}

func (d *DHT) disconnected(_ network.Network, c network.Conn) {
	if d.gate != nil {
		d.gate.disconnected(c)
	}
}

// suspect puts all connections to p to the test, after a call failed.
func (d *DHT) suspect(p peer.ID) {
	for _, c := range d.host.Network().ConnsToPeer(p) {
		d.testConn(c)
	}
}

// testConn closes c unless it answers a ping in time.
func (d *DHT) testConn(c network.Conn) {
	if !d.begin() {
		return
	}
	go func() {
		defer d.running.Done()
		if err := pingConn(d.ctx, c); err != nil && d.ctx.Err() == nil {
			d.counters.staleConns.Add(1)
			d.log.Debug("closing a dead connection", "peer", c.RemotePeer().String(), "err", err)
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
