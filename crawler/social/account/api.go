package account

import (
	"context"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// API is the part that differs between services: one fetch uses it to ask the service about its
// Key. All calls stay within the rate budgets of this peer. The errors are those of the service's
// client and those of package calls.
type API interface {
	// Enter opens the rate budget. Where the kind of server matters and is not known yet, it finds
	// that out.
	Enter(ctx context.Context) error
	// Most is how many accounts one call of Look can ask for, at least 1.
	Most() int
	// Called returns the name under which Look asks for the subject of a Key with that state. ""
	// means that Look cannot ask for it.
	Called(k partition.Key, st *State) string
	// Look asks for accounts in one call, at most Most of them. The map has the client's answer for
	// each account that the service returned, by the name used in names.
	Look(ctx context.Context, names []string) (map[string]any, error)
	// Counts reports whether the claimed number of posts changes when an account with posts claimed
	// posts publishes another one.
	Counts(posts int64) bool
	// Class is the budget class of a look-up.
	Class() string
	// Named returns the account that a name (the Key of the fetch) leads to now. had is the result
	// of Look for it. If had is nil, Named asks the service.
	Named(ctx context.Context, had any) (partition.Key, error)
	// Profile returns the account of the Key of the fetch. had is the result of Look for it. If had
	// is nil, Profile asks the service.
	Profile(ctx context.Context, had any) (Person, error)
	// Feeds returns the feeds of the Key of the fetch, to be read one after the other. back is how
	// many posts are read of a feed that was never read before; 0 means all. The error *Inactive
	// says that there is no feed now.
	Feeds(ctx context.Context, back int) ([]Feed, error)
	// Whole notes in the State that everything that Feeds returned has been read.
	Whole()
	// Batch is how many kept posts one call can look at again. If it is at most LooksAlone, each
	// post is asked for alone.
	Batch() int
	// LookAgain looks at kept posts of the Key in one call, at most Batch of them. It returns the
	// posts found, also beside an error, and the kept posts that the answer does not have.
	LookAgain(ctx context.Context, posts []store.Record) (found []Post, absent []store.Record, err error)
	// LookAt looks at one kept post. A service.Fault with the word Gone says that it no longer
	// exists.
	LookAt(ctx context.Context, post store.Record) ([]Post, error)
	// Resume continues the reading of a list at a Checkpoint.
	Resume(from service.Checkpoint) (Edges, error)
	// FromStream converts a post that came from a stream. ok is false when the post is of another service
	// or must not be stored. had is the kept record of the post, nil if there is none. later says
	// that the event is newer than had.
	FromStream(post any, had *store.Record, later bool) (p Post, ok bool)
}

// LooksAlone is the largest API.Batch at which each kept post is asked for alone.
const LooksAlone = 4

// Inactive is the error for an account that shows no posts for now.
type Inactive struct{ Why string }

// Error returns the reason.
func (e *Inactive) Error() string { return e.Why }

// Person is an account of any service.
type Person struct {
	// the client's answer, as in the map of Look; nil = the account was not shown
	As        any
	ID        string        // the account's id at the server that was asked
	Record    *store.Record // nil if nothing of the account is shown
	Posts     int64         // as the profile claims; <0 = unknown
	LastPost  time.Time
	NoIndex   bool
	Suspended bool
	Protected bool // its posts and lists are not public
	Moved     string
	MovedTo   partition.Key
	Edges     func(ctx context.Context, side service.Side) (Edges, error) // starts to read a list
}

// Timeline is a feed being read: service.Timeline for any type of post.
type Timeline interface {
	Done() bool
	Mark() service.Mark
	Listing() service.Listing
	Absent() []string
}

// Feed is a timeline being read, with the questions about its posts. A page or post that is
// returned beside an error is valid.
type Feed interface {
	Timeline
	Kept() *service.Mark                      // where its Mark is stored
	Page(ctx context.Context) ([]Post, error) // the next page
	// one post, by its id in the Mark; no post and no error = it exists
	One(ctx context.Context, id string) ([]Post, error)
	// the URI of a post that was read before, "" = unknown
	URI(id string) string
	// Empty reports whether a finished reading (Done) returned no post at all. It is always false
	// for services that say of each post what became of it.
	Empty() bool
}

// Edges is a list being read: service.Edges for any type of profile.
type Edges interface {
	Done() bool
	Listing() service.Listing
	Checkpoint() service.Checkpoint
	Accounts(ctx context.Context) ([]partition.Key, error) // the next page
}

// Keyed is a profile of any service that can name its Key.
type Keyed interface {
	Key() (partition.Key, error)
}

// edgesOf adapts the edges of one service to Edges.
type edgesOf[T Keyed] struct{ *service.Edges[T] }

// ListOf converts the result of a client's list call to Edges.
func ListOf[T Keyed](e *service.Edges[T], err error) (Edges, error) {
	if err != nil {
		return nil, err
	}
	return edgesOf[T]{e}, nil
}

// Accounts implements Edges. It leaves out accounts that have no Key.
func (e edgesOf[T]) Accounts(ctx context.Context) (keys []partition.Key, err error) {
	page, err := e.Next(ctx)
	for _, p := range page {
		if k, err := p.Key(); err == nil {
			keys = append(keys, k)
		}
	}
	return keys, err
}

// Visit is one fetch of a Key, as an API sees it.
type Visit struct {
	Key   partition.Key
	State *State // progress of the Key; an API changes only the fields of its own service
	Now   time.Time
}

// Absent returns the kept posts that are not in found. id returns the id of a found post.
func Absent[P any](posts []store.Record, found []P, id func(P) string) (absent []store.Record) {
	there := map[string]bool{}
	for _, p := range found {
		there[id(p)] = true
	}
	return slices.DeleteFunc(slices.Clone(posts), func(r store.Record) bool { return there[r.ID] })
}

// IDs returns the ids of posts at their server.
func IDs(posts []store.Record) (out []string) {
	for _, p := range posts {
		out = append(out, p.ID)
	}
	return out
}
