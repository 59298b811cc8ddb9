package twitter

import (
	"github.com/echo-node/echo-node/crawler/service"
)

// name is the name of this client in faults and errors.
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

// Types of package service, used with the types of this package.
type (
	// Edges reads the followers of an account, or the accounts that it follows, page by page.
	Edges = service.Edges[Profile]
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
