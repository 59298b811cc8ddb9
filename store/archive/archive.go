// Package archive stores what was fetched: the latest record of each Key, and captures of the
// visits to it. A body is stored once in a slice, however many captures have it.
package archive

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Archive reads records and captures. It is safe for concurrent use.
type Archive struct{ engine *engine.Engine }

// New returns the archive in e.
func New(e *engine.Engine) *Archive { return &Archive{engine: e} }

// Batch writes records and captures.
type Batch struct {
	*engine.Batch
	Captured map[string]bool // rows of captures: true = put, false = dropped

	s      *Archive
	bodies map[format.BodyID]*bodyUse
	sizes  map[partition.Key]fileSize // the size of each file that was written
}

// Extend returns a Batch that adds its rows to b.
func (s *Archive) Extend(b *engine.Batch) *Batch {
	t := &Batch{Batch: b, s: s, Captured: make(map[string]bool), bodies: make(map[format.BodyID]*bodyUse)}
	b.AtEnd(t.endBodies)
	return t
}
