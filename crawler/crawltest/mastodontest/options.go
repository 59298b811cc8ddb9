package mastodontest

import (
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Options configures New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	Domain string           // host of its people; default "m.test"
	People int              // default 40, at most 1,000,000
	Remote float64          // share of people on other servers; default 0.15, negative = none
	Start  time.Time        // when the events begin; default 2026-01-01
	Clock  func() time.Time // default: always thirty days after Start
	// Rate is the number of posts per day of the least active person, default 0.3. The mean is
	// about four times that. Negative = people post nothing by themselves.
	Rate   float64
	Quiet  bool              // no edits, deletions, suspensions, moves or unfollows by themselves
	IDs    IDs               // default Snowflakes
	Limits []Limit           // default none; see MastodonLimits
	Says   Headers           // default ISO
	After  After             // Retry-After of a 429; default NoAfter, as Mastodon
	Tokens map[string]string // accepted tokens, each with its local user; default none
	Lies   Lies
	// StreamPoll is how often a stream checks for new events; default 2 ms. At every tenth check
	// the stream sends a heartbeat.
	StreamPoll time.Duration
	// Software and Version are for nodeinfo and the instance; default mastodon 4.5.0.
	Software, Version string
}

// IDs is the form of IDs.
type IDs int

// The forms of IDs. Snowflakes are decimal numbers in order of time. ULIDs are 26 characters in
// order of time, as in GoToSocial. Hashes have no order, as in snac.
const (
	Snowflakes IDs = iota
	ULIDs
	Hashes
)

// Aliases for the types of limits in package storytest.
type (
	// Limit is one bucket: at most Max requests in a window.
	Limit = storytest.Limit
	// Headers is the form of the limit headers.
	Headers = storytest.Headers
	// After is the form of Retry-After in a 429.
	After = storytest.After
)

// The values of Headers and After.
const (
	ISO          = storytest.ISO
	Epoch        = storytest.Epoch
	Draft        = storytest.Draft
	DraftSeconds = storytest.DraftSeconds
	DraftLine    = storytest.DraftLine
	NoHeaders    = storytest.NoHeaders
	NoAfter      = storytest.NoAfter
	AfterSeconds = storytest.AfterSeconds
	AfterDate    = storytest.AfterDate
)

// MastodonLimits returns the limits in Mastodon's rack_attack.rb.
func MastodonLimits() []Limit {
	return []Limit{
		{Name: "anonymous", Max: 300, Window: 5 * time.Minute},
		{Name: "token", Max: 300, Window: 5 * time.Minute, Auth: true},
		{Name: "anonymous paging", Max: 300, Window: 15 * time.Minute, Paging: true},
		{Name: "token paging", Max: 300, Window: 15 * time.Minute, Paging: true, Auth: true},
	}
}

// GoToSocialLimits returns the limit of GoToSocial. It counts the whole API together, per address,
// and a window begins with the first request.
func GoToSocialLimits() []Limit {
	return []Limit{{Name: "all", Max: 300, Window: 5 * time.Minute, All: true, Rolling: true}}
}

// Lies are the ways in which a server differs from Mastodon's documentation.
type Lies struct {
	IgnoresSince, IgnoresMin, IgnoresMax, IgnoresLimit bool
	// MinIsSince: min_id returns the newest page after the post, as since_id does.
	MinIsSince bool
	Ascending  bool // pages for min_id are sorted oldest first
	// MaxLimit is the maximum page size, for every request; default Mastodon's.
	MaxLimit int
	// Late is the time between the creation of a post's ID and its appearance, for every third
	// post.
	Late time.Duration
	// PinsFirst: the first post of an account heads each of its pages that were requested without
	// an ID.
	PinsFirst bool

	RepeatsCursor bool    // the Link of a list always leads to the same page
	Ring          int     // cursors of a list form a ring of that many pages; 0 = no ring
	Endless       bool    // the last page of a list repeats, each time with a new cursor
	Shuffles      bool    // a list has no end: its pages are random members
	EmptyTail     bool    // a list continues with empty pages for ever
	NoLink        bool    // no Link header
	ForeignLink   bool    // the Link header names another host
	EmptyLists    bool    // [] for followers, for every count
	OwnLists      bool    // every following list is that of the token's owner
	OwnFollowers  bool    // every followers list is that of the token's owner
	OwnCounts     bool    // every profile has the counts of the token's owner
	HidesLists    bool    // all accounts hide their lists: [] and hide_collections
	CountsTimes   float64 // counts are multiplied by this; 0 = 1
	NoPosts       bool    // statuses_count is 0, as in snac
	// Posted, if not 0, is the statuses_count, and last_status_at is one day before Start.
	Posted int

	ClosedAPI       bool // 401 for accounts and posts without a token, as in GoToSocial
	ClosedTimelines int  // status for public and tag timelines: 401, 403, 422; 0 = open
	// EmptyTimelines: timelines are 200 and [], as in Mastodon 4.5 with disabled feeds. The
	// instance reports that.
	EmptyTimelines bool
	NoBatch        int  // status for ?id[]=; 0 = supported
	NoV2           bool // 404 for /api/v2/instance
	NoNodeinfo     bool
	NoSearch       bool // 401 for search without a token

	NumberIDs bool // IDs are JSON numbers
	Seconds   bool // times of posts are whole seconds
	// EditRenames: an edited post gets another ID, as in snac. Both IDs work, and its uri stays.
	EditRenames bool
	FullAccts   bool   // user@host also for local people
	Nulls       bool   // null instead of empty strings, lists and false
	Lang        string // language of every post
	Visibility  string // visibility of every post; "" = public
	HTML200     bool   // an HTML page with status 200 for everything
	HTML404     bool   // an HTML page for 404
	Lingers     bool   // a deleted post is on no page, but is still found by its ID
	Object      bool   // an object instead of a list
	Down        int    // a 5xx status for everything; 503 with Retry-After: 30
	Redirect    string // a 301 to that origin for everything
	Truncated   bool   // half of the JSON
	Huge        int    // bytes of white space before each response
	WrongOne    bool   // lookup returns the profile of another account
	Garbage     bool   // every second element of a list is not an object

	StreamToken   bool   // 401 for streams without a token, as in Mastodon since 4.2
	StreamRefuses int    // status for streams: 404, 406, 503; 0 = open
	StreamHTML    bool   // streams are 200 with an HTML page
	StreamRepeats bool   // a stream sends each event twice
	StreamReplays bool   // after each event, the event two before it is sent again
	StreamSilent  bool   // a stream sends nothing after its first line
	StreamGarbage bool   // a stream sends invalid events between the valid ones
	StreamBreaks  int    // the connection ends in the middle of this event; 0 = never
	StreamHuge    int    // instead of each event, a line of this many bytes
	StreamDrops   int    // every nth event is not sent; 0 = all are sent
	StreamAs      string // posts seem to be by people of this server
	StreamChatter int    // bytes of comments at each check for events
}

func (o Options) withDefaults() Options {
	if o.Domain == "" {
		o.Domain = "m.test"
	}
	if o.Software == "" {
		o.Software, o.Version = "mastodon", "4.5.0"
	}
	if o.StreamPoll == 0 {
		o.StreamPoll = 2 * time.Millisecond
	}
	return o
}
