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

// Options are what the parts of this package work with. All share the same.
type Options struct {
	Self       string            // this peer
	Charter    partition.Charter // of its swarm
	Slices     []partition.Slice // all of them
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

	// What an Agreement does without: the parts that are made before the crawler.
	Crawler Crawler
	Joiner  bool // was told of others, so being alone means not having met them yet
}

// Crawler is what works in the slices owned here.
type Crawler interface {
	Wake(s partition.Slice, sites ...partition.Site) // something is due there
	Since(s partition.Slice) time.Time               // since when it works there
	Busy(s partition.Slice) int                      // fetches under way there
}

// Rest is what follows the agreement in the rest of the peer, and what it says of strangers' rows.
// Gained, Keep and Recrawl are called with the agreement held: they must not wait for it.
type Rest interface {
	// Gained comes before anything may be written to slices that this peer owns from now on.
	Gained(gained []partition.Slice)
	// Keep has the index follow all slices owned here, with a whole copy or not.
	Keep(owned []partition.Slice)
	// Recrawl has the crawler work in all, those with a whole copy. What is in lost and in gained begins anew.
	Recrawl(all, lost, gained []partition.Slice)
	// Reread has links that wait go to whom they belong now.
	Reread()
	// Overrules says whether the word of peer on an account counts.
	Overrules(peer string) bool
	// MayAdmit says why a Key so many links from a seed is not admitted; nil when it is.
	MayAdmit(k partition.Key, depth int) error
}

// Counts are what the metrics say of replicas, since the start.
type Counts struct {
	RefusedRows, RowsLeft                          atomic.Int64 // messages; rows
	TrashFull, Repaired                            atomic.Int64 // slices; buckets
	WordsUnheard, WordsConfirmed, ReplicaSetsAside atomic.Int64
}
