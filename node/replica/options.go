package replica

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/trash"
)

// Options are the arguments of all parts of this package. All parts share the same ones.
type Options struct {
	Self       string            // this peer
	Charter    partition.Charter // the charter of the swarm
	Slices     []partition.Slice // all slices of the swarm
	Quorum     *quorum.Machine
	Store      *db.Store
	Trash      *trash.Trash
	Placement  *placement.Placement
	Replicator *replicate.Replicator
	Peers      message.Peers
	Rest       Rest
	Logger     *slog.Logger
	Counts     *Counts

	Started     time.Time     // when this peer was opened
	OrphanAfter time.Duration // how long a majority of replicas must be gone before a slice is adopted

	// An Agreement does not need the following two. The parts that use them are made later.
	Crawler Crawler
	Joiner  bool // it was given addresses of peers; if alone, it has not met them yet
}

// Crawler is the crawler that works in the slices owned here.
type Crawler interface {
	Wake(s partition.Slice, sites ...partition.Site) // something is due in s
	Since(s partition.Slice) time.Time               // since when the crawler works in s
	Busy(s partition.Slice) int                      // fetches under way in s
}

// Rest is the rest of the peer: it follows the agreement, and it judges rows from other members.
// Gained, Keep and Recrawl are called with the agreement held, so they must not wait for it.
type Rest interface {
	// Gained is called before anything may be written to slices that this peer owns from now on.
	Gained(gained []partition.Slice)
	// Keep makes the index follow all slices owned here, with a whole copy or not.
	Keep(owned []partition.Slice)
	// Recrawl makes the crawler work in all, the owned slices with a whole copy. It restarts the
	// slices in lost and in gained.
	Recrawl(all, lost, gained []partition.Slice)
	// Reread sends waiting links to the peers that they belong to now.
	Reread()
	// Overrules reports whether the verdict of peer on an account counts.
	Overrules(peer string) bool
	// MayAdmit returns why k, at depth links from a seed, is not admitted, or nil if it is.
	MayAdmit(k partition.Key, depth int) error
}

// Counts are the counters that the metrics show for replicas, since the start.
type Counts struct {
	RefusedRows, RowsLeft                              atomic.Int64 // messages; rows
	TrashFull, Repaired                                atomic.Int64 // slices; buckets
	ReportsIgnored, ReportsConfirmed, ReplicaSetsAside atomic.Int64 // reports; slices; rows
}
