package mastodon

import (
	"github.com/echo-node/echo-node/crawler/service"
)

// name is the name of this client in faults and errors.
const name = "mastodon"

// The classes.
const (
	ClassInstance  service.Class = "instance" // the server's description of itself
	ClassAccount   service.Class = "account"  // profiles, by name or id, one or many
	ClassPosts     service.Class = "posts"    // posts of an account
	ClassPost      service.Class = "post"     // posts by id, their history
	ClassFollowers service.Class = "followers"
	ClassFollowing service.Class = "following"
	ClassTag       service.Class = "tag"
	ClassPublic    service.Class = "public"
	ClassSearch    service.Class = "search"
)

// Types of package service, used with the types of this package.
type (
	// Edges reads the followers of an account, or the accounts that it follows, page by page.
	Edges = service.Edges[Profile]

	trail       = service.Trail
	text        = service.Text
	flag        = service.Flag
	count       = service.Count
	stamp       = service.Stamp
	list[T any] = service.List[T]
)

// Limits of the stored values of one object. Longer values and lists are cut at their end.
const (
	maxFields   = 32  // of a profile
	maxMentions = 256 // of a post
	maxTags     = 128 // of a post
	maxMedia    = 64  // of a post
	maxLinks    = 100 // of a post or a profile
)

func misshapen(op string) *service.Fault {
	return &service.Fault{Service: name, Op: op, Word: service.Misshapen, FromAPI: true, Retry: -1}
}
