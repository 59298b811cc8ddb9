package blueskytest

import (
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Options configures New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	Domain string           // suffix of handles; default "b.test"
	People int              // default 40, at most 1,000,000
	Start  time.Time        // when the events begin; default 2026-01-01
	Clock  func() time.Time // default: always thirty days after Start
	// Rate is the number of posts per day of the least active person; default 0.3. Negative =
	// people post nothing by themselves.
	Rate   float64
	Quiet  bool    // no edits, deletions, suspensions or unfollows by themselves
	Limits []Limit // limits of the PDS, per address; default none, see PDSLimits
	Says   Headers // default Draft, as the PDS
	Mute   bool    // no limit headers
	Lies   Lies
	// PDS is the address of the server of all records; default https://pds.DOMAIN. If it is set,
	// every account is a did:plc, because a did:web names its own host.
	PDS string
	// StreamPoll is how often a Jetstream checks for new events; default 2 ms.
	StreamPoll time.Duration
}

// Aliases for the types of limits in package storytest.
type (
	// Limit is one bucket: at most Max requests in a window.
	Limit = storytest.Limit
	// Headers is the form of the limit headers.
	Headers = storytest.Headers
)

// PDSLimits returns the limit of the PDS: 3000 requests in five minutes per address.
func PDSLimits() []Limit {
	return []Limit{{Name: "global", Max: 3000, Window: 5 * time.Minute, All: true, Rolling: true}}
}

// Lies are the ways in which servers differ from the documentation.
type Lies struct {
	MaxLimit int // maximum page size, for every request; default as documented
	// Late is the time between the creation of a post and its appearance in the AppView, for every
	// third post.
	Late        time.Duration
	PinsFirst   bool // the first post of an account heads its feed
	AnonReposts bool // reposts in a feed have no URI, as in older AppViews
	// BareCursor: the cursor of a feed is only a time. Posts created at the same instant are
	// skipped.
	BareCursor    bool
	NoCursor      bool    // no cursor for a next page that exists
	RepeatsCursor bool    // the cursor of a list always leads to the same page
	Ring          int     // cursors of a list form a ring of that many pages; 0 = no ring
	Endless       bool    // the last page of a list repeats, each time with a new cursor
	Shuffles      bool    // a list has no end: its pages are random members
	EmptyTail     bool    // a list continues with empty pages for ever
	EmptyLists    bool    // empty lists, for every count
	WrongSubject  bool    // the list of another account, which is also its subject
	CountsTimes   float64 // counts are multiplied by this; 0 = 1

	IgnoresReverse bool // listRecords always starts with the newest
	IgnoresCursor  bool // listRecords always returns the first page
	EndsWithCursor bool // a last page that is not full has a cursor too, as in the real PDS
	NoRecords      bool // the PDS has no listRecords: 501
	RefusesCursor  bool // 500 for every cursor of a feed or search
	SearchClosed   bool // 403 for search, with an HTML page as from a CDN
	SearchPaging   bool // 403 for search with a cursor

	InvalidHandles bool   // handle.invalid for all accounts
	Nulls          bool   // null instead of empty strings and lists
	HTML200        bool   // an HTML page with status 200 for everything
	Object         bool   // an object instead of a list
	Down           int    // a 5xx status for everything; 503 with Retry-After: 30
	Redirect       string // a 301 to that origin for everything
	Truncated      bool   // half of the JSON
	Huge           int    // bytes of white space before each response
	WrongOne       bool   // getProfile returns the profile of another account
	Garbage        bool   // every second element of a list is not an object

	StreamRepeats bool // Jetstream sends each event twice
	StreamSilent  bool // Jetstream sends nothing after the replay
	StreamGarbage bool // Jetstream sends invalid events between the valid ones
	StreamDrops   int  // every nth event is not sent; 0 = all are sent
	StreamBreaks  int  // the connection ends after this many events; 0 = never
	StreamRefuses int  // status for every connection, with Retry-After: 120; 0 = open
}
