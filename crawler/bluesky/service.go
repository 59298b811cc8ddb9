package bluesky

import (
	"github.com/echo-node/echo-node/crawler/service"
)

// name is the name of this client in faults and errors.
const name = "bluesky"

// The classes.
const (
	ClassServer    service.Class = "server"   // the server's description of itself
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

// Types of package service, used with the types of this package.
type (
	// Edges reads the followers of an account, or the accounts that it follows, page by page.
	Edges = service.Edges[Profile]
	// Timeline is one reading of a Feed.
	Timeline = service.Timeline[Post]
	// Batch is one page of a reading.
	Batch = service.Batch[Post]

	text        = service.Text
	count       = service.Count
	stamp       = service.Stamp
	list[T any] = service.List[T]
)
