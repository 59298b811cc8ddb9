// Package accounts keeps what a fetch of an account or a timeline brings beside the record:
// posts, lists, gaps, overrides and checkpoints. They are items: rows of their Key whose
// states join in any order (store/format).
package accounts

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
)

// Accounts reads items. Safe for concurrent use.
type Accounts struct {
	engine  *engine.Engine
	archive *archive.Archive
}

// New is the items in e. The records beside them are in a.
func New(e *engine.Engine, a *archive.Archive) *Accounts { return &Accounts{engine: e, archive: a} }

// Batch writes items.
type Batch struct {
	*archive.Batch
	// Left are the files that a post or a profile named before this batch, Named those that one names in it.
	Left, Named map[partition.Key]bool

	s     *Accounts
	items map[string][]byte // states of items written, by row
}

// Extend is b with what writes items.
func (s *Accounts) Extend(b *engine.Batch) *Batch { return &Batch{Batch: s.archive.Extend(b), s: s} }
