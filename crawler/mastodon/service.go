package mastodon

import (
	"context"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// name is what faults and errors call this client.
const name = "mastodon"

// The classes.
const (
	ClassInstance  Class = "instance" // what the server says of itself
	ClassAccount   Class = "account"  // profiles, by name or id, one or many
	ClassPosts     Class = "posts"    // posts of an account
	ClassPost      Class = "post"     // posts by id, their history
	ClassFollowers Class = "followers"
	ClassFollowing Class = "following"
	ClassTag       Class = "tag"
	ClassPublic    Class = "public"
	ClassSearch    Class = "search"
)

// What the clients of all services share, under the names it has here.
type (
	// Class is the kind of endpoint a request is for.
	Class = service.Class
	// Credential is a bearer token of one server.
	Credential = service.Credential
	// Call is one request, before it is made.
	Call = service.Call
	// Do makes a Call.
	Do = service.Do
	// Fault is one request that did not bring what was asked for.
	Fault = service.Fault
	// Word is why something was not had, or not whole.
	Word = service.Word
	// Said is a yes, a no, or that nothing was said.
	Said = service.Said
	// Access is who may read something.
	Access = service.Access
	// Doubt is a question of a probe that was not answered.
	Doubt = service.Doubt
	// Obeys is what a server does with a parameter.
	Obeys = service.Obeys
	// Limits bound one list or one reading.
	Limits = service.Limits
	// Listing is how a list or a reading stands.
	Listing = service.Listing
	// Side is which end of an account's edges a list gives.
	Side = service.Side
	// Edges reads the followers of an account, or whom it follows, page by page.
	Edges = service.Edges[Profile]
	// Checkpoint is an Edges as bytes.
	Checkpoint = service.Checkpoint
	// Mark is how far a timeline has been read.
	Mark = service.Mark
	// Seen is a post that was read.
	Seen = service.Seen
	// Walk is a reading backwards under way.
	Walk = service.Walk

	trail       = service.Trail
	text        = service.Text
	flag        = service.Flag
	count       = service.Count
	stamp       = service.Stamp
	list[T any] = service.List[T]
)

// The Words that concern this service: see package service.
const (
	Gone           = service.Gone
	NeedsToken     = service.NeedsToken
	Closed         = service.Closed
	Unsupported    = service.Unsupported
	Refused        = service.Refused
	Limited        = service.Limited
	Down           = service.Down
	Unreachable    = service.Unreachable
	Moved          = service.Moved
	NotJSON        = service.NotJSON
	Misshapen      = service.Misshapen
	Cut            = service.Cut
	CursorRepeats  = service.CursorRepeats
	NothingNew     = service.NothingNew
	NoCursor       = service.NoCursor
	EmptyPages     = service.EmptyPages
	MaxPages       = service.MaxPages
	MaxItems       = service.MaxItems
	EmptyButClaims = service.EmptyButClaims
	FewerThanClaim = service.FewerThanClaim
	MoreThanClaim  = service.MoreThanClaim
	KnownPartOnly  = service.KnownPartOnly
	Hidden         = service.Hidden
	NotTheirs      = service.NotTheirs
	FarEnough      = service.FarEnough
)

// What is said, obeyed, and asked for: see package service.
const (
	Unsaid    = service.Unsaid
	No        = service.No
	Yes       = service.Yes
	Obeyed    = service.Obeyed
	Ignored   = service.Ignored
	Newest    = service.Newest
	Open      = service.Open
	Token     = service.Token
	Disabled  = service.Disabled
	Silent    = service.Silent
	Absent    = service.Absent
	Followers = service.Followers
	Following = service.Following
)

// Caps on what is kept of one object. What is longer is cut; lists are cut at
// their end.
const (
	maxFields   = 32  // of a profile
	maxMentions = 256 // of a post
	maxTags     = 128 // of a post
	maxMedia    = 64  // of a post
	maxLinks    = 100 // of a post or a profile
)

// Through is a Do that asks with a fetch.Client: see service.Through.
func Through(c *fetch.Client, gate func(context.Context) error) Do { return service.Through(c, gate) }

// NewCredential is the credential of that name: see service.NewCredential.
func NewCredential(name, token string) (Credential, error) { return service.NewCredential(name, token) }

// WordOf is the Word of a Fault, "" for any other error.
func WordOf(err error) Word { return service.WordOf(err) }

// DecodeMark reads what Mark.Encode gave. No bytes are the zero Mark.
func DecodeMark(b []byte) (Mark, error) { return service.DecodeMark(b) }

func misshapen(op string) *Fault {
	return &Fault{Service: name, Op: op, Word: Misshapen, FromAPI: true, Retry: -1}
}
