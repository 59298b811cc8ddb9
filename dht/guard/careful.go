package guard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// careful is the host as everything in package dht uses it. An incoming stream needs a place (see
// Pool). Before it dials a member, it finds out which of the member's addresses are its own (see
// dials).
type careful struct {
	host.Host
	g       *Guard
	streams map[string]*Pool // by kind, see kindOf
}

// The kinds of incoming streams that have limits here. Calls have lanes instead.
const (
	swimPackets = "swim-packet"
	swimStates  = "swim-stream"
	kademlia    = "kad"
	questions   = "question" // about the charter, admission and addresses
)

const (
	outsiderStreams = 128  // of one kind, held by outsiders
	outsiderStates  = 64   // memberlist serves 128 exchanges at once, of members and outsiders together
	memberStreams   = 4096 // of one kind, held by members
)

// newCareful makes the pools of each kind of stream. In a swarm of several zones, outsiders get four times
// as many places for Kademlia, because most of the swarm is in other zones.
func newCareful(h host.Host, g *Guard) *careful {
	c := &careful{Host: h, g: g, streams: map[string]*Pool{}}
	for kind, one := range map[string]struct{ all, outsider, member int }{
		swimPackets: {outsiderStreams, 3, 8},
		swimStates:  {outsiderStates, 2, 8},
		kademlia:    {outsiderStreams, 4, 16},
		questions:   {outsiderStreams, 4, 16},
	} {
		n := one.all
		// In a swarm of several zones, most peers in Kademlia are outsiders.
		if g.opts.Zones && kind == kademlia {
			n *= 4
		}
		c.streams[kind] = g.NewPool(kind, Limits{All: n, Net: n * 3 / 4, Addr: n / 2, Peer: one.outsider,
			Members: memberStreams, Member: one.member})
	}
	return c
}

// kindOf returns the kind of a protocol. It returns "" for calls, and for protocols that are not of
// this project.
func (c *careful) kindOf(id protocol.ID) string {
	text := string(id)
	switch {
	case slices.Contains(c.g.opts.Calls, id):
		return ""
	case slices.Contains(c.g.opts.Questions, id), id == c.g.opts.Prefix+VouchSuffix:
		return questions
	// libp2p's own protocols, such as identify and ping, have libp2p's limits.
	case !strings.HasPrefix(text, string(c.g.opts.Prefix)+"/"):
		return ""
	case strings.Contains(text, "/swim-packet/"):
		return swimPackets
	case strings.Contains(text, "/swim-stream/"):
		return swimStates
	case strings.Contains(text, "/kad/"):
		return kademlia
	}
	return questions
}

// SetStreamHandler implements host.Host. Streams without a place are reset.
func (c *careful) SetStreamHandler(id protocol.ID, h network.StreamHandler) {
	c.Host.SetStreamHandler(id, c.placed(id, h))
}

// SetStreamHandlerMatch implements host.Host. Streams without a place are reset.
func (c *careful) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, h network.StreamHandler) {
	c.Host.SetStreamHandlerMatch(id, match, c.placed(id, h))
}

// placed returns a handler that passes a stream to h only if there is a place for it.
func (c *careful) placed(id protocol.ID, h network.StreamHandler) network.StreamHandler {
	places := c.streams[c.kindOf(id)]
	if places == nil {
		return h
	}
	return func(s network.Stream) {
		pl := places.Take(s.Conn().RemotePeer(), s.Conn().RemoteMultiaddr())
		if pl == nil {
			_ = s.Reset()
			return
		}
		h(&placedStream{Stream: s, place: pl})
	}
}

// NewStream implements host.Host. It first finds an address of p, if it may dial.
func (c *careful) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	// The caller may want a stream only if there is a connection.
	if none, _ := network.GetNoDial(ctx); !none {
		c.g.approach(ctx, p)
	}
	s, err := c.Host.NewStream(ctx, p, ids...)
	c.g.dialled(err)
	return s, err
}

// Connect implements host.Host. It first finds an address of the peer, if none of those in info may
// be dialled.
func (c *careful) Connect(ctx context.Context, info peer.AddrInfo) error {
	if c.g.gate != nil && c.Network().Connectedness(info.ID) != network.Connected &&
		!c.g.gate.dialable(info.ID, info.Addrs) {
		c.g.approach(ctx, info.ID)
	}
	err := c.Host.Connect(ctx, info)
	c.g.dialled(err)
	return err
}

// dialled learns from a failed dial.
func (g *Guard) dialled(err error) {
	if err != nil && g.gate != nil {
		g.gate.learn(err)
	}
}

// arriveWait is how long this peer waits for a member for whose addresses nobody vouches. Every new
// member dials those that were there before it. So that member probably dials this peer.
const arriveWait = 2 * time.Second

// approach finds an address at which a member p may be dialled, or waits up to arriveWait for p to
// connect. If neither happens, it reports no error, because the dial that follows reports one.
func (g *Guard) approach(ctx context.Context, p peer.ID) {
	// There is nothing to find if there is a connection or a good address. For outsiders there are
	// no witnesses.
	if g.gate == nil || p == g.self || g.base.Network().Connectedness(p) == network.Connected ||
		g.gate.dialable(p, g.base.Peerstore().Addrs(p)) || !g.IsMember(p) {
		return
	}
	// Wait from now on, because p may connect while the witnesses answer.
	came, end := g.gate.await(p)
	defer end()
	if g.askWitnesses(ctx, p) {
		return
	}
	timer := time.NewTimer(arriveWait)
	defer timer.Stop()
	select {
	case <-came:
	case <-timer.C:
	case <-ctx.Done():
	case <-g.opts.Life.Context().Done():
	}
}
