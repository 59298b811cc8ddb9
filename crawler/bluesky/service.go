package bluesky

import (
	"context"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// name is what faults and errors call this client.
const name = "bluesky"

// The classes.
const (
	ClassServer    service.Class = "server"   // what the server says of itself
	ClassIdentity  service.Class = "identity" // handles and DIDs
	ClassAccount   service.Class = "account"  // profiles
	ClassPosts     service.Class = "posts"    // the feed of an account
	ClassPost      service.Class = "post"     // posts by address
	ClassFollowers service.Class = "followers"
	ClassFollowing service.Class = "following"
	ClassSearch    service.Class = "search"
	ClassRecords   service.Class = "records" // of a PDS
	ClassRepo      service.Class = "repo"    // the state of an account's repository
)

// What the clients of all services share, under the names it has here.
type (
	// Call is one request, before it is made.
	Call = service.Call
	// Do makes a Call.
	Do = service.Do
	// Fault is one request that did not bring what was asked for. Its Code is the
	// error's name at AT Protocol.
	Fault = service.Fault
	// Word is why something was not had, or not whole.
	Word = service.Word
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
	// Reading says how a Feed is read.
	Reading = service.Reading
	// Timeline is one reading of a Feed.
	Timeline = service.Timeline[Post]
	// Batch is one page of a reading.
	Batch = service.Batch[Post]

	text        = service.Text
	count       = service.Count
	stamp       = service.Stamp
	list[T any] = service.List[T]
)

// The sides.
const (
	Followers = service.Followers
	Following = service.Following
)

// Through is a Do that asks with a fetch.Client: see service.Through.
func Through(c *fetch.Client, gate func(context.Context) error) Do { return service.Through(c, gate) }

// WordOf is the Word of a Fault, "" for any other error.
func WordOf(err error) Word { return service.WordOf(err) }

// DecodeMark reads what Mark.Encode gave. No bytes are the zero Mark.
func DecodeMark(b []byte) (Mark, error) { return service.DecodeMark(b) }

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
	FarEnough      = service.FarEnough
	NotTheirs      = service.NotTheirs
)
