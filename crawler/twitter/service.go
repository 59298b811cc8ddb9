package twitter

import (
	"context"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// name is what faults and errors call this client.
const name = "twitter"

// The classes.
const (
	ClassUsers     service.Class = "users"
	ClassPosts     service.Class = "posts" // of a user
	ClassPost      service.Class = "post"  // by id
	ClassFollowers service.Class = "followers"
	ClassFollowing service.Class = "following"
	ClassSearch    service.Class = "search"
	ClassUsage     service.Class = "usage"
)

// What the clients of all services share, under the names it has here.
type (
	// Call is one request, before it is made.
	Call = service.Call
	// Do makes a Call.
	Do = service.Do
	// Credential is a bearer token.
	Credential = service.Credential
	// Fault is one request that did not bring what was asked for. Its Code is the
	// last part of the problem's type: resource-not-found, usage-capped, ...
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
	flag        = service.Flag
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

// NewCredential is the credential of that name: see service.NewCredential.
func NewCredential(name, token string) (Credential, error) { return service.NewCredential(name, token) }

// WordOf is the Word of a Fault, "" for any other error.
func WordOf(err error) Word { return service.WordOf(err) }

// DecodeMark reads what Mark.Encode gave. No bytes are the zero Mark.
func DecodeMark(b []byte) (Mark, error) { return service.DecodeMark(b) }

// The Words that concern this service: see package service.
const (
	Gone           = service.Gone
	NeedsToken     = service.NeedsToken
	Closed         = service.Closed
	Refused        = service.Refused
	Limited        = service.Limited
	Spent          = service.Spent
	Down           = service.Down
	Unreachable    = service.Unreachable
	Moved          = service.Moved
	NotJSON        = service.NotJSON
	Misshapen      = service.Misshapen
	Cut            = service.Cut
	CursorRepeats  = service.CursorRepeats
	NothingNew     = service.NothingNew
	EmptyPages     = service.EmptyPages
	MaxPages       = service.MaxPages
	EmptyButClaims = service.EmptyButClaims
	FewerThanClaim = service.FewerThanClaim
	ShowsNoMore    = service.ShowsNoMore
)
