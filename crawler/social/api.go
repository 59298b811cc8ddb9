package social

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// api is a service as a visit asks it: what differs between services. Each visit has one of
// its own, which asks within the budgets of this peer (visit.within) and takes what comes
// into the visit. Its errors are those of the service's client.
type api interface {
	// enter opens the budget, and finds out what the server is where that matters and is not known.
	enter(ctx context.Context) error
	// most is how many accounts one call looks up, at least 1.
	most() int
	// called is what look calls the subject of a Key with that state, "" = it cannot look it up.
	called(k partition.Key, st *state) string
	// look asks for accounts, most of them at most, in one call: what its client says of each that it had, by what it
	// is called.
	look(ctx context.Context, names []string) (map[string]any, error)
	// counts says whether an account with so many posts, as claimed, has another claim when it has posted.
	counts(posts int64) bool
	// class is what the budget counts a look-up as.
	class() string
	// named returns the account that a name, the Key of the visit, leads to now. had is the answer of look about it.
	// If had is nil, named asks the service.
	named(ctx context.Context, had any) (partition.Key, error)
	// profile returns the account of the Key of the visit. had is the answer of look about it. If had is nil, profile
	// asks the service.
	profile(ctx context.Context, had any) (person, error)
	// feeds are those of the Key of the visit, to be read one after the other.
	feeds(ctx context.Context) ([]feed, error)
	// batch is how many kept posts one call looks at again; roundCalls or less: each is asked for alone.
	batch() int
	// lookAgain looks at kept posts of the Key, batch of them at most, in one call: it takes in what changed, and names
	// those that the answer does not have as they are kept.
	lookAgain(ctx context.Context, posts []store.Record) (absent []store.Record, err error)
	// lookAt looks at one, and takes it in if it changed. A Fault that is Gone says that it is not there.
	lookAt(ctx context.Context, post store.Record) error
	// resume goes on with a list where a Checkpoint was taken.
	resume(from service.Checkpoint) (edges, error)
}

// person is an account, whatever its service.
type person struct {
	as        any           // what its client said, as look says it; nil = it was not shown
	id        string        // at the server asked
	record    *store.Record // nil when nothing is shown of it
	posts     int64         // as claimed, <0 = not said
	lastPost  time.Time
	noIndex   bool
	suspended bool
	protected bool // its posts and lists are not for us
	moved     string
	movedTo   partition.Key
	edges     func(ctx context.Context, side service.Side) (edges, error) // begins with a list
}

// timeline is a reading of a feed: service.Timeline of any post.
type timeline interface {
	Done() bool
	Mark() service.Mark
	Listing() service.Listing
	Absent() []string
}

// feed is a timeline being read, and what can be asked of its posts.
type feed struct {
	timeline
	mark *service.Mark                              // where its Mark is kept
	page func(ctx context.Context) error            // reads the next page into the visit
	post func(ctx context.Context, id string) error // reads one post, by the id that the Mark has, into the visit
	uri  func(id string) string                     // the name of a post read before, "" = not known
	// empty says whether a reading that is Done brought no post at all; nil where the service says of each
	// post what became of it.
	empty func() bool
}

// edges is a list being read: service.Edges of any profile.
type edges interface {
	Done() bool
	Listing() service.Listing
	Checkpoint() service.Checkpoint
	accounts(ctx context.Context) ([]partition.Key, error) // the next page
}

// keyed is a profile of any service.
type keyed interface {
	Key() (partition.Key, error)
}

// edgesOf are the edges of one service.
type edgesOf[T keyed] struct{ *service.Edges[T] }

// listOf makes edges of what a client gave.
func listOf[T keyed](e *service.Edges[T], err error) (edges, error) {
	if err != nil {
		return nil, err
	}
	return edgesOf[T]{e}, nil
}

// accounts is of edges. Who has no Key is left out.
func (e edgesOf[T]) accounts(ctx context.Context) (keys []partition.Key, err error) {
	page, err := e.Next(ctx)
	for _, p := range page {
		if k, err := p.Key(); err == nil {
			keys = append(keys, k)
		}
	}
	return keys, err
}

// Caps of what a fetch may have in hand when it asks once more: with the page that comes it fits one commit.
const (
	fullPosts    = store.MaxPosts - 250
	fullAccounts = store.MaxListAccounts - 2000
)

// within is a Do that asks within the budget of p, with whichever of creds it chooses. of says
// what a call costs there.
func (v *visit) within(p *rateBudget, creds map[string]service.Credential, of func(service.Call) charge) service.Do {
	return func(ctx context.Context, call service.Call) (*fetch.Response, error) {
		listed := 0
		for _, l := range v.res.Lists {
			listed += len(l.Accounts)
		}
		if v.left <= 0 || len(v.res.Posts) > fullPosts || listed > fullAccounts {
			return nil, errEnough
		}
		v.asked = p.site
		if v.ended != nil { // the answer before
			v.ended()
			v.ended = nil
		}
		send := func(name string) (*fetch.Response, error) {
			req := call.Request
			creds[name].Sign(&req)
			v.left--
			v.used = name
			resp, err := v.s.o.Client.Get(ctx, req, func(ctx context.Context) error {
				if err := v.t.Gate(ctx); err != nil {
					return &gateError{err}
				}
				v.res.Reqs++
				return nil
			})
			if resp != nil {
				v.res.Bytes += resp.Bytes
				v.res.Asked = resp.Asked
				done, judging := v.t.Judging(ctx, 0) // answers are bounded by MaxBody
				if judging != nil {
					return resp, &gateError{judging}
				}
				v.ended = done
			}
			return resp, err
		}
		cost := of(call)
		cost.only = v.only
		resp, err := v.patient(ctx, p, cost, send)
		for range len(creds) - 1 { // of several tokens one is bad: the others have its share
			if err != nil || resp.Status != http.StatusUnauthorized || cost.only != "" || cost.person ||
				!p.reject(v.used) {
				break
			}
			v.reject(p.site, http.StatusText(resp.Status))
			if v.left <= 0 {
				return nil, errEnough
			}
			if v.ended != nil {
				v.ended()
				v.ended = nil
			}
			resp, err = v.patient(ctx, p, cost, send)
		}
		if err == nil {
			if v.had = v.had || resp.Status < 300; resp.Status < 300 && v.s.rejected.accepted(p.site, v.used) {
				p.accept(v.used)
			}
			v.st.Good = v.now
		}
		return resp, err
	}
}

// patient makes one call, and waits for it if that is not for long.
func (v *visit) patient(ctx context.Context, p *rateBudget, cost charge,
	send func(string) (*fetch.Response, error)) (*fetch.Response, error) {
	resp, err := p.ask(ctx, cost, send)
	for {
		var wait *budget.WaitError
		if !errors.As(err, &wait) || wait.At.IsZero() || wait.At.Sub(v.s.o.Now()) > patience {
			return resp, err
		}
		if err := fetch.Sleep(ctx, max(wait.At.Sub(v.s.o.Now()), time.Millisecond)); err != nil {
			return nil, err
		}
		resp, err = p.ask(ctx, cost, send)
	}
}

// isWait says whether err is that the budget has no room.
func isWait(err error) bool {
	var wait *budget.WaitError
	return errors.As(err, &wait)
}

// patience is how long a fetch waits for its next call: longer than the even gaps of a
// server that says nothing of its limits, and no worker is missed for that long.
const patience = 5 * time.Second

// query is what a search Key asks for.
func query(k partition.Key) string {
	_, q, _ := strings.Cut(string(k), "search/")
	return unescaped(q)
}
