package churn

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// gater refuses connections, in both directions, with the peers from which it is cut off. It is
// safe for concurrent use.
type gater struct {
	mu  sync.Mutex
	off map[peer.ID]bool
}

// set replaces the peers from which this peer is cut off. If a name is no id, set returns an
// error and changes nothing.
func (g *gater) set(ids []string) error {
	off := map[peer.ID]bool{}
	for _, id := range ids {
		p, err := peer.Decode(id)
		if err != nil {
			return err
		}
		off[p] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off = off
	return nil
}

func (g *gater) open(p peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.off[p]
}

// hangUp closes the connections of h that are no longer allowed.
func (g *gater) hangUp(h host.Host) {
	for _, c := range h.Network().Conns() {
		if !g.open(c.RemotePeer()) {
			_ = c.Close() // it may be closed already
		}
	}
}

// The methods of connmgr.ConnectionGater.

func (g *gater) InterceptPeerDial(p peer.ID) bool                 { return g.open(p) }
func (g *gater) InterceptAddrDial(p peer.ID, _ ma.Multiaddr) bool { return g.open(p) }

// InterceptAccept accepts every connection, because the peer is not known yet.
func (g *gater) InterceptAccept(network.ConnMultiaddrs) bool { return true }
func (g *gater) InterceptSecured(_ network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return g.open(p)
}
func (g *gater) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	return g.open(c.RemotePeer()), 0
}
