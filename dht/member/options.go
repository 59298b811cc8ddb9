package member

import (
	"errors"
	"log/slog"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/partition"
)

// Options are the arguments of New.
type Options struct {
	Host   host.Host        // required; the List does not close it
	Key    crypto.PrivKey   // required; the host's own, Ed25519
	Space  string           // digest of the charter: descriptors of another swarm are refused
	Prefix protocol.ID      // of the protocols, required; "/echo/0123456789abcdef"
	Self   partition.Member // what this peer declares about itself; New sets ID and Addrs
	Logger *slog.Logger     // nil = discard
	// Elsewhere reports whether a peer that is no longer in this List is a member of another
	// List of the host. Its connection is then kept. nil = there is no other List.
	Elsewhere func(peer.ID) bool

	// ProbeInterval is how often one member is probed; default 700 ms. With ProbeTimeout
	// (default 400 ms) and SuspicionMult (default 3) a death is noticed after three to five
	// seconds.
	ProbeInterval time.Duration
	ProbeTimeout  time.Duration
	SuspicionMult int
	// PushPull is how often the whole state is exchanged with one member; default 15 s.
	PushPull time.Duration
	// MaxMembers is the largest number of members that the List accepts; default 1024. It
	// refuses more, so that invented peers cannot fill the memory.
	MaxMembers int
}

func (o *Options) fill() error {
	var faults []error
	if o.Host == nil {
		faults = append(faults, errors.New("no host"))
	}
	if o.Key == nil {
		faults = append(faults, errors.New("no key"))
	}
	if o.Prefix == "" {
		faults = append(faults, errors.New("no protocol prefix"))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.ProbeInterval, 700*time.Millisecond)
	setDefault(&o.ProbeTimeout, 400*time.Millisecond)
	setDefault(&o.SuspicionMult, 3)
	setDefault(&o.PushPull, 15*time.Second)
	setDefault(&o.MaxMembers, 1024)
	return errors.Join(faults...)
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// How Views are compared, by the digest in every response to a probe.
const (
	settleAfter = time.Second     // only a View at least this old is compared
	settlePause = 2 * time.Second // between two exchanges, multiplied by members/settleSmall
	settleSmall = 32
)

// hangUpLimit is how long a View waits for connections to be closed.
const hangUpLimit = 2 * time.Second

// Gone is what is remembered of a member that is no longer in the View.
type Gone struct {
	Member partition.Member // its last descriptor
	Since  time.Time        // when this peer noticed
	Left   bool             // it said goodbye; else it was found dead
}

// Limits of what is remembered of members that are gone.
const (
	MaxGone  = 4096
	keepGone = 24 * time.Hour
)

// Stats are counters since New.
type Stats struct {
	// of SWIM packets only, without the streams
	PacketsIn, PacketsOut, BytesIn, BytesOut uint64
	// packets in either direction that were dropped for lack of room or connection
	Dropped uint64
	// packets and streams with something that a List never sends
	Refused uint64
	// DeathClaims counts claims in packets that a member of our View is dead, by the peer that sent
	// them. They are only suspicions. Honest peers pass claims on, but a peer that invents them has
	// a much higher count. At most 256 peers are counted by name; the rest counts as "others".
	DeathClaims      map[string]uint64
	BadDescriptors   uint64 // members refused because of their descriptor
	StaleDescriptors uint64 // descriptors older than one already seen
	Health           int    // 0 is healthy; memberlist's own estimate of how slow this peer is
}
