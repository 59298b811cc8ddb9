package crawler

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Swarm is the rest of the peer, as the crawler sees it. Its methods are called by many goroutines
// at once.
type Swarm interface {
	// Owns reports whether this peer may fetch in the slice now. It is called when a Key is picked
	// and again just before each request.
	Owns(partition.Slice) bool
	// AtQuorum returns a channel. It closes when all commits in the slice so far survive the loss of
	// this peer, or when this peer no longer has the slice. nil = that is so already. Until then, the
	// site that was asked last is not asked again. So a lost peer takes with it at most one fetched
	// page per site.
	AtQuorum(partition.Slice) <-chan struct{}
	// Moves reports whether units can move to other slices. If not, Place is never called.
	Moves() bool
	// Place returns the slice in which the unit of a fetched Key is crawled from now on. Its arguments
	// are the slice of the fetch and the record. nil leaves the unit where it is.
	Place(partition.Slice, *store.Record) *store.Placement
	// Committed is called after each durable commit: the outbox may have new rows. It must not block.
	Committed()
}

// Alone is the Swarm of a crawler that has no other peers: it owns every slice, every commit
// survives, and no unit moves.
type Alone struct{}

// Owns implements Swarm.
func (Alone) Owns(partition.Slice) bool { return true }

// AtQuorum implements Swarm.
func (Alone) AtQuorum(partition.Slice) <-chan struct{} { return nil }

// Moves implements Swarm.
func (Alone) Moves() bool { return false }

// Place implements Swarm.
func (Alone) Place(partition.Slice, *store.Record) *store.Placement { return nil }

// Committed implements Swarm.
func (Alone) Committed() {}
