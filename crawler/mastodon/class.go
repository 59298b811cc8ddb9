package mastodon

// Class is the kind of endpoint a request is for: limits may differ by it.
type Class string

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
