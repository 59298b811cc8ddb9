package store

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
)

// Sentinels that callers branch on.
var (
	ErrNotExist = errors.New("store: does not exist") // no such data directory, record or row
	ErrExist    = errors.New("store: exists already") // Create on a store
	ErrVersion  = errors.New("store: unknown format version")
	ErrLocked   = errors.New("store: in use by another process")
	ErrFull     = errors.New("store: disk full")
	ErrFenced   = errors.New("store: slice is another peer's now") // see Fence
	ErrCharter  = errors.New("store: made for another charter")
	ErrTrimmed  = errors.New("store: log is trimmed")           // Changes: read Records; ReadLog: send a snapshot
	ErrGap      = errors.New("store: not the log's next piece") // ApplyLog, ReadLog: nothing was done
)

// Options of Create and Open.
type Options struct {
	FS       vfs.FS            // default vfs.Default; tests give vfs.NewCrashableMem
	MaxBytes int64             // about how large it is to get, 0 = as large as it gets: a small one has a small log
	CacheMiB int               // block cache, default 64: the filters and indexes of ten million Keys fit
	Logger   *slog.Logger      // default: discard
	Charter  partition.Charter // Create: required. Open: checked when Name is set
	// Fatal is called when the disk refuses a write-ahead log sync, after which
	// nothing can be promised: it must not return. Default: panics.
	Fatal func(error)
	// Logged is called when the log of a slice (SetLogged) has grown: by a batch
	// that is durable, or by a PutSite, which ReadLog makes durable. It must not
	// block. Default: nobody is told.
	Logged func(partition.Slice)
	// Ahead is called when rows of a slice that another peer sent were left out, as they
	// are of more than MaxAhead in the future; the latest of them by how much. It must not
	// block. Default: nobody is told.
	Ahead func(sl partition.Slice, rows int, by time.Duration)
	// Damaged is called when a file was found that does not hold what was written to it
	// (Store.Damaged). It must not block, nor call the Store. Default: nobody is told.
	Damaged func(error)
}

// State is where a Key stands.
type State uint8

// The states. The numbers are stored; never renumber.
const (
	StatePending State = 1 // never fetched, due at Due.At
	StateDone    State = 2 // fetched; Due.At is the revisit, zero = none
	StateGone    State = 3 // 404, 410 or the like: final until revisited
	StateRefused State = 4 // will not be fetched: robots, caps, policy; Reason says which
	StatePlaced  State = 5 // seen here, crawled in another slice (geo mode, Placement)
	// StateQuarantined: processes died while they judged it (Trial); left alone until Release.
	StateQuarantined State = 6
)

// Admission asks that a Key be crawled.
type Admission struct {
	Key      partition.Key
	Referrer partition.Key // "" for a seed
	Depth    int           // links from the seed, 0 for a seed
	Priority int           // 0 soonest, 255 last
	Seed     bool
	// In is the slice to admit into; 0 is the hash slice of Key. In a geo slice
	// Gen is the generation of the placement that sent the Key there, and Pace
	// what the slice that it came from knows of its site.
	In   partition.Slice
	Gen  uint64
	Pace Pace
	// From is the slice of Referrer, for whoever judges where Key belongs; it is
	// not kept.
	From partition.Slice
	Hint Hint // what Referrer says of Key; goes on with an outbox row
}

// Pace is how soon a site may be asked by whoever takes it over (I7).
type Pace struct {
	Next    time.Time     // no request before; zero: Wait after the admission
	Wait    time.Duration // least gap, the peer's own included
	BackOff time.Duration
	Fetched int64 // pages fetched ever
}

// Answer is the registrar's final answer to an Admission (I2).
type Answer uint8

// The answers. The numbers are on the wire; never renumber.
const (
	Admitted Answer = 1 // new, now in the frontier
	Known    Answer = 2 // was admitted before (I1)
	Refused  Answer = 3 // final refusal
)

// Due is one row of the frontier.
type Due struct {
	Key      partition.Key
	State    State
	At       time.Time // not before
	Priority int
	Depth    int
	Attempts int    // failed tries in a row
	Reason   string // of the last failure or refusal
	ETag     string
	Modified string
	Digest   string        // of the last record
	Referrer partition.Key // of the first link, "" = none
	History  []byte        // as the last Next said, nil = none
}

// MaxHistory caps Next.History.
const MaxHistory = 1 << 10

// Next is what a fetch means for the frontier.
type Next struct {
	State    State     // StatePending = try again At
	At       time.Time // when to look again; zero with Done, Gone, Refused = never
	Attempts int
	Reason   string
	// History is what the crawler remembers of its visits, to decide when to come
	// again: opaque here, kept with the Key by every replica. nil keeps what there is.
	History []byte
}

// Commit is one fetch's whole effect, made durable as one batch (I3).
type Commit struct {
	Key    partition.Key
	Slice  partition.Slice // where Key was due; 0 is its hash slice
	Now    time.Time
	Record *Record // nil keeps the record there is
	// Capture is the exchange, from which what Record says too is taken; nil, or
	// one without Response: only that there was a visit is kept, and the records
	// before as versions. A 304 has Revisit NotModified and no Record. Nothing is
	// kept, nor any more what was, where Record says NoIndex or NoArchive.
	Capture *Capture
	Next    Next
	Links   []Admission // same slice: admitted in the batch; others: outbox rows
	Site    *Site       // nil leaves it
	Run     string      // the process that made the attempt (Try) which this ends, see Trial
	Place   *Placement  // nil leaves it; in geo mode: where Key's unit is crawled from now on

	// Posts are upserts and tombstones (Record.Deleted), each with Key as its Key,
	// KindPost, a Post and the time of its own fetch (zero: Now). Of one post the
	// later fetch stays; a tombstone is undone by a later fetch only; an edit keeps
	// the text before it. At most MaxPosts.
	Posts []Record
	Lists []ListPage // of Key's account; at most MaxListPages
	Gaps  []Gap      // at most MaxGaps
	// Checkpoint is what the source needs to go on with Key where it stopped, in the
	// middle of a list or after the last post seen: opaque here, kept with the slice
	// by every replica, given to the next fetch (Store.Checkpoint). nil keeps what
	// there is, an empty one forgets it. At most MaxCheckpointBytes.
	Checkpoint []byte
}

// Site is the politeness state of one site, kept with its slice (I7).
type Site struct {
	Site        partition.Site
	Slice       partition.Slice
	NextAllowed time.Time         // no request before
	Delay       time.Duration     // least gap asked by the site (crawl-delay), 0 = ours
	BackOff     time.Duration     // current back-off after 429/503, 0 = none
	Robots      map[string]Robots // by origin "https://host:port"
	Fetched     int64             // pages fetched ever
	Failures    int               // in a row
	Stopped     string            // why nothing of the site is fetched, "" = it is
	// Keys and links of the site that were stopped, by the word for why; a figure to show
	Stops map[string]int64 `json:",omitempty"`
	// how hints of its pages proved themselves: the crawler's, opaque here, at most MaxHints
	Hints []byte `json:",omitempty"`
}

// Robots is a stored robots.txt.
type Robots struct {
	Body    []byte // capped at 500 KiB (RFC 9309 section 2.5)
	Status  int    // 0 = unreachable
	Fetched time.Time
	Expires time.Time
}

// OutboxRow is one link on its way to another slice's registrar (I2, I3).
type OutboxRow struct {
	Seq   uint64          // its identity, with Slice
	Slice partition.Slice // the slice of the record it came from
	To    partition.Slice // the slice of the Key, or the geo slice that it was placed in
	Admission
}

// Backlog is one site with rows in the frontier.
type Backlog struct {
	Slice    partition.Slice
	Site     partition.Site
	Pending  int64     // rows in StatePending
	Earliest time.Time // no row is due before: the hour of the first one
}

// Change is one entry of the change log: the record of Key was written or
// removed, or one of its posts, then named by Post.
type Change struct {
	Seq  uint64
	Key  partition.Key
	Post string
}

// Stats are counts that are cheap to read; exact after Open.
type Stats struct {
	Keys, Pending, Done, Gone, Refused int64 // Keys are those four and Quarantined
	Placed                             int64 // rows of Keys that are crawled in another slice
	Quarantined                        int64 // Keys that are left alone (StateQuarantined)
	Records                            int64
	Posts                              int64 // tombstones included
	// of accounts that were had, by URL; a body that several have is once on disk in a slice
	Files, FileBytes int64
	Outbox           int64
	Fetches          int64 // commits with a record, ever
	DiskBytes        int64
}

// Row is one raw row of a slice on its way to another peer: SliceRows, ReadLog.
type Row struct {
	Key   []byte
	Value []byte
}

// LogChunk is a piece of a slice's log: the rows that its batches wrote, each
// once, as they are now. A peer at From that applies it is at To.
type LogChunk struct {
	Slice    partition.Slice
	From, To uint64 // the batches at positions above From, up to and with To
	Rows     []Row
}
