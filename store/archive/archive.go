// Package archive keeps what was fetched: the latest record of each Key, and captures of
// the visits to it, whose bodies are kept once a slice.
package archive

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Archive reads records and captures. Safe for concurrent use.
type Archive struct{ engine *engine.Engine }

// New is the archive in e.
func New(e *engine.Engine) *Archive { return &Archive{engine: e} }

// Batch writes records and captures.
type Batch struct {
	*engine.Batch
	Captured map[string]bool // rows of captures: put, or dropped

	s      *Archive
	bodies map[format.BodyID]*bodyUse
	sizes  map[partition.Key]fileSize // what the files written count as
}

// Extend is b with what an archive writes.
func (s *Archive) Extend(b *engine.Batch) *Batch {
	t := &Batch{Batch: b, s: s, Captured: make(map[string]bool), bodies: make(map[format.BodyID]*bodyUse)}
	b.AtEnd(t.endBodies)
	return t
}
