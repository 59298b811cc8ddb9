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

// Caller sends req to the peer of a call and returns its answer.
type Caller func(ctx context.Context, req *wire.Request) (*wire.Response, error)

// Options configure a DHT. Except for Key and Charter, the zero value means the default.
type Options struct {
	Key     crypto.PrivKey    // this peer's identity, Ed25519; required
	Charter partition.Charter // the swarm's; required
	// Listen has the multiaddrs to listen on. Default: QUIC and TCP on a free port of every
	// interface. TCP alone is enough.
	Listen []string
	// Join has ways into the swarm. Each one is a multiaddr that ends in /p2p/ID, a file name, or a
	// DNS name with dnsaddr records. The file has one such multiaddr per line. If Join is empty,
	// the swarm starts here, or is found in another way.
	Join []string
	// Dir is the directory for the files that help to find the swarm after a restart. It must
	// exist. "" = nothing is kept.
	Dir string
	// Known has more ways in, which this peer remembers from an earlier run. Unlike those of Join
	// they may be wrong, so they are tried only a few times.
	Known []string
	// MDNS finds peers of the same swarm on the local network.
	MDNS bool
	// LAN says that the swarm is on a local network. Then this peer also dials private, loopback
	// and link-local addresses that members announce. MDNS implies LAN. So do Listen addresses that
	// are all private, and Join addresses that are all private.
	LAN bool
	// AllowLoopback publishes loopback addresses even if there are other ones. If there are no
	// other ones, they are always published.
	AllowLoopback bool

	Capacity int              // of this peer, relative to others; 1 to 16, 0 = 1
	LoadStep int              // 0 to 16, higher = busier
	Location *partition.Point // nil = not published
	Version  string           // of the program, at most wire.MaxVersion bytes

	// Ways admits this peer to a private swarm if Dir has no pass yet. It is an invite, or the key
	// that the members share. A founder needs neither.
	Ways

	// Priority reports whether a request is served even if the places for other requests are all
	// taken. nil = no request is. Faulty is called with the id of a peer that sent an invalid
	// request. Both must be safe for concurrent use.
	Priority func(*wire.Request) bool
	Faulty   func(from string)

	CallTimeout  time.Duration // for a Call whose context has no deadline; default 30 s
	ReadTimeout  time.Duration // to read one request or to write one response; default 30 s
	ServeTimeout time.Duration // until the context of a Handler ends; default 60 s
	// MaxServing is the number of requests served at once. Further ones are refused as busy. A
	// quarter of the places is reserved for requests that Priority selects. MaxServingPeer is the
	// limit for one peer, so that one peer cannot take all places. Default 256 and 32.
	MaxServing, MaxServingPeer int
	// MaxOutsiders is the number of requests of outsiders that are read or served at once. At most
	// half of them may come from one address, and three quarters from one network. Further ones are
	// reset unread. Default 64, or 256 in a swarm of several zones.
	MaxOutsiders int
	MaxCalls     int // calls to one peer at once; further ones wait; default 8

	Logger     *slog.Logger          // nil = discard
	Registerer prometheus.Registerer // for libp2p's own metrics; nil = no metrics
	Datastore  ds.Batching           // for Kademlia's records; nil = in memory
	// Around wraps every Call to another peer. Tests use it to lose, repeat or delay messages. next
	// makes the Call. nil = only next runs.
	Around func(ctx context.Context, to string, req *wire.Request, next Caller) (*wire.Response, error)
	// Host replaces the host that New makes; for tests. Its creator closes it. It must have the key
	// Key.
	Host host.Host
}

// fill checks the options, sets defaults, and returns all faults joined.
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
	// The peer signs with Key, and others check that with the host's id.
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

// lan reports whether the swarm is on a local network, see Options.LAN. It reads the files that
// Join names.
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
		// An entry may be a file with addresses, see Options.Join.
		b, err := os.ReadFile(entry)
		if err != nil || len(b) > maxJoinFile {
			join = append(join, entry)
			continue
		}
		join = append(join, strings.Fields(string(b))...)
	}
	return all(o.Listen) || all(join)
}

// orDefault sets v to the value to if v is zero.
func orDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// prefix returns the protocol prefix of c's swarm.
func prefix(c partition.Charter) protocol.ID {
	const digits = 16
	d := c.Digest()
	return protocol.ID("/echo/" + d[:min(len(d), digits)])
}

// Errors of this package that callers can tell apart. ErrNoPeer: the peer was not reached and has
// not seen the request. ErrReplayed: the answer has the id of another call, so the peer may have
// sent an old one again.
var (
	ErrNoPeer   = errors.New("peer cannot be reached")
	ErrReplayed = errors.New("the answer is to another call")
)

// decodePeer parses a peer id. The error wraps ErrNoPeer, because no peer has such an id.
func decodePeer(id string) (peer.ID, error) {
	p, err := peer.Decode(id)
	if err != nil {
		return "", fmt.Errorf("%w: peer id %.64q: %v", ErrNoPeer, id, err)
	}
	return p, nil
}
