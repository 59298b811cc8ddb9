package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// Caller sends req to the peer that was called and returns its answer.
type Caller func(ctx context.Context, req *wire.Request) (*wire.Response, error)

// Options of a DHT.
type Options struct {
	Key     crypto.PrivKey    // this peer's identity, required
	Charter partition.Charter // of the swarm, required
	// Listen are the multiaddrs to listen on; default QUIC and TCP on a free
	// port of every interface. TCP alone will do.
	Listen []string
	// Join are ways into the swarm: a multiaddr that ends in /p2p/ID, the name
	// of a file with one such multiaddr a line, or a DNS name with dnsaddr
	// records. None = the swarm starts here, or is found otherwise.
	Join []string
	// Dir keeps what helps to find the swarm again after a restart; it must
	// exist. "" = nothing is kept.
	Dir string
	// Known are more ways in, which this peer remembers from before. Unlike Join
	// they may be wrong by now, and are tried a few times only.
	Known []string
	// MDNS finds peers of the same swarm on the local network.
	MDNS bool
	// LAN is a swarm of a local network: the private, loopback and link-local
	// addresses that members announce are dialled. It follows from MDNS, from
	// Listen addresses that are all private, and from Join addresses that are.
	LAN bool
	// AllowLoopback publishes loopback addresses although there are others;
	// with none but loopback they are published anyhow.
	AllowLoopback bool

	Capacity int              // 1 to 16, 0 = 1
	LoadStep int              // 0 to 16
	Location *partition.Point // nil = not told
	Version  string           // of the program

	// Pass into a private swarm, for a peer that has none in Dir yet: an invite,
	// or the key that its members share. A founder needs neither.
	Ways

	// Priority says which requests are served though all places for the others
	// are taken; nil = none. Faulty is told who sent a request that was no good.
	Priority func(*wire.Request) bool
	Faulty   func(from string)

	CallTimeout  time.Duration // of a Call whose context has no deadline; default 30 s
	ReadTimeout  time.Duration // to read one request or write one response; default 30 s
	ServeTimeout time.Duration // of the context of a handler; default 60 s
	// MaxServing is how many requests are served at once; more are refused as
	// busy. A quarter is kept for the urgent ones. MaxServingPeer is how many of
	// one peer, so that a flood of one leaves room for the rest. Default 256 and
	// 32.
	MaxServing, MaxServingPeer int
	// MaxOutsiders is how many requests of peers that are no members are read or
	// served at once; half of them from one address. More are reset unread.
	// Default 64, or 256 in a swarm of several zones.
	MaxOutsiders int
	MaxCalls     int // calls to one peer at once; more wait; default 8

	Logger     *slog.Logger          // nil = discard
	Registerer prometheus.Registerer // for libp2p's own metrics; nil = none
	Datastore  ds.Batching           // for Kademlia's records; nil = in memory
	// Around stands around every Call to another peer, for tests that lose,
	// repeat or delay messages: next does the Call. nil = next alone.
	Around func(ctx context.Context, to string, req *wire.Request, next Caller) (*wire.Response, error)
	// Host is used instead of an own one, for tests; its creator closes it.
	Host host.Host
}

func (o *Options) fill() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Key == nil {
		fault("no key")
	} else if o.Key.Type() != crypto.Ed25519 {
		fault("the key is not Ed25519")
	}
	if err := o.Charter.Validate(); err != nil {
		faults = append(faults, err)
	}
	if len(o.Listen) == 0 {
		o.Listen = defaultListen()
	}
	for _, s := range o.Listen {
		if _, err := ma.NewMultiaddr(s); err != nil {
			fault("listen address %q: %w", s, err)
		}
	}
	if o.Capacity < 0 || o.Capacity > wire.MaxCapacity {
		fault("capacity %d is not 1 to %d", o.Capacity, wire.MaxCapacity)
	}
	if o.LoadStep < 0 || o.LoadStep > wire.MaxLoadStep {
		fault("load step %d is not 0 to %d", o.LoadStep, wire.MaxLoadStep)
	}
	if l := o.Location; l != nil && !(l.Lat >= -90 && l.Lat <= 90 && l.Lon >= -180 && l.Lon <= 180) {
		fault("location %v, %v is not on the globe", l.Lat, l.Lon)
	}
	if len(o.Version) > wire.MaxVersion {
		fault("version is longer than %d bytes", wire.MaxVersion)
	}
	for _, s := range o.Join {
		if s == "" {
			fault("an empty join address")
		}
	}
	if o.Host != nil && o.Key != nil && !o.Host.ID().MatchesPrivateKey(o.Key) {
		fault("the host has another key")
	}
	if n := len(o.SwarmKey); n != 0 && n != wire.SwarmKeyLen {
		fault("a swarm key of %d bytes, not %d", n, wire.SwarmKeyLen)
	}
	if o.Capacity == 0 {
		o.Capacity = wire.MinCapacity
	}
	orDefault(&o.CallTimeout, 30*time.Second)
	orDefault(&o.ReadTimeout, 30*time.Second)
	orDefault(&o.ServeTimeout, time.Minute)
	orDefault(&o.MaxServing, 256)
	orDefault(&o.MaxServingPeer, 32)
	orDefault(&o.MaxCalls, 8)
	if o.Charter.ZoneMax > 0 { // members of other zones are outsiders here
		orDefault(&o.MaxOutsiders, 256)
	}
	orDefault(&o.MaxOutsiders, 64)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(faults...)
}

// lan says whether the swarm is one of a local network: see Options.LAN.
func (o *Options) lan() bool {
	if o.LAN || o.MDNS {
		return true
	}
	all := func(texts []string) bool {
		return len(texts) > 0 && !slices.ContainsFunc(texts, func(text string) bool {
			a, err := ma.NewMultiaddr(text)
			return err != nil || manet.IsIPUnspecified(a) || !guard.Private(a)
		})
	}
	var join []string
	for _, entry := range o.Join {
		b, err := os.ReadFile(entry)
		if err != nil || len(b) > maxJoinFile {
			join = append(join, entry)
			continue
		}
		join = append(join, strings.Fields(string(b))...)
	}
	return all(o.Listen) || all(join)
}

func orDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// prefix is the protocol prefix of c's swarm.
func prefix(c partition.Charter) protocol.ID {
	const digits = 16
	d := c.Digest()
	return protocol.ID("/echo/" + d[:min(len(d), digits)])
}

// Errors of this package that callers tell apart.
var (
	ErrNoPeer   = errors.New("peer cannot be reached")
	ErrReplayed = errors.New("the answer is to another call")
)

func decodePeer(id string) (peer.ID, error) {
	p, err := peer.Decode(id)
	if err != nil {
		return "", fmt.Errorf("%w: peer id %.64q: %v", ErrNoPeer, id, err)
	}
	return p, nil
}
