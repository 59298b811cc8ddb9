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

// Times of a connection to a stream.
const (
	streamFirst = time.Second // before the next connection; it doubles with each failure in a row
	// a stream with a cursor still counts as complete after a break of up to this
	streamBrief = time.Minute
	streamIdle  = time.Minute // without any sign of life the connection ends
)

// Stream is the status of a stream that this peer reads.
type Stream struct {
	Address  string
	Since    time.Time // when it was connected; zero = it is not
	Accounts int       // accounts that it reports
	Connects int64     // connections tried since the start
	Events   int64
	// messages of ended connections that were no event, or no event of the server
	Bad  int64
	Lost int64     // events that no visit could apply in time
	Last time.Time // when the last event came
	Why  string    // why it is not connected
}

// stream keeps the connection to a stream that reports the accounts of a site.
type stream struct {
	s      *shared
	of     partition.Site
	stands time.Duration // a connection that lasted this long counts as a success
	most   time.Duration // the longest wait between two connections that failed

	mu sync.Mutex
	at Stream
}

// refusal says why a stream is not asked for again before Until.
type refusal struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// Error returns the reason.
func (r *refusal) Error() string { return r.Why }

// Options of New.
type Options struct {
	Store   *db.Store
	Calls   *calls.Caller
	Servers *adapter.Servers
	// Dial connects to a Jetstream.
	Dial      func(ctx context.Context, address string) (*websocket.Conn, *http.Response, error)
	Jetstream string // its address; "" = none is read
	Streams   int    // the number of Mastodon-compatible servers whose public stream is read
}

// shared has what all streams share.
type shared struct {
	o             Options
	subscriptions *Subscriptions
	posted        *Posted
}

// Streams are the streams that this peer reads. Safe for concurrent use.
type Streams struct {
	shared
	jet    *jetstream // nil = none is read
	locals *locals    // nil = none are read
}

// New returns Streams that are not read yet. Its errors are those of the store.
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

// Subscriptions returns the accounts that this peer subscribes to.
func (s *Streams) Subscriptions() *Subscriptions { return s.subscriptions }

// Posted returns the posts for which a stream may report the deletion.
func (s *Streams) Posted() *Posted { return s.posted }

// Listen reads all streams until ctx ends. It has an account visited when a stream reports it. It
// also has Keys visited that waited for another token. It returns the first error of the store.
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

// Shown returns the status of the streams that this peer reads or would read, the ones with the
// most accounts first.
func (s *Streams) Shown() (out []Stream) {
	if s.jet != nil {
		out = append(out, s.jet.shown())
	}
	if s.locals != nil {
		out = append(out, s.locals.shown()...)
	}
	return out[:min(len(out), maxShown)]
}

// shown returns the status of t.
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

// begun notes that the stream is connected.
func (t *stream) begun(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at.Since, t.at.Why = now, ""
}

// ended notes why the stream is not connected.
func (t *stream) ended(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why = service.Line(why, 200); t.at.Since.IsZero() && t.at.Why == why {
		return
	}
	t.at.Since, t.at.Why = time.Time{}, why
	if t.at.Connects == 0 {
		return // there was no connection
	}
	t.s.o.Calls.Logger.Info("a stream ended", "stream", t.at.Address, "why", t.at.Why)
}

// run connects while there are accounts to subscribe to. It ends when ctx ends, the store fails, or
// connect returns a *refusal.
func (t *stream) run(ctx context.Context, o Peer, connect func(context.Context, Peer) error) error {
	subs := t.s.subscriptions
	for wait := streamFirst; ; {
		for o.Hold() > 0 || subs.many(t.of) == 0 {
			if err := fetch.Sleep(ctx, max(o.Hold(), streamFirst)); err != nil {
				return err
			}
		}
		// wait for accounts that join at the same time
		if err := fetch.Sleep(ctx, streamFirst); err != nil {
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

// meanwhile calls do at each interval until ctx ends. wait returns after the last call.
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

// streamRow returns the name of the row with the data of the stream that names describe.
func streamRow(prefix string, names ...string) string {
	return prefix + account.Digest([]byte(strings.Join(names, "\x00")))[len("sha256:"):][:32]
}

// streamed returns the services whose streams are read.
func (s *Streams) streamed() (out []string) {
	if s.jet != nil {
		out = append(out, "bluesky")
	}
	if s.locals != nil {
		out = append(out, "mastodon")
	}
	return out
}
