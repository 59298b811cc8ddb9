// Package search answers questions about all records of a swarm: queries, copies of a text,
// exports.
//
// One peer asks all others. Each slice is assigned to one live replica (I8), and a fan-out sends a
// request to every peer of this assignment. The result names each slice that no peer answered for,
// with the reason. The package also serves the requests of other peers from this peer's own store
// and index.
package search

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index"
)

// MaxHits is the maximum of offset plus limit of a query.
const MaxHits = 1000

// Options configure an Engine. All of them are required.
type Options struct {
	ID          string // this peer
	Charter     partition.Charter
	Slices      []partition.Slice // all slices of the swarm
	Store       *db.Store
	Index       *index.Index // with Fingerprint and FingerprintVersion of this package
	Quorum      *quorum.Machine
	Gazetteer   func() (*geo.Gazetteer, error)
	Timeout     time.Duration // of a query that sets none
	OrphanAfter time.Duration // how long the slices of a vanished peer are kept for it
}

// Swarm is what a search needs to know about the other peers. Its methods are safe for concurrent
// use.
type Swarm interface {
	// Call sends a request to another peer. A refusal is an error that wraps call.Refusal.
	Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error)
	// Members returns the live members, and the vanished ones whose slices are still kept for them.
	Members() partition.View
	// Alive reports whether a peer is a live member.
	Alive(peer string) bool
	// Vanished returns since when a peer is gone. ok is false unless its slices are kept for it.
	Vanished(peer string) (since time.Time, ok bool)
	// Zone returns this peer's own zone.
	Zone() partition.Zone
	// FindOwner looks for the owner of a slice of another zone.
	FindOwner(ctx context.Context, sl partition.Slice) (zone.Owner, error)
	// Foreign reports whether a slice belongs to another zone and this peer does not hold it.
	Foreign(sl partition.Slice) bool
	// SliceFrom decodes the slice that a message of another peer names for k (call.SliceOn).
	SliceFrom(v uint64, k partition.Key) (partition.Slice, error)
}

// Engine searches, and answers the searches of other peers. All methods are safe for concurrent
// use.
type Engine struct {
	o            Options
	swarm        Swarm
	fingerprints fingerprints
	cut          atomic.Int64
}

// New returns an Engine.
func New(o Options, s Swarm) *Engine { return &Engine{o: o, swarm: s, fingerprints: newFingerprints()} }

// CopiesCut returns the number of groups of copies that were too large to be found completely.
func (en *Engine) CopiesCut() int64 { return en.cut.Load() }

// acts reports whether this peer has all of sl that its owner has.
func (en *Engine) acts(sl partition.Slice) bool { return en.o.Quorum.Acts(sl, time.Now()) }

// indexWait is how long a query waits for slices that are not in this peer's index yet. Such a
// slice arrived recently, or its owner died recently. A slice that is still not there is reported
// as missing; a later query finds it.
func (o Options) indexWait() time.Duration { return o.Timeout / 4 }

// Lag returns how many changes of the indexed slices are not searchable yet.
func Lag(s *db.Store, ix *index.Index) uint64 {
	last, done := s.LastChange(), ix.Seq()
	return max(last, done) - done
}
