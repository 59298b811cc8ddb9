package mastodontest

import (
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Options of New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	Domain string           // of its people; default "m.test"
	People int              // default 40, at most 1,000,000
	Remote float64          // share of people that live on other servers; default 0.15, negative = none
	Start  time.Time        // when the story begins; default 2026-01-01
	Clock  func() time.Time // default: Start and thirty days, for ever
	// posts a day of the least active; the mean is about four times that; default 0.3, negative = nobody posts of
	// himself
	Rate   float64
	Quiet  bool              // nothing is edited, deleted, suspended, moved or unfollowed by itself
	IDs    IDs               // default Snowflakes
	Limits []Limit           // default none; see MastodonLimits
	Says   Headers           // default ISO
	After  After             // Retry-After of a 429; default NoAfter, as Mastodon
	Tokens map[string]string // credentials that are accepted, and the local user each belongs to; default none
	Lies   Lies
	// StreamPoll is how often a stream looks whether something has happened; default 2 ms. Every ten times of it says
	// that it lives.
	StreamPoll time.Duration
	// Software and Version are for nodeinfo and the instance; default mastodon 4.5.0.
	Software, Version string
}

// IDs is how ids are written.
type IDs int

// The forms of ids: decimal numbers in order of time; 26 characters in order of time,
// as GoToSocial's; hashes without order, as snac's.
const (
	Snowflakes IDs = iota
	ULIDs
	Hashes
)

// What limits are, as in package storytest.
type (
	// Limit is one bucket: at most Max requests in a window.
	Limit = storytest.Limit
	// Headers is how limits are told.
	Headers = storytest.Headers
	// After is the form of Retry-After in a 429.
	After = storytest.After
)

// The forms that limits are told in.
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

// MastodonLimits are those of Mastodon's rack_attack.rb.
func MastodonLimits() []Limit {
	return []Limit{
		{Name: "anonymous", Max: 300, Window: 5 * time.Minute},
		{Name: "token", Max: 300, Window: 5 * time.Minute, Auth: true},
		{Name: "anonymous paging", Max: 300, Window: 15 * time.Minute, Paging: true},
		{Name: "token paging", Max: 300, Window: 15 * time.Minute, Paging: true, Auth: true},
	}
}

// GoToSocialLimits is that of GoToSocial: all of the API together, for an
// address, from its first request on.
func GoToSocialLimits() []Limit {
	return []Limit{{Name: "all", Max: 300, Window: 5 * time.Minute, All: true, Rolling: true}}
}

// Lies are the ways in which a server does otherwise than Mastodon's documents say.
type Lies struct {
	IgnoresSince, IgnoresMin, IgnoresMax, IgnoresLimit bool
	// min_id gives the newest page after the post, as since_id does
	MinIsSince bool
	Ascending  bool // pages asked for with min_id come oldest first
	// the most that a page has, whatever is asked for; default Mastodon's
	MaxLimit int
	// a post is shown that long after its id was drawn: every third one
	Late time.Duration
	// the first post of an account stands at the head of each of its pages that no id was asked with
	PinsFirst bool

	RepeatsCursor bool    // the Link of a list leads to the same page for ever
	Ring          int     // cursors of a list go round in a ring of that many pages; 0 = no
	Endless       bool    // the last page of a list comes again and again, each time with another cursor
	Shuffles      bool    // a list has no end: pages of its members, drawn by lot
	EmptyTail     bool    // a list goes on for ever with empty pages
	NoLink        bool    // no Link header
	ForeignLink   bool    // Link names another host
	EmptyLists    bool    // [] for followers, whatever the count
	OwnLists      bool    // the list of whom the token's owner follows, whoever is asked for
	OwnFollowers  bool    // and the list of the owner's followers
	OwnCounts     bool    // and every profile has the owner's counts
	HidesLists    bool    // everybody hides their lists: [] and hide_collections
	CountsTimes   float64 // counts are that many times the truth; 0 = 1
	NoPosts       bool    // statuses_count is 0, as snac says
	Posted        int     // statuses_count is that, and last_status_at a day before the story; 0 = they are the truth

	ClosedAPI       bool // 401 for accounts and posts without a token, as GoToSocial
	ClosedTimelines int  // a status for public and tag timelines: 401, 403, 422; 0 = open
	EmptyTimelines  bool // 200 and [] for them, as Mastodon 4.5 with disabled feeds; the instance says so
	NoBatch         int  // a status for ?id[]=; 0 = answers it
	NoV2            bool // 404 for /api/v2/instance
	NoNodeinfo      bool
	NoSearch        bool // 401 for search without a token

	NumberIDs   bool   // ids are numbers
	Seconds     bool   // the times of posts are whole seconds
	EditRenames bool   // an edited post has another id, as at snac; it is answered under both, and its uri stays
	FullAccts   bool   // user@host also for its own people
	Nulls       bool   // null in place of empty strings, lists and false
	Lang        string // the language of every post
	Visibility  string // of every post; "" = public
	HTML200     bool   // a page of HTML with status 200 for everything
	HTML404     bool   // and HTML for what is not found
	Lingers     bool   // a post that is deleted is on no page, and is answered by its id still
	Object      bool   // an object where a list belongs
	Down        int    // a status of 5xx for everything; 503 with Retry-After: 30
	Redirect    string // everything is a 301 to that origin
	Truncated   bool   // half of the JSON
	Huge        int    // so many bytes of white space before each answer
	WrongOne    bool   // lookup answers the profile of somebody else
	Garbage     bool   // every second element of a list is no object

	StreamToken   bool   // 401 for streams without a token, as Mastodon since 4.2
	StreamRefuses int    // a status for streams: 404, 406, 503; 0 = open
	StreamHTML    bool   // 200 and a page of HTML for them
	StreamRepeats bool   // a stream sends each event twice
	StreamReplays bool   // after each event comes the one before the last once more, as it was
	StreamSilent  bool   // it sends nothing at all
	StreamGarbage bool   // between what it should send is what is no event
	StreamBreaks  int    // a connection ends in the middle of that event; 0 = never
	StreamHuge    int    // instead of each event a line of so many bytes
	StreamDrops   int    // every event of that number in a row is not sent; 0 = all are
	StreamAs      string // posts are said to be by people of that server
	StreamChatter int    // so many bytes of comments at each look whether something has happened
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
