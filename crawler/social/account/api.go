package account

import (
	"context"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// API is a service as one fetch asks it about its Key: what differs between services. It asks within the budgets of
// this peer. Its errors are those of the service's client, and those of package calls.
type API interface {
	// Enter opens the budget, and finds out what the server is where that matters and is not known.
	Enter(ctx context.Context) error
	// Most is how many accounts one call looks up, at least 1.
	Most() int
	// Called is what Look calls the subject of a Key with that state, "" = it cannot look it up.
	Called(k partition.Key, st *State) string
	// Look asks for accounts, Most of them at most, in one call: what its client says of each that it had, by what it
	// is called.
	Look(ctx context.Context, names []string) (map[string]any, error)
	// Counts says whether an account with so many posts, as claimed, has another claim when it has posted.
	Counts(posts int64) bool
	// Class is what the budget counts a look-up as.
	Class() string
	// Named returns the account that a name, the Key of the fetch, leads to now. had is the answer of Look about it.
	// If had is nil, Named asks the service.
	Named(ctx context.Context, had any) (partition.Key, error)
	// Profile returns the account of the Key of the fetch. had is the answer of Look about it. If had is nil, Profile
	// asks the service.
	Profile(ctx context.Context, had any) (Person, error)
	// Feeds are those of the Key of the fetch, to be read one after the other; back is how many posts are read of one
	// that was never read, 0 = all. An *Inactive says that there are none now.
	Feeds(ctx context.Context, back int) ([]Feed, error)
	// Whole notes in the State that all that Feeds gave was read.
	Whole()
	// Batch is how many kept posts one call looks at again; LooksAlone or less: each is asked for alone.
	Batch() int
	// LookAgain looks at kept posts of the Key, Batch of them at most, in one call: those found, also beside an error,
	// and those that the answer does not have as they are kept.
	LookAgain(ctx context.Context, posts []store.Record) (found []Post, absent []store.Record, err error)
	// LookAt looks at one. A Fault that is Gone says that it is not there.
	LookAt(ctx context.Context, post store.Record) ([]Post, error)
	// Resume goes on with a list where a Checkpoint was taken.
	Resume(from service.Checkpoint) (Edges, error)
	// Told is a post as a stream told of it; ok is false when that is of another service, or is not to be taken in. had
	// is what is kept of the post, nil = nothing; later says that the stream told of it after that was fetched.
	Told(post any, had *store.Record, later bool) (p Post, ok bool)
}

// LooksAlone is the most of API.Batch at which each kept post is asked for alone.
const LooksAlone = 4

// Inactive says that an account shows no posts for now.
type Inactive struct{ Why string }

// Error is why.
func (e *Inactive) Error() string { return e.Why }

// Person is an account, whatever its service.
type Person struct {
	As        any           // what its client said, as Look says it; nil = it was not shown
	ID        string        // at the server asked
	Record    *store.Record // nil when nothing is shown of it
	Posts     int64         // as claimed, <0 = not said
	LastPost  time.Time
	NoIndex   bool
	Suspended bool
	Protected bool // its posts and lists are not for us
	Moved     string
	MovedTo   partition.Key
	Edges     func(ctx context.Context, side service.Side) (Edges, error) // begins with a list
}

// Timeline is a reading of a feed: service.Timeline of any post.
type Timeline interface {
	Done() bool
	Mark() service.Mark
	Listing() service.Listing
	Absent() []string
}

// Feed is a timeline being read, and what can be asked of its posts. A page, and a post, that comes with an error is
// good.
type Feed interface {
	Timeline
	Kept() *service.Mark                                // where its Mark is kept
	Page(ctx context.Context) ([]Post, error)           // the next page
	One(ctx context.Context, id string) ([]Post, error) // one post, by the id that the Mark has; none = it is there
	URI(id string) string                               // the name of a post read before, "" = not known
	// Empty says whether a reading that is Done brought no post at all; false where the service says of each
	// post what became of it.
	Empty() bool
}

// Edges is a list being read: service.Edges of any profile.
type Edges interface {
	Done() bool
	Listing() service.Listing
	Checkpoint() service.Checkpoint
	Accounts(ctx context.Context) ([]partition.Key, error) // the next page
}

// Keyed is a profile of any service.
type Keyed interface {
	Key() (partition.Key, error)
}

// edgesOf are the edges of one service.
type edgesOf[T Keyed] struct{ *service.Edges[T] }

// ListOf makes Edges of what a client gave.
func ListOf[T Keyed](e *service.Edges[T], err error) (Edges, error) {
	if err != nil {
		return nil, err
	}
	return edgesOf[T]{e}, nil
}

// Accounts is of Edges. Who has no Key is left out.
func (e edgesOf[T]) Accounts(ctx context.Context) (keys []partition.Key, err error) {
	page, err := e.Next(ctx)
	for _, p := range page {
		if k, err := p.Key(); err == nil {
			keys = append(keys, k)
		}
	}
	return keys, err
}

// Visit is one fetch of a Key, as an API is told of it.
type Visit struct {
	Key   partition.Key
	State *State // where the Key stands; an API changes what is of its service alone
	Now   time.Time
}

// Absent are those of kept posts that are not among what was found; id is of that.
func Absent[P any](posts []store.Record, found []P, id func(P) string) (absent []store.Record) {
	there := map[string]bool{}
	for _, p := range found {
		there[id(p)] = true
	}
	return slices.DeleteFunc(slices.Clone(posts), func(r store.Record) bool { return there[r.ID] })
}

// IDs are the ids of posts at their server.
func IDs(posts []store.Record) (out []string) {
	for _, p := range posts {
		out = append(out, p.ID)
	}
	return out
}
