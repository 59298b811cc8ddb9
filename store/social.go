package store

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Data of social services, in neutral terms: each source fills in what its service has. An
// account's Record (kind profile) has its name in Title, its self-description in Text, its handle
// in Author, and the places that it names in Declared. A post's Record has its text in Text,
// nothing in Title, and its author's handle in Author.

// The kinds of Record.
const (
	KindPage    = "page"
	KindProfile = "profile" // of an account Key
	KindPost    = "post"    // one post, Record.Post, of an account or of a timeline
	KindEdges   = "edges"   // of a list Key: statements about it; in an export, its edges
	KindMedia   = "media"   // a file of an account: its description, not its content
	KindGap     = "gap"     // only as a filter of an export
)

// Limits of what one Commit contains besides its record.
const (
	MaxPosts           = 1024     // of Commit.Posts
	MaxPostBytes       = 64 << 10 // of one, as JSON; larger ones are cut (Record.Cut)
	MaxPostText        = 32 << 10 // of its text, in bytes
	MaxPostURI         = 2 << 10  // of Record.Post
	MaxPostEdits       = 16       // stored earlier versions of one post
	MaxListPages       = 64       // of Commit.Lists
	MaxListAccounts    = 10000    // of all pages of a Commit
	MaxEdgeSpans       = 32       // stored periods of one account in a list
	MaxWalks           = 1024     // stored walks of one list
	MaxGaps            = 256      // of Commit.Gaps
	MaxKeyGaps         = 1024     // stored gaps of one Key, the latest
	MaxCheckpointBytes = 64 << 10 // of Commit.Checkpoint
)

// Social has the fields of a Record that pages do not have. Texts have no mark-up, times are UTC. A
// handle is as the service writes it, a Key is as ParseKey returns it.
type Social struct {
	// of the account or post at the requested server; it may differ on other servers and after an
	// edit
	ID string `json:"id,omitempty"`

	// Of a profile.
	URI       string        `json:"uri,omitempty"`    // its ActivityPub id or its DID
	Fields    []Field       `json:"fields,omitempty"` // its declared fields, in order
	CreatedAt *time.Time    `json:"created_at,omitempty"`
	LastPost  *time.Time    `json:"last_post_at,omitempty"` // as the service says
	MovedTo   partition.Key `json:"moved_to,omitempty"`
	// as claimed; absent if not claimed. Profiles: followers, following, posts, listed. Posts:
	// replies, boosts, quotes, likes, views
	Counts map[string]int64 `json:"counts,omitempty"`
	// bot, group, locked, protected, suspended, limited, memorial, verified, hides-lists,
	// sensitive, …, and opt-outs in their original words
	Flags []string `json:"flags,omitempty"`

	// Of a post.
	By       partition.Key `json:"by,omitempty"`      // the account that wrote it, if not Key
	Name     string        `json:"name,omitempty"`    // display name of its author
	Warning  string        `json:"warning,omitempty"` // in front of the text
	EditedAt *time.Time    `json:"edited_at,omitempty"`
	// URI of the post that it replies to; else the server's id, as "id:…"
	InReplyTo     string        `json:"in_reply_to,omitempty"`
	InReplyToUser partition.Key `json:"in_reply_to_user,omitempty"`
	// URI of the post that it boosts; Text is then empty
	BoostOf    string    `json:"boost_of,omitempty"`
	QuoteOf    string    `json:"quote_of,omitempty"`
	Tags       []string  `json:"tags,omitempty"` // lower case, without #
	Mentions   []Mention `json:"mentions,omitempty"`
	Media      []Media   `json:"media,omitempty"` // of a profile, its pictures
	Choices    []string  `json:"choices,omitempty"`
	Visibility string    `json:"visibility,omitempty"` // public, unlisted; others are not fetched
}

// Field is one line of a profile's table.
type Field struct {
	Name     string     `json:"name"`
	Value    string     `json:"value"`
	Verified *time.Time `json:"verified_at,omitempty"` // when the link in Value led back
}

// Mention is an account that a post names.
type Mention struct {
	Key  partition.Key `json:"key,omitempty"` // "" when only a handle is known
	Name string        `json:"name,omitempty"`
}

// Media is a file of a post or a profile. The file is not part of the record. It may be fetched
// under a Key of its own (Media.File).
type Media struct {
	Type   string `json:"type"` // image, video, gifv, audio, link (a card), avatar, header, unknown
	URL    string `json:"url"`
	Remote string `json:"remote,omitempty"` // URL on its home server, if that is another one
	Alt    string `json:"alt,omitempty"`    // its description
	// "sha256:hex" of the file if it was fetched; the store fills it in on reading
	Digest string `json:"digest,omitempty"`
}

// Edit is an earlier version of a post.
type Edit struct {
	SeenAt   time.Time  `json:"seen_at"`             // when it was last fetched
	EditedAt *time.Time `json:"edited_at,omitempty"` // as declared then
	Warning  string     `json:"warning,omitempty"`
	Text     string     `json:"text"`
}

// ListPage is a page of a follower or following list as it was read. A list is read in walks of one
// or more pages, over any number of commits. Accounts may come twice. An account that an earlier
// walk saw, and that a whole later walk did not see, is gone.
type ListPage struct {
	List     partition.Key   // SERVICE:ACCOUNT/followers or /following, of Commit.Key's account
	Walk     time.Time       // when this walk began; identifies the walk in all its pages
	At       time.Time       // when the page was read; zero = Commit.Now
	Accounts []partition.Key // those that cannot be stored are left out
	Claimed  int64           // the length that the service claims, -1 = none
	End      bool            // the walk ends with this page (which may be empty)
	Complete bool            // with End: the walk saw all of the list
	Why      string          // with End and not Complete: one word and the details, for people
}

// Walk is one reading of a list: a snapshot of it when Complete.
type Walk struct {
	List     partition.Key `json:"list"`
	Began    time.Time     `json:"began"`
	At       time.Time     `json:"at"`   // of its last page
	Seen     int64         `json:"seen"` // accounts in its pages
	Claimed  int64         `json:"claimed"`
	Ended    bool          `json:"ended,omitempty"`
	Complete bool          `json:"complete,omitempty"`
	Why      string        `json:"why,omitempty"`
}

// Edge is one account of a list. The account was seen from FirstSeen to LastSeen. GoneAt is the end
// of the first complete walk after that which did not see it, nil = none yet.
type Edge struct {
	To        partition.Key `json:"to"`
	FirstSeen time.Time     `json:"first_seen"`
	LastSeen  time.Time     `json:"last_seen"`
	GoneAt    *time.Time    `json:"gone_at,omitempty"`
	Spans     []Span        `json:"spans,omitempty"` // all periods, if several, in order
	Sure      string        `json:"sure"`            // SureWhole, SurePart or SureDoubted
}

// Values of Edge.Sure: how certain an Edge is.
const (
	SureWhole = "whole" // a complete walk saw it, and was not doubted later
	SurePart  = "part"  // only walks saw it that were not complete or have not ended
	// the newest walk after it was seen found that the list is, or may be, another account's
	SureDoubted = "doubted"
)

// Values of Walk.Why for a list that is, or may be, another account's.
const (
	WhyNotTheirs = "not-theirs"
	WhyDoubted   = "doubted"
)

// Span is a period in which an account was in a list.
type Span struct {
	First time.Time `json:"first_seen"`
	Last  time.Time `json:"last_seen"`
	Gone  time.Time `json:"gone_at,omitzero"`
}

// The values of Gap.What.
const (
	GapAsked       = "asked"       // all of the period was requested and received
	GapSkipped     = "skipped"     // not requested, because of the budget, the policy or an opt-out
	GapCut         = "cut"         // more than could be fetched: a limit of the service or ours
	GapLimited     = "limited"     // refused by a rate limit
	GapUnreachable = "unreachable" // the server did not respond
	GapExpired     = "expired"     // the server no longer has it
	GapIncomplete  = "incomplete"  // a list or timeline that is known to be incomplete
)

// Gap is one row of the ledger of what was requested from a source but not received. Key, From,
// What and About identify it. A gap that is committed again replaces the earlier one, so an outage
// grows in one row.
type Gap struct {
	Key    partition.Key `json:"key"`             // of the Commit, which sets it
	Source string        `json:"source"`          // name of the crawler.Source
	About  partition.Key `json:"about,omitempty"` // the Key that the gap is about, if another
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to,omitzero"` // zero = it continues
	What   string        `json:"what"`
	Reason string        `json:"reason,omitempty"`
	At     time.Time     `json:"at"`             // when it was found; zero = Commit.Now
	Peer   string        `json:"peer,omitempty"` // the peer that found it
	// ReadAt is when everything that still existed was read later; zero = never. Then only posts
	// that were deleted or edited in the meantime are missing from the period.
	ReadAt time.Time `json:"read_at,omitzero"`
}

// checkSocial returns an error if posts, lists or gaps of c cannot be stored.
func (c Commit) checkSocial() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	accounts := 0
	for _, p := range c.Lists {
		accounts += len(p.Accounts)
		if k := p.List.Kind(); k != partition.KindFollowers && k != partition.KindFollowing ||
			p.List.Account() != c.Key.Account() {
			bad("%.100q is no list of %.100q", p.List, c.Key)
		}
		if p.Walk.IsZero() {
			bad("a page of %.100q without its walk", p.List)
		}
	}
	for _, n := range []struct {
		what      string
		have, may int
	}{{"posts", len(c.Posts), MaxPosts}, {"list pages", len(c.Lists), MaxListPages},
		{"listed accounts", accounts, MaxListAccounts},
		{"gaps", len(c.Gaps), MaxGaps}, {"bytes of checkpoint", len(c.Checkpoint), MaxCheckpointBytes}} {
		if n.have > n.may {
			bad("%d %s, at most %d", n.have, n.what, n.may)
		}
	}
	for _, r := range c.Posts {
		if r.Key != c.Key || r.V != RecordVersion || r.Kind != KindPost {
			bad("post %.100q is a %q of %.100q, version %d", r.Post, r.Kind, r.Key, r.V)
		}
		if r.Post == "" || len(r.Post) > MaxPostURI || strings.IndexByte(r.Post, 0) >= 0 {
			bad("a post named %.100q, at most %d bytes", r.Post, MaxPostURI)
		}
	}
	return errors.Join(errs...)
}
