// Package engine writes batches to one Pebble: whole, durable, one after the other for
// each slice. It has what every part of a store needs: the locks of slices, numbers in
// order, counts, the change log, and the entries of the logs of slices. It knows when the
// disk is full or refuses, and notices files that are damaged.
//
// The rows are those of store/format. What they mean is up to the packages above.
package engine

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Engine is one open Pebble. Safe for concurrent use.
type Engine struct {
	Dir     string
	Options store.Options
	DB      *pebble.DB
	Packer  *format.Packer
	Seqs    Sequencer
	Newest  atomic.Uint64 // the newest entry of the change log
	Totals  Totals
	Logs    Logs
	News    News

	mending  bool // see OpenRaw
	charter  partition.Charter
	id       string
	life     life
	failed   atomic.Pointer[failure] // the first refusal of the disk; sticky
	stuck    atomic.Bool             // Pebble called Fatalf: its own locks may be held for good
	locks    [stripes]sync.Mutex     // by slice: read, decide and apply are one step (I1)
	unsynced atomic.Int64            // writes that may be visible but not yet durable
	space    space
	damages  damages
}

// Batch is one batch being made. It lives while the locks of its slices are held. The
// batches of the packages above embed it.
type Batch struct {
	Rows *pebble.Batch
	// Replica: what is written is what an owner's log names, so it is not named again.
	Replica bool

	s      *Engine
	counts map[format.SiteID]*countChange
	Parts  map[partition.Slice]*Part
	total  TotalChange // of the store, beside those of the parts
	ticket *ticket     // nil until a sequence number is taken
	logged uint64      // its last entry in the change log, 0 = none
	last   []func() error
	seen   []func()
}

// NewBatch is an empty batch. Close must follow.
func (s *Engine) NewBatch() *Batch {
	return &Batch{s: s, Rows: s.DB.NewBatch(), counts: make(map[format.SiteID]*countChange),
		Parts: make(map[partition.Slice]*Part)}
}

// AtEnd has write called once, when all else is in the batch but its counts and the entries of logs.
func (t *Batch) AtEnd(write func() error) { t.last = append(t.last, write) }

// WhenVisible has do called when readers see the batch, under the locks of its slices.
func (t *Batch) WhenVisible(do func()) { t.seen = append(t.seen, do) }
