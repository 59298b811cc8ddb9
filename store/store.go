package store

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
)

// Errors that callers check for.
var (
	ErrNotExist = errors.New("store: does not exist") // no such data directory, record or row
	ErrExist    = errors.New("store: exists already") // Create found a store
	ErrVersion  = errors.New("store: unknown format version")
	ErrLocked   = errors.New("store: in use by another process")
	ErrFull     = errors.New("store: disk full")
	ErrFenced   = errors.New("store: slice is another peer's now") // see replog.Log.Fence
	ErrCharter  = errors.New("store: made for another charter")
	ErrTrimmed  = errors.New("store: log is trimmed")                // read records, or send a snapshot
	ErrGap      = errors.New("store: not the next chunk of the log") // nothing was done
)

// Options configure Create and Open.
type Options struct {
	FS       vfs.FS            // default vfs.Default; tests give vfs.NewCrashableMem
	MaxBytes int64             // approximate maximum, 0 = none: a small store has a small log
	CacheMiB int               // block cache, default 64: for the indexes of ten million Keys
	Logger   *slog.Logger      // default: discard
	Charter  partition.Charter // Create: required. Open: checked when Name is set
	// Fatal is called when the disk refuses to sync the write-ahead log. After that, nothing is
	// certain to be durable, so Fatal must not return. Default: panics.
	Fatal func(error)
	// Logged is called when the log of a slice (SetLogged) has grown, by a durable batch or by a
	// PutSite, which ReadLog makes durable. It must not block. Default: no call.
	Logged func(partition.Slice)
	// Ahead is called when rows that another peer sent were skipped because they are more than
	// MaxAhead in the future. by is how far the latest of them is ahead. It must not block.
	// Default: no call.
	Ahead func(sl partition.Slice, rows int, by time.Duration)
	// Damaged is called when a file does not contain what was written to it (db.Store.Damaged). It
	// must not block or call the Store. Default: no call.
	Damaged func(error)
}

// State is the state of a Key in the frontier.
type State uint8

// The states. The numbers are stored; never renumber.
const (
	StatePending State = 1 // never fetched, due at Due.At
	StateDone    State = 2 // fetched; Due.At is the revisit, zero = none
	StateGone    State = 3 // 404, 410 or the like: final until revisited
	StateRefused State = 4 // will not be fetched: robots, limits, policy; see Reason
	StatePlaced  State = 5 // seen here, crawled in another slice (geo mode, Placement)
	// StateQuarantined: processes died while they judged it (Trial); not fetched until Release.
	StateQuarantined State = 6
)

// Admission requests that a Key be crawled.
type Admission struct {
	Key      partition.Key
	Referrer partition.Key // "" for a seed
	Depth    int           // links from the seed, 0 for a seed
	Priority int           // 0 first, 255 last
	Seed     bool
	// In is the slice to admit into; 0 is the hash slice of Key. In a geo slice, Gen is the
	// generation of the placement that sent the Key there. Pace is then what the slice that it came
	// from knows about its site.
	In   partition.Slice
	Gen  uint64
	Pace Pace
	// From is the slice of Referrer, for the code that judges where Key belongs; it is not stored.
	From partition.Slice
	Hint Hint // from Referrer, about Key; an outbox row passes it on
}

// Pace says how soon the new owner of a site may request from it (I7).
type Pace struct {
	Next    time.Time     // no request before; zero: Wait after the admission
	Wait    time.Duration // minimum interval, including the peer's own
	BackOff time.Duration
	Fetched int64 // pages fetched so far
}

// Answer is the final answer of the slice's owner to an Admission (I2).
type Answer uint8

// The answers. The numbers are sent to other peers; never renumber.
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
	History  []byte        // as in the last Next, nil = none
}

// MaxHistory is the maximum length of Next.History in bytes.
const MaxHistory = 1 << 10

// Next is the result of a fetch for the frontier.
type Next struct {
	State    State     // StatePending = try again At
	At       time.Time // when to look again; zero with Done, Gone, Refused = never
	Attempts int
	Reason   string
	// History is what the crawler remembers of its visits to decide about revisits. It is opaque
	// here, and every replica stores it with the Key. nil keeps the present one.
	History []byte
}

// Commit is the whole effect of one fetch. One batch makes it durable (I3).
type Commit struct {
	Key    partition.Key
	Slice  partition.Slice // where Key was due; 0 is its hash slice
	Now    time.Time
	Record *Record // nil keeps the present record
	// Capture is the exchange that Record comes from. If it is nil or has no Response, only the
	// fact of the visit is stored, and earlier records stay as versions. A 304 has Revisit
	// NotModified and no Record. If Record says NoIndex or NoArchive, nothing is stored and earlier
	// captures are deleted.
	Capture *Capture
	Next    Next
	Links   []Admission // same slice: admitted in the batch; others: outbox rows
	Site    *Site       // nil keeps the present one
	Run     string      // the process whose attempt (Try) ends here, see Trial
	Place   *Placement  // geo mode: where Key's unit is crawled from now on; or nil

	// Posts are upserts and tombstones (Record.Deleted). Each has Key as its Key, KindPost, a Post
	// and the time of its own fetch (zero: Now). The later fetch of a post wins. Only a later fetch
	// undoes a tombstone. An edit keeps the text before it. At most MaxPosts.
	Posts []Record
	Lists []ListPage // of Key's account; at most MaxListPages
	Gaps  []Gap      // at most MaxGaps
	// Checkpoint is what the source needs to continue with Key where it stopped, in the middle of a
	// list or after the last post seen. It is opaque here. Every replica stores it with the slice,
	// and the next fetch gets it (Accounts.Checkpoint). nil keeps the present one, an empty one
	// deletes it. At most MaxCheckpointBytes.
	Checkpoint []byte
}

// Site is the politeness state of one site, stored with its slice (I7).
type Site struct {
	Site        partition.Site
	Slice       partition.Slice
	NextAllowed time.Time         // no request before
	Delay       time.Duration     // minimum interval that the site requests (crawl-delay), 0 = ours
	BackOff     time.Duration     // current back-off after 429/503, 0 = none
	Robots      map[string]Robots // by origin "https://host:port"
	Fetched     int64             // pages fetched so far
	Failures    int               // in a row
	Stopped     string            // why nothing of the site is fetched, "" = it is fetched
	// stopped Keys and links of the site, by reason; only for display
	Stops map[string]int64 `json:",omitempty"`
	// success statistics of the hints of its pages; opaque here, at most MaxHints bytes
	Hints []byte `json:",omitempty"`
}

// Robots is a stored robots.txt.
type Robots struct {
	Body    []byte // at most 500 KiB (RFC 9309 section 2.5)
	Status  int    // 0 = unreachable
	Fetched time.Time
	Expires time.Time
}

// OutboxRow is one link on its way to the owner of another slice (I2, I3).
type OutboxRow struct {
	Seq   uint64          // identifies the row together with Slice
	Slice partition.Slice // the slice of the record that contains the link
	To    partition.Slice // the slice of the Key, or the geo slice that it was placed in
	Admission
}

// Backlog describes one site that has rows in the frontier.
type Backlog struct {
	Slice    partition.Slice
	Site     partition.Site
	Pending  int64     // rows in StatePending
	Earliest time.Time // no row is due before: the hour of the first one
}

// Change is one entry of the change log: the record of Key, or the post of it named by Post, was
// written or removed.
type Change struct {
	Seq  uint64
	Key  partition.Key
	Post string
}

// Stats are counts that are cheap to read. They are exact after Open.
type Stats struct {
	Keys, Pending, Done, Gone, Refused int64 // Keys is the sum of the other four and Quarantined
	Placed                             int64 // Keys that are crawled in another slice
	Quarantined                        int64 // Keys in StateQuarantined
	Records                            int64
	Posts                              int64 // including tombstones
	// fetched files of accounts, by URL; a slice stores a body that several URLs have once
	Files, FileBytes int64
	Outbox           int64
	Fetches          int64 // commits with a record, ever
	DiskBytes        int64
}

// Row is one raw row of a slice for another peer: SliceRows, ReadLog.
type Row struct {
	Key   []byte
	Value []byte
}

// LogChunk is a part of a slice's log: the rows that its batches wrote, each once, in their present
// state. A peer at From that applies it is at To.
type LogChunk struct {
	Slice    partition.Slice
	From, To uint64 // the batches at positions above From, up to and including To
	Rows     []Row
}
