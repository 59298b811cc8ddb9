// Package engine writes batches to one Pebble database. Each batch is applied completely or not at
// all, and Write makes it durable. The batches of one slice follow one another. The package has
// what every part of a store needs: the locks of slices, sequence numbers, counts, the change log
// and the entries of the slices' logs. It notices a full disk, a disk that refuses writes, and
// damaged files.
//
// The rows are those of store/format. The packages above give them their meaning.
package engine

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Engine is one open Pebble database. It is safe for concurrent use.
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
	failed   atomic.Pointer[failure] // the first refusal of the disk; never cleared
	stuck    atomic.Bool             // Pebble called Fatalf: its own locks may never be released
	locks    [stripes]sync.Mutex     // by slice: read, decide and apply are one step (I1)
	unsynced atomic.Int64            // writes that may be visible but not yet durable
	space    space
	damages  damages
}

// Batch is one batch while it is built. It exists while the locks of its slices are held. The
// batches of the packages above embed it.
type Batch struct {
	Rows *pebble.Batch
	// Replica says that the rows come from an owner's log. That log names them already, so the
	// batch does not name them again.
	Replica bool

	s      *Engine
	counts map[format.SiteID]*countChange
	Parts  map[partition.Slice]*Part
	total  TotalChange // of the whole store, in addition to those of Parts
	ticket *ticket     // nil until a sequence number is taken
	logged uint64      // its last entry in the change log, 0 = none
	last   []func() error
	seen   []func()
}

// NewBatch returns an empty batch. The caller must call Close.
func (s *Engine) NewBatch() *Batch {
	return &Batch{s: s, Rows: s.DB.NewBatch(), counts: make(map[format.SiteID]*countChange),
		Parts: make(map[partition.Slice]*Part)}
}

// AtEnd registers write. It is called once, when the batch contains everything except its counts
// and the entries of the logs.
func (t *Batch) AtEnd(write func() error) { t.last = append(t.last, write) }

// WhenVisible registers do. It is called when readers see the batch, under the locks of its slices.
func (t *Batch) WhenVisible(do func()) { t.seen = append(t.seen, do) }
