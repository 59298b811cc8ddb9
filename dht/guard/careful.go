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

// careful is the host as everything of this package uses it: streams that come
// in need a place (see pool), and before a peer is dialled it is found out which
// of its addresses are its own (see dials).
type careful struct {
	host.Host
	g       *Guard
	streams map[string]*Pool // by kind, see kindOf
}

// Kinds of streams that come in, with their limits. Calls have lanes instead.
const (
	swimPackets = "swim-packet"
	swimStates  = "swim-stream"
	kademlia    = "kad"
	questions   = "question" // of the charter, of admission, of addresses
)

const (
	outsiderStreams = 128 // of one kind, held by outsiders
	outsiderStates  = 64  // memberlist serves 128 exchanges at once, of anybody
	memberStreams   = 4096
)

func newCareful(h host.Host, g *Guard) *careful {
	c := &careful{Host: h, g: g, streams: map[string]*Pool{}}
	for kind, one := range map[string]struct{ all, outsider, member int }{
		swimPackets: {outsiderStreams, 3, 8},
		swimStates:  {outsiderStates, 2, 8},
		kademlia:    {outsiderStreams, 4, 16},
		questions:   {outsiderStreams, 4, 16},
	} {
		n := one.all
		if g.opts.Zones && kind == kademlia {
			n *= 4
		}
		c.streams[kind] = g.NewPool(kind, Limits{All: n, Net: n * 3 / 4, Addr: n / 2, Peer: one.outsider,
			Members: memberStreams, Member: one.member})
	}
	return c
}

// kindOf is the kind of a protocol of ours; "" = it is not ours, or a call.
func (c *careful) kindOf(id protocol.ID) string {
	text := string(id)
	switch {
	case slices.Contains(c.g.opts.Calls, id):
		return ""
	case slices.Contains(c.g.opts.Questions, id), id == c.g.opts.Prefix+VouchSuffix:
		return questions
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

// SetStreamHandler is host.Host's.
func (c *careful) SetStreamHandler(id protocol.ID, h network.StreamHandler) {
	c.Host.SetStreamHandler(id, c.placed(id, h))
}

// SetStreamHandlerMatch is host.Host's.
func (c *careful) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, h network.StreamHandler) {
	c.Host.SetStreamHandlerMatch(id, match, c.placed(id, h))
}

// placed has h see a stream only when there is a place for it.
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

// NewStream is host.Host's.
func (c *careful) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if none, _ := network.GetNoDial(ctx); !none {
		c.g.approach(ctx, p)
	}
	s, err := c.Host.NewStream(ctx, p, ids...)
	c.g.dialled(err)
	return s, err
}

// Connect is host.Host's.
func (c *careful) Connect(ctx context.Context, info peer.AddrInfo) error {
	if c.g.gate != nil && c.Network().Connectedness(info.ID) != network.Connected &&
		!c.g.gate.dialable(info.ID, info.Addrs) {
		c.g.approach(ctx, info.ID)
	}
	err := c.Host.Connect(ctx, info)
	c.g.dialled(err)
	return err
}

// dialled learns from a dial that failed.
func (g *Guard) dialled(err error) {
	if err != nil && g.gate != nil {
		g.gate.learn(err)
	}
}

// arriveWait is how long a member is waited for whose addresses nobody vouches
// for: it dials us, as every new member dials those that were there before it.
const arriveWait = 2 * time.Second

// approach finds an address of a member at which it may be dialled, or waits a
// moment for the member to come. It is no error when neither happens: the dial
// that follows says so.
func (g *Guard) approach(ctx context.Context, p peer.ID) {
	if g.gate == nil || p == g.self || g.base.Network().Connectedness(p) == network.Connected ||
		g.gate.dialable(p, g.base.Peerstore().Addrs(p)) || !g.IsMember(p) {
		return
	}
	came := g.gate.await(p)
	if g.askWitnesses(ctx, p) {
		return
	}
	timer := time.NewTimer(arriveWait)
	defer timer.Stop()
	select {
	case <-came:
	case <-timer.C:
		g.gate.giveUp(p, came)
	case <-ctx.Done():
	case <-g.opts.Life.Context().Done():
	}
}
