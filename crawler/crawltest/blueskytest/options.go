package blueskytest

import (
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Options of New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	Domain string           // handles end in it; default "b.test"
	People int              // default 40, at most 1,000,000
	Start  time.Time        // when the story begins; default 2026-01-01
	Clock  func() time.Time // default: Start and thirty days, for ever
	Rate   float64          // posts a day of the least active; default 0.3, negative = nobody posts of himself
	Quiet  bool             // nothing is edited, deleted, suspended or unfollowed by itself
	Limits []Limit          // of the PDS, for each address; default none, see PDSLimits
	Says   Headers          // default Draft, as the PDS
	Mute   bool             // the limits are not told of
	Lies   Lies
	// PDS is the address of the server of everybody's records; default https://pds.DOMAIN. With it every
	// account is a did:plc: a did:web leads to a host by its name.
	PDS string
	// StreamPoll is how often a Jetstream looks whether something has happened; default 2 ms.
	StreamPoll time.Duration
}

// What limits are, as in package storytest.
type (
	// Limit is one bucket: at most Max requests in a window.
	Limit = storytest.Limit
	// Headers is how limits are told.
	Headers = storytest.Headers
)

// PDSLimits is that of the PDS: 3000 in five minutes for an address.
func PDSLimits() []Limit {
	return []Limit{{Name: "global", Max: 3000, Window: 5 * time.Minute, All: true, Rolling: true}}
}

// Lies are the ways in which servers do otherwise than the documents say.
type Lies struct {
	MaxLimit      int           // the most that a page has, whatever is asked for; default as documented
	Late          time.Duration // the AppView shows a post that long after its making: every third one
	PinsFirst     bool          // the first post of an account stands at the head of its feed
	AnonReposts   bool          // reposts in a feed are without their address, as older AppViews have them
	BareCursor    bool          // the cursor of a feed is the time alone: what was made in the same instant is left out
	NoCursor      bool          // no cursor of a next page, though there is more
	RepeatsCursor bool          // the cursor of a list leads to the same page for ever
	Ring          int           // cursors of a list go round in a ring of that many pages; 0 = no
	Endless       bool          // the last page of a list comes again and again, each time with another cursor
	Shuffles      bool          // a list has no end: pages of its members, drawn by lot
	EmptyTail     bool          // a list goes on for ever with empty pages
	EmptyLists    bool          // no followers, whatever the count
	WrongSubject  bool          // the list of somebody else, who is named as its subject
	CountsTimes   float64       // counts are that many times the truth; 0 = 1

	IgnoresReverse bool // listRecords: the newest first, whatever is asked for
	IgnoresCursor  bool // listRecords: the first page, whatever is asked for
	EndsWithCursor bool // a cursor also with a last page that is not full, as the real PDS has it
	NoRecords      bool // the PDS has no listRecords: 501
	RefusesCursor  bool // 500 for every cursor of the AppView
	SearchClosed   bool // 403 for search, a page of HTML as from a CDN
	SearchPaging   bool // 403 for search with a cursor

	InvalidHandles bool   // handle.invalid for everybody
	Nulls          bool   // null in place of empty strings and lists
	HTML200        bool   // a page of HTML with status 200 for everything
	Object         bool   // an object where a list belongs
	Down           int    // a status of 5xx for everything; 503 with Retry-After: 30
	Redirect       string // everything is a 301 to that origin
	Truncated      bool   // half of the JSON
	Huge           int    // so many bytes of white space before each answer
	WrongOne       bool   // getProfile answers the profile of somebody else
	Garbage        bool   // every second element of a list is no object

	StreamRepeats bool // Jetstream sends each event twice
	StreamSilent  bool // and nothing any more after the replay
	StreamGarbage bool // between what it should send is what is no event
	StreamDrops   int  // every so many-th event is never sent; 0 = none
	StreamBreaks  int  // a connection ends after so many events; 0 = never
	StreamRefuses int  // a status for who connects, with Retry-After: 120
}
