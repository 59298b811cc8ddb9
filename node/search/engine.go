// Package search answers questions about all records of a swarm: queries, copies of a text, exports.
//
// One peer asks all others. Each slice is assigned to one live replica (I8), and a fan-out puts
// a question to every peer of this assignment. What nobody answers for is named with its reason.
// The package also serves the questions of other peers from this peer's own store and index.
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

// MaxHits is the most that offset plus limit of a query may be.
const MaxHits = 1000

// Options are what an Engine works with. All of them are needed.
type Options struct {
	ID          string // this peer
	Charter     partition.Charter
	Slices      []partition.Slice // all of the swarm's
	Store       *db.Store
	Index       *index.Index // with Fingerprint and FingerprintVersion of this package
	Quorum      *quorum.Machine
	Gazetteer   func() (*geo.Gazetteer, error)
	Timeout     time.Duration // of a query that names none
	OrphanAfter time.Duration // how long the slices of a peer that vanished are kept for it
}

// Swarm is what a search knows of the other peers. Its methods are safe for concurrent use.
type Swarm interface {
	// Call asks another peer. A refusal is an error that wraps call.Refusal.
	Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error)
	// Members are the live members, and those that vanished and are still waited for.
	Members() partition.View
	// Alive says whether a peer is a live member.
	Alive(peer string) bool
	// Vanished says since when a peer is gone whose slices are kept for it.
	Vanished(peer string) (since time.Time, ok bool)
	// Zone is this peer's own zone.
	Zone() partition.Zone
	// FindOwner looks for the owner of a slice of another zone.
	FindOwner(ctx context.Context, sl partition.Slice) (zone.Owner, error)
	// Foreign says whether a slice is of another zone, and not in this peer's hands.
	Foreign(sl partition.Slice) bool
	// SliceFrom reads the slice that a message of another peer names beside k (call.SliceOn).
	SliceFrom(v uint64, k partition.Key) (partition.Slice, error)
}

// Engine searches, and answers the searches of other peers. All methods are safe for concurrent use.
type Engine struct {
	o            Options
	swarm        Swarm
	fingerprints fingerprints
	cut          atomic.Int64
}

// New makes an Engine.
func New(o Options, s Swarm) *Engine { return &Engine{o: o, swarm: s, fingerprints: newFingerprints()} }

// CopiesCut counts the groups of copies that were too large to be found whole.
func (en *Engine) CopiesCut() int64 { return en.cut.Load() }

// acts says whether this peer has all of sl that its owner has.
func (en *Engine) acts(sl partition.Slice) bool { return en.o.Quorum.Acts(sl, time.Now()) }

// indexWait is how long a query waits for slices that are not in this peer's
// index yet: they came a moment ago, or their owner died a moment ago. What is
// not there by then is named as missing, and will be there for a later query.
func (o Options) indexWait() time.Duration { return o.Timeout / 4 }

// Lag is how many changes of the slices in the index are not searchable yet.
func Lag(s *db.Store, ix *index.Index) uint64 {
	last, done := s.LastChange(), ix.Seq()
	return max(last, done) - done
}
