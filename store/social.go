package store

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// What a social service says, in the words of none: each source fills in what
// its service has, and leaves the rest out. An account's Record (kind profile)
// has its name in Title, what it says of itself in Text, its handle in Author,
// the places that it names in Declared. A post's has its text in Text, nothing in
// Title, and in Author the handle of who wrote it.

// The kinds of Record.
const (
	KindPage    = "page"
	KindProfile = "profile" // of an account Key
	KindPost    = "post"    // one post, Record.Post, of an account or of a timeline
	KindEdges   = "edges"   // of a list Key: the claims about it; in an export, its edges
	KindMedia   = "media"   // a file of an account: what it is, not what is in it
	KindGap     = "gap"     // only as a filter of an export
)

// Caps of what one Commit brings beside its record.
const (
	MaxPosts           = 1024     // of Commit.Posts
	MaxPostBytes       = 64 << 10 // of one, as JSON: above, its own object, links and text are cut (Record.Cut)
	MaxPostText        = 32 << 10 // of its text, in bytes
	MaxPostURI         = 2 << 10  // of Record.Post
	MaxPostEdits       = 16       // earlier versions that are kept of one post
	MaxListPages       = 64       // of Commit.Lists
	MaxListAccounts    = 10000    // of all pages of a Commit
	MaxEdgeSpans       = 32       // times that one account has come and gone in a list
	MaxWalks           = 1024     // readings of one list that are kept
	MaxGaps            = 256      // of Commit.Gaps
	MaxKeyGaps         = 1024     // of one Key that are kept, the latest
	MaxCheckpointBytes = 64 << 10 // of Commit.Checkpoint
)

// Social is what a Record has beside what pages have. Texts are without mark-up,
// times UTC; a handle is as the service writes it, a Key as ParseKey would.
type Social struct {
	// of the account or post at the server asked; it may differ elsewhere, and after an edit
	ID string `json:"id,omitempty"`

	// Of a profile.
	URI       string        `json:"uri,omitempty"`    // its name in its protocol (ActivityPub id, DID)
	Fields    []Field       `json:"fields,omitempty"` // what it declares, in order
	CreatedAt *time.Time    `json:"created_at,omitempty"`
	LastPost  *time.Time    `json:"last_post_at,omitempty"` // as the service says
	MovedTo   partition.Key `json:"moved_to,omitempty"`
	// as claimed; none where nothing is. Of profiles followers, following, posts, listed; of posts replies, boosts,
	// quotes, likes, views
	Counts map[string]int64 `json:"counts,omitempty"`
	// bot, group, locked, protected, suspended, limited, memorial, verified, hides-lists, sensitive, …, and opt-outs in
	// the words they were said with
	Flags []string `json:"flags,omitempty"`

	// Of a post.
	By       partition.Key `json:"by,omitempty"`      // the account that wrote it, when that is not Key
	Name     string        `json:"name,omitempty"`    // display name of its author
	Warning  string        `json:"warning,omitempty"` // in front of the text
	EditedAt *time.Time    `json:"edited_at,omitempty"`
	// URI of the post that it answers; else the server's id, as "id:…"
	InReplyTo     string        `json:"in_reply_to,omitempty"`
	InReplyToUser partition.Key `json:"in_reply_to_user,omitempty"`
	// URI of the post that it only passes on; Text is empty then
	BoostOf    string    `json:"boost_of,omitempty"`
	QuoteOf    string    `json:"quote_of,omitempty"`
	Tags       []string  `json:"tags,omitempty"` // lower case, without #
	Mentions   []Mention `json:"mentions,omitempty"`
	Media      []Media   `json:"media,omitempty"` // of a profile, its pictures
	Choices    []string  `json:"choices,omitempty"`
	Visibility string    `json:"visibility,omitempty"` // public, unlisted; private and direct are not fetched
}

// Field is one line of the table that a profile has.
type Field struct {
	Name     string     `json:"name"`
	Value    string     `json:"value"`
	Verified *time.Time `json:"verified_at,omitempty"` // the link in Value was seen to lead back
}

// Mention is an account that a post names.
type Mention struct {
	Key  partition.Key `json:"key,omitempty"` // "" when only a handle is known
	Name string        `json:"name,omitempty"`
}

// Media is a file of a post or a profile. The file is not part of the record; it
// may be fetched under a Key of its own (Media.File).
type Media struct {
	Type   string `json:"type"` // image, video, gifv, audio, link (a card), avatar, header, unknown
	URL    string `json:"url"`
	Remote string `json:"remote,omitempty"` // at its home server, when that is another
	Alt    string `json:"alt,omitempty"`    // its description
	// "sha256:hex" of the file where it was fetched; filled in by the store when it is read
	Digest string `json:"digest,omitempty"`
}

// Edit is an earlier version of a post.
type Edit struct {
	SeenAt   time.Time  `json:"seen_at"`             // when it was fetched last
	EditedAt *time.Time `json:"edited_at,omitempty"` // as declared then
	Warning  string     `json:"warning,omitempty"`
	Text     string     `json:"text"`
}

// ListPage is a piece of a follower or following list as it was read. A list is
// read in walks of one page or more, over any number of commits; accounts may
// come twice. What a whole walk did not meet, and an earlier one did, is gone.
type ListPage struct {
	List     partition.Key   // SERVICE:ACCOUNT/followers or /following, of the account of Commit.Key
	Walk     time.Time       // when this walk began; names it, the same in all its pages
	At       time.Time       // when the page was read; zero = Commit.Now
	Accounts []partition.Key // in it; those that cannot be stored are left out
	Claimed  int64           // how long the service says that the list is, -1 = it does not
	End      bool            // the walk has ended with this page (which may be empty)
	Complete bool            // with End: all of the list was met
	Why      string          // with End and not Complete: one word and what is known, for people
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

// Edge is one account of a list. FirstSeen to LastSeen is when it was met; GoneAt
// is the end of the first complete walk that missed it after that, nil = none yet.
type Edge struct {
	To        partition.Key `json:"to"`
	FirstSeen time.Time     `json:"first_seen"`
	LastSeen  time.Time     `json:"last_seen"`
	GoneAt    *time.Time    `json:"gone_at,omitempty"`
	Spans     []Span        `json:"spans,omitempty"` // when it came and went more than once: all of them, in order
	Sure      string        `json:"sure"`            // how sure it is: SureWhole, SurePart or SureDoubted
}

// How sure an Edge is.
const (
	SureWhole = "whole" // it was met by a reading of all of its list, which was not doubted later
	SurePart  = "part"  // only by readings that did not have all of it, or have not ended
	// the newest reading since it was met found that the list is, or may be, that of another account
	SureDoubted = "doubted"
)

// Words of Walk.Why of a list that is, or may be, that of another account.
const (
	WhyNotTheirs = "not-theirs"
	WhyDoubted   = "doubted"
)

// Span is a time in which an account was in a list.
type Span struct {
	First time.Time `json:"first_seen"`
	Last  time.Time `json:"last_seen"`
	Gone  time.Time `json:"gone_at,omitzero"`
}

// The words of Gap.What.
const (
	GapAsked       = "asked"       // all of the period was asked for and had
	GapSkipped     = "skipped"     // not asked for: the budget, the policy or the opt-out said so
	GapCut         = "cut"         // more was there than could be fetched: a cap of the service or of ours
	GapLimited     = "limited"     // refused by a rate limit
	GapUnreachable = "unreachable" // the server did not answer
	GapExpired     = "expired"     // the server does not have it any more
	GapIncomplete  = "incomplete"  // a list or timeline that is known not to be whole
)

// Gap is one row of the ledger of what was asked of a source and what was not
// had. Of one Key, From, What and About name it: one committed again takes the
// place of the one before, so that an outage grows in one row.
type Gap struct {
	Key    partition.Key `json:"key"`             // of the commit; filled in by it
	Source string        `json:"source"`          // name of the crawler.Source
	About  partition.Key `json:"about,omitempty"` // what it is of, when that is not Key
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to,omitzero"` // zero = it goes on
	What   string        `json:"what"`
	Reason string        `json:"reason,omitempty"`
	At     time.Time     `json:"at"`             // when it was found; zero = Commit.Now
	Peer   string        `json:"peer,omitempty"` // who found it
	// ReadAt is when all that was still there was read afterwards; zero = it was not. Of the period is missing only
	// what was deleted or edited meanwhile.
	ReadAt time.Time `json:"read_at,omitzero"`
}

// checkSocial finds what of c's posts, lists and gaps cannot be stored.
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
