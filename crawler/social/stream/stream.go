package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	adapter "github.com/echo-node/echo-node/crawler/social/mastodon"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
)

// Of a connection to a stream.
const (
	streamFirst = time.Second // before the next, doubled each time in a row
	streamBrief = time.Minute // without a connection for no longer, a stream with a cursor is one that tells of all
	streamIdle  = time.Minute // without a sign of life
)

// Stream is how a stream stands that this peer reads.
type Stream struct {
	Address  string
	Since    time.Time // it is connected; zero = it is not
	Accounts int       // that it is about
	Connects int64     // connections tried since the start
	Events   int64
	Bad      int64     // of what came, that was no event, or none of its server; of connections that have ended
	Lost     int64     // events that no visit could take in time
	Last     time.Time // when the last event came
	Why      string    // why it is not connected
}

// stream keeps a connection to what tells of the accounts of a site.
type stream struct {
	s      *shared
	of     partition.Site
	stands time.Duration // a connection that lasted so long did not fail
	most   time.Duration // between two connections that failed

	mu sync.Mutex
	at Stream
}

// refusal is why a stream is not asked for again before Until.
type refusal struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// Error is why.
func (r *refusal) Error() string { return r.Why }

// Options of New.
type Options struct {
	Store   *db.Store
	Calls   *calls.Caller
	Servers *adapter.Servers
	// Dial connects to a Jetstream.
	Dial      func(ctx context.Context, address string) (*websocket.Conn, *http.Response, error)
	Jetstream string // its address; "" = none is read
	Streams   int    // of how many Mastodon-compatible servers the public stream is read
}

// shared is what all streams have.
type shared struct {
	o             Options
	subscriptions *Subscriptions
	posted        *Posted
}

// Streams are those that this peer reads. Safe for concurrent use.
type Streams struct {
	shared
	jet    *jetstream // nil = none is read
	locals *locals    // nil = of no server
}

// New reads no stream yet. Its errors are those of the store.
func New(o Options) (s *Streams, err error) {
	s = &Streams{shared: shared{o: o, subscriptions: newSubscriptions(o.Jetstream != "" || o.Streams > 0),
		posted: &Posted{}}}
	if o.Jetstream != "" {
		if s.jet, err = newJetstream(&s.shared); err != nil {
			return nil, err
		}
	}
	if o.Streams > 0 {
		s.posted.most = maxPosted
		s.locals = &locals{s: &s.shared, by: map[partition.Site]*local{}}
	}
	return s, nil
}

// Subscriptions are the accounts that are listened for.
func (s *Streams) Subscriptions() *Subscriptions { return s.subscriptions }

// Posted are the posts that streams may say of that they were deleted.
func (s *Streams) Posted() *Posted { return s.posted }

// Listen reads the streams there are, and has the accounts visited that they tell of, and those that waited for a
// token, until ctx ends. It returns the first failure of the store.
func (s *Streams) Listen(ctx context.Context, o Peer) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.wake(ctx, o) })
	if s.subscriptions.open {
		g.Go(func() error { return s.maintain(ctx, o) })
	}
	if j := s.jet; j != nil {
		g.Go(func() error { return j.run(ctx, o, j.connect) })
		g.Go(func() error { return j.keep(ctx) })
	}
	if s.locals != nil {
		g.Go(func() error { return s.locals.run(ctx, o) })
	}
	return g.Wait()
}

// maxShown is how many streams are shown.
const maxShown = 64

// Shown are those that this peer reads or would, to be shown: those of the most accounts.
func (s *Streams) Shown() (out []Stream) {
	if s.jet != nil {
		out = append(out, s.jet.shown())
	}
	if s.locals != nil {
		out = append(out, s.locals.shown()...)
	}
	return out[:min(len(out), maxShown)]
}

// shown is how t stands.
func (t *stream) shown() Stream {
	t.mu.Lock()
	at := t.at
	t.mu.Unlock()
	at.Accounts, at.Lost = t.s.subscriptions.counted(t.of)
	return at
}

// tried counts a connection.
func (t *stream) tried() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at.Connects++
}

// begun notes that there is one.
func (t *stream) begun(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at.Since, t.at.Why = now, ""
}

// ended notes why there is none.
func (t *stream) ended(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why = service.Line(why, 200); t.at.Since.IsZero() && t.at.Why == why {
		return
	}
	t.at.Since, t.at.Why = time.Time{}, why
	if t.at.Connects == 0 {
		return // none was begun
	}
	t.s.o.Calls.Logger.Info("a stream ended", "stream", t.at.Address, "why", t.at.Why)
}

// run connects for as long as there is somebody to listen for, until ctx ends, the store fails, or connect says with a
// *refusal that it is of no use.
func (t *stream) run(ctx context.Context, o Peer, connect func(context.Context, Peer) error) error {
	subs := t.s.subscriptions
	for wait := streamFirst; ; {
		for o.Hold() > 0 || subs.many(t.of) == 0 {
			if err := fetch.Sleep(ctx, max(o.Hold(), streamFirst)); err != nil {
				return err
			}
		}
		if err := fetch.Sleep(ctx, streamFirst); err != nil { // for those that come together
			return err
		}
		begun := t.s.o.Calls.Now()
		err := connect(ctx, o)
		var lost *calls.StoreError
		var full *budget.WaitError
		var no *refusal
		now := t.s.o.Calls.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &lost):
			return lost.Err
		case errors.As(err, &no):
			return no
		case errors.Is(err, errMore):
			wait = streamFirst
			continue
		}
		if now.Sub(begun) >= t.stands {
			wait = streamFirst
		}
		pause := wait + rand.N(wait/2)
		if wait = min(2*wait, t.most); errors.As(err, &full) && !full.Answer && full.At.After(now.Add(pause)) {
			pause = full.At.Sub(now)
		}
		t.ended(fetch.Reason(err))
		if pause > streamBrief {
			subs.disconnected(t.of)
		}
		if err := fetch.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// meanwhile does something every so often until ctx ends; wait returns when it is done no more.
func meanwhile(ctx context.Context, every time.Duration, do func()) (wait func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for fetch.Sleep(ctx, every) == nil {
			do()
		}
	}()
	return func() { <-over }
}

// streamRow is the name of the row that holds what is kept of a stream which these texts name.
func streamRow(prefix string, names ...string) string {
	return prefix + account.Digest([]byte(strings.Join(names, "\x00")))[len("sha256:"):][:32]
}

// streamed are the services of which a stream is read.
func (s *Streams) streamed() (out []string) {
	if s.jet != nil {
		out = append(out, "bluesky")
	}
	if s.locals != nil {
		out = append(out, "mastodon")
	}
	return out
}
