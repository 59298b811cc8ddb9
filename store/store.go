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
	ErrCharter  = errors.New("store: made for another charter")
)

// Options of Create and Open.
type Options struct {
	FS       vfs.FS            // default vfs.Default; tests give vfs.NewCrashableMem
	CacheMiB int               // block cache, default 32
	Logger   *slog.Logger      // default: discard
	Charter  partition.Charter // Create: required. Open: checked when Name is set
	// Fatal is called when the disk refuses a write-ahead log sync, after which
	// nothing can be promised: it must not return. Default: panics.
	Fatal func(error)
}

// State is where a Key stands.
type State uint8

// The states. The numbers are stored; never renumber.
const (
	StatePending State = 1 // never fetched, due at Due.At
	StateDone    State = 2 // fetched; Due.At is the revisit, zero = none
	StateGone    State = 3 // 404, 410 or the like: final until revisited
	StateRefused State = 4 // will not be fetched: robots, caps, policy; Reason says which
)

// Admission asks that a Key be crawled.
type Admission struct {
	Key      partition.Key
	Referrer partition.Key // "" for a seed
	Depth    int           // links from the seed, 0 for a seed
	Priority int           // 0 soonest, 255 last
	Seed     bool
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
	Digest   string // of the last record
}

// Next is what a fetch means for the frontier.
type Next struct {
	State    State     // StatePending = try again At
	At       time.Time // when to look again; zero with Done, Gone, Refused = never
	Attempts int
	Reason   string
}

// Commit is one fetch's whole effect, made durable as one batch (I3).
type Commit struct {
	Key    partition.Key
	Now    time.Time
	Record *Record // nil keeps the record there is
	Next   Next
	Links  []Admission // same slice: admitted in the batch; others: outbox rows
	Site   *Site       // nil leaves it
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
	To    partition.Slice // the slice of the Key
	Admission
}

// Backlog is one site with rows in the frontier.
type Backlog struct {
	Slice    partition.Slice
	Site     partition.Site
	Pending  int64     // rows in StatePending
	Earliest time.Time // of the first row due
}

// Change is one entry of the change log: the record of Key was written or removed.
type Change struct {
	Seq uint64
	Key partition.Key
}

// Stats are counts that are cheap to read; exact after Open.
type Stats struct {
	Keys, Pending, Done, Gone, Refused int64
	Records                            int64
	Outbox                             int64
	Fetches                            int64 // commits with a record, ever
	DiskBytes                          int64
}

// Row is one raw row of a slice on its way to another peer (hand-over).
type Row struct {
	Key   []byte
	Value []byte
}
