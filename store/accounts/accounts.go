// Package accounts stores what a fetch of an account or a timeline returns in addition to the
// record: posts, lists, gaps, overrides and checkpoints. They are items: rows of their Key whose
// states join in any order (store/format).
package accounts

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
)

// Accounts reads items. It is safe for concurrent use.
type Accounts struct {
	engine  *engine.Engine
	archive *archive.Archive
}

// New returns the items in e. The records of the same Keys are in a.
func New(e *engine.Engine, a *archive.Archive) *Accounts { return &Accounts{engine: e, archive: a} }

// Batch writes items.
type Batch struct {
	*archive.Batch
	// Left contains the files that a post or a profile named before this batch. Named contains the
	// files that a post or a profile names in this batch.
	Left, Named map[partition.Key]bool

	s     *Accounts
	items map[string][]byte // states of the items that were written, by row
}

// Extend returns a Batch that adds its rows to b.
func (s *Accounts) Extend(b *engine.Batch) *Batch { return &Batch{Batch: s.archive.Extend(b), s: s} }
