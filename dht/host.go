package dht

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/wire"
)

// Limits of the host.
const (
	connsLow = 400 // if the host has more than guard.MaxConns connections, it closes some until this many remain
	// a new connection is not closed for that reason during this time
	connGrace = time.Minute

	// MaxAddresses is the largest number of addresses remembered of peers that are not connected.
	// MaxPeerRecords is the largest number of records that peers signed.
	MaxAddresses   = 1 << 14
	MaxPeerRecords = 1 << 12
)

// newHost makes a libp2p host with QUIC and TCP. Without listen addresses it only dials. g may be
// nil: then nothing decides who is dialled and who may connect.
func newHost(o Options, listen []string, g *guard.Guard) (host.Host, error) {
	book, err := pstoremem.NewPeerstore(pstoremem.WithMaxAddresses(MaxAddresses),
		pstoremem.WithMaxAddressesPerPeer(2*wire.MaxAddrs),
		pstoremem.WithMaxSignedPeerRecords(MaxPeerRecords))
	if err != nil {
		return nil, err
	}
	conns, err := connmgr.NewConnManager(connsLow, guard.MaxConns, connmgr.WithGracePeriod(connGrace))
	if err != nil {
		return nil, err
	}
	opts := []libp2p.Option{
		libp2p.Identity(o.Key),
		libp2p.Transport(quic.NewTransport),
		// Port reuse is off. With it, two peers could listen on the same port and not notice.
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport(), tcp.WithDialerForAddr(g.Dialer)),
		libp2p.Security(libp2ptls.ID, libp2ptls.New), // for TCP; QUIC has its own
		libp2p.Security(noise.ID, noise.New),
		libp2p.ConnectionManager(conns),
		libp2p.UserAgent("echo-node/" + o.Version),
		libp2p.ProtocolVersion("echo-node/1"),
		libp2p.DisableRelay(),
		libp2p.Peerstore(book),
	}
	opts = append(opts, g.HostOptions()...) // libp2p looks up no names, see resolveNames
	if len(listen) == 0 {
		opts = append(opts, libp2p.NoListenAddrs)
	} else {
		opts = append(opts, libp2p.ListenAddrStrings(listen...))
	}
	if slices.ContainsFunc(listen, reachable) {
		opts = append(opts, libp2p.NATPortMap()) // this asks the router, which is useless for loopback
	}
	if o.Registerer != nil {
		opts = append(opts, libp2p.PrometheusRegisterer(o.Registerer))
	} else {
		opts = append(opts, libp2p.DisableMetrics())
	}
	h, err := libp2p.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("listen on %v: %w", listen, err)
	}
	// libp2p accepts a start where only one address works. But a user who names a port that is
	// taken must learn of it. Of the default addresses, any one is enough, because there may be no
	// IPv6.
	if got := h.Network().ListenAddresses(); !slices.Equal(listen, defaultListen()) && len(got) < len(listen) {
		return nil, errors.Join(fmt.Errorf("listen on %v: only %v worked", listen, got), h.Close())
	}
	return h, nil
}

// defaultListen returns QUIC and TCP on a free port of every interface.
func defaultListen() []string {
	return []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip6/::/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0", "/ip6/::/tcp/0"}
}

// reachable reports whether addr is a multiaddr that is not loopback.
func reachable(addr string) bool {
	a, err := ma.NewMultiaddr(addr)
	return err == nil && !manet.IsIPLoopback(a)
}

// published returns the addresses to tell to other peers. It leaves out loopback, unless loopback
// is set or there are no other ones.
func published(addrs []ma.Multiaddr, loopback bool) []string {
	kept := slices.Clone(addrs)
	if !loopback {
		kept = slices.DeleteFunc(kept, manet.IsIPLoopback)
		if len(kept) == 0 {
			kept = addrs
		}
	}
	// The descriptor in the gossip has room for only some addresses, so public ones come first.
	slices.SortStableFunc(kept, func(a, b ma.Multiaddr) int { return rank(a) - rank(b) })
	out := make([]string, 0, len(kept))
	for _, a := range kept {
		out = append(out, a.String())
	}
	return out
}

// rank orders addresses: 0 for public, 1 for private, 2 for loopback ones.
func rank(a ma.Multiaddr) int {
	switch {
	case manet.IsPublicAddr(a):
		return 0
	case manet.IsIPLoopback(a):
		return 2
	}
	return 1
}
