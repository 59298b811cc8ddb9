package social

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Of a connection to a stream.
const (
	streamFirst  = time.Second // before the next, doubled each time in a row
	streamMost   = 5 * time.Minute
	streamStands = time.Minute      // a connection that lasted so long did not fail
	streamIdle   = time.Minute      // without an event or an answer to a ping
	streamPing   = 20 * time.Second // an account that keeps silent is no dead connection
	streamMore   = time.Minute      // so long a connection lasts before one that is about more accounts takes its place
	streamCaught = 5 * time.Minute  // without an event, on a connection that lives: all until then has come
)

// Of a Jetstream.
const (
	jetstreamKeeps = 36 * time.Hour   // what it has of the past
	jetstreamBack  = 15 * time.Minute // of which what happened to accounts that are new here is asked for, at most
	cursorEvery    = 30 * time.Second // a crash has so much told again, and what had not been taken
)

// cursorRow is what the names of rows begin with that hold how far a stream was taken: 8 bytes, big-endian, microseconds of 1970.
const cursorRow = "api.stream/"

// errMore ends a connection that another is to take the place of, about more accounts.
var errMore = errors.New("social: more accounts are to be listened for")

// Stream is how a stream stands that this peer reads.
type Stream struct {
	Address  string
	Since    time.Time // it is connected; zero = it is not
	Accounts int       // that it is about
	Connects int64     // connections tried since the start
	Events   int64
	Bad      int64     // of what came, that was no event; of connections that have ended
	Lost     int64     // events that no visit could take in time
	Last     time.Time // when the last event came
	Why      string    // why it is not connected
}

// jetstream reads the Jetstream of Options. Its cursor is kept for this peer: it is that before which everything was taken, or
// was about nobody here. Who comes here from another peer, or is new, is asked for from when it was read last.
type jetstream struct {
	s      *Source
	stream *bluesky.Stream
	row    string

	mu     sync.Mutex
	at     Stream
	cursor int64     // of the last event that came
	kept   int64     // in the store
	alive  time.Time // the last answer
}

// streamHost is the host of an address of a WebSocket, "" when it is none.
func streamHost(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}

func newJetstream(s *Source) (*jetstream, error) {
	j := &jetstream{s: s, row: cursorRow + digest([]byte(s.o.Jetstream))[len("sha256:"):][:32], at: Stream{Address: s.o.Jetstream, Why: "nobody to listen for"}}
	b, err := s.o.Store.Meta(j.row)
	switch {
	case errors.Is(err, store.ErrNotExist):
	case err != nil:
		return nil, err
	case len(b) == 8 && binary.BigEndian.Uint64(b) < 1<<53:
		j.cursor = int64(binary.BigEndian.Uint64(b))
		j.kept = j.cursor
	default:
		s.o.Logger.Warn("the cursor of a stream cannot be read: it begins now", "stream", s.o.Jetstream)
	}
	j.stream, err = bluesky.NewStream(bluesky.StreamOptions{Address: s.o.Jetstream, Dial: j.dial, Collections: []string{bluesky.Posts, bluesky.Reposts}, Idle: streamIdle}, j.cursor)
	return j, err
}

// Listen reads the streams there are, and has the accounts visited that they tell of, until ctx ends. It returns the first
// failure of the store.
func (s *Source) Listen(ctx context.Context, o Ears) error {
	if s.jet == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.tend(ctx, o) })
	g.Go(func() error { return s.jet.run(ctx, o) })
	g.Go(func() error { return s.jet.keep(ctx) })
	return g.Wait()
}

// Streams are those that this peer reads, to be shown.
func (s *Source) Streams() (out []Stream) {
	if s.jet != nil {
		s.jet.mu.Lock()
		at := s.jet.at
		s.jet.mu.Unlock()
		at.Accounts, at.Lost = s.ears.counted("bluesky")
		out = append(out, at)
	}
	return out
}

// run connects for as long as there is somebody to listen for.
func (j *jetstream) run(ctx context.Context, o Ears) error {
	ears := j.s.ears
	for wait := streamFirst; ; {
		for o.Hold() > 0 || ears.nobody("bluesky") {
			if err := fetch.Sleep(ctx, max(o.Hold(), streamFirst)); err != nil {
				return err
			}
		}
		if err := fetch.Sleep(ctx, streamFirst); err != nil { // for those that come together
			return err
		}
		begun := j.s.o.Now()
		err := j.connect(ctx, o)
		var lost *storeError
		var full *budget.WaitError
		now := j.s.o.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &lost):
			return lost.error
		case errors.Is(err, errMore):
			wait = streamFirst
			continue
		}
		if now.Sub(begun) >= streamStands {
			wait = streamFirst
		}
		pause := wait + rand.N(wait/2)
		if wait = min(2*wait, streamMost); errors.As(err, &full) && full.At.After(now.Add(pause)) {
			pause = full.At.Sub(now)
		}
		j.ended(err)
		if pause > streamStands {
			ears.disconnected("bluesky")
		}
		if err := fetch.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// ended notes why there is no connection.
func (j *jetstream) ended(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at.Since, j.at.Why = time.Time{}, service.Line(fetch.Reason(err), 200)
	j.s.o.Logger.Info("a stream ended", "stream", j.at.Address, "why", j.at.Why)
}

// connect reads one connection to its end.
func (j *jetstream) connect(ctx context.Context, o Ears) error {
	keys, from := j.s.ears.ask("bluesky", bluesky.MaxDIDs)
	dids := make([]string, len(keys))
	for i, k := range keys {
		dids[i] = nameOf(k)
	}
	if err := j.stream.Follow(dids, j.from(j.s.o.Now(), from)); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	more := time.NewTicker(streamMore)
	defer more.Stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-ctx.Done():
				return
			case <-more.C:
				if len(dids) < bluesky.MaxDIDs && j.s.ears.news("bluesky") {
					end(errMore)
				}
			}
		}
	}()
	bad, err := j.stream.Run(ctx, func(e bluesky.Event) error { return j.take(ctx, o, e) })
	cause := context.Cause(ctx)
	end(nil)
	<-over
	j.mu.Lock()
	j.at.Bad += int64(bad)
	j.mu.Unlock()
	if errors.Is(cause, errMore) {
		return errMore
	}
	return err
}

// from is the cursor to begin at, when those that were not asked for before are to be told of from since on; 0 = where the stream stands.
func (j *jetstream) from(now, since time.Time) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := int64(0)
	if !since.IsZero() {
		if back := now.Add(-jetstreamBack); since.Before(back) {
			since = back
		}
		if at = since.UnixMicro(); j.cursor > 0 && j.cursor < at {
			at = 0
		}
	}
	if oldest := now.Add(-jetstreamKeeps).UnixMicro(); j.cursor > 0 && j.cursor < oldest { // what it has no more
		j.s.ears.missed("bluesky")
		j.cursor, at = oldest, oldest
	}
	return at
}

// dial connects, within the budget.
func (j *jetstream) dial(ctx context.Context, address string) (bluesky.Socket, error) {
	p, err := j.s.purse(partition.Site("bluesky:"+streamHost(j.s.o.Jetstream)), "fediverse")
	if err != nil {
		return nil, err
	}
	var conn *websocket.Conn
	resp, err := p.ask(ctx, charge{class: classRead}, func(string) (*fetch.Response, error) {
		j.mu.Lock()
		j.at.Connects++
		j.mu.Unlock()
		c, resp, err := j.s.o.Dial(ctx, address)
		switch {
		case err == nil:
			conn = c
			return &fetch.Response{Status: http.StatusOK, Header: resp.Header}, nil
		case resp != nil: // refused by the server
			return &fetch.Response{Status: resp.StatusCode, Header: resp.Header}, nil
		}
		return nil, err
	})
	if err != nil {
		if conn != nil {
			_ = conn.Close() // nothing was read
		}
		return nil, err
	}
	if conn == nil {
		return nil, fmt.Errorf("status %d", resp.Status)
	}
	now := j.s.o.Now()
	j.s.ears.connected("bluesky", now)
	j.mu.Lock()
	j.at.Since, j.at.Why, j.alive = now, "", now
	j.mu.Unlock()
	return newPinged(conn, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.alive = j.s.o.Now()
	}), nil
}

// take has an event taken by a visit of its account.
func (j *jetstream) take(ctx context.Context, o Ears, e bluesky.Event) error {
	for wait := o.Hold(); wait > 0; wait = o.Hold() { // the volunteer's limits: no more is read meanwhile
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	now := j.s.o.Now()
	w := word{at: time.UnixMicro(e.At).UTC(), came: now, size: wordWeight}
	switch {
	case e.Kind == bluesky.Account, e.Kind == bluesky.Renaming:
		w.ends, w.tell = true, func(*visit) error { return nil }
	case e.Kind == bluesky.Deleted:
		w.tell = func(v *visit) error { return v.unsaid(e.URI, bluesky.KeyOf(e.URI)) }
	case e.Post != nil:
		w.size += len(e.Post.Raw) + len(e.Post.Text)
		w.tell = func(v *visit) error {
			b, ok := v.api.(*blueskyAPI)
			_, later, err := v.news(e.Post.ID)
			if ok && later && err == nil {
				b.post(*e.Post, bluesky.KeyOf(e.Post.ID))
			}
			return err
		}
	}
	o.Received(int64(w.size))
	if w.tell != nil {
		if err := j.s.ears.hear(ctx, keyOf("bluesky:"+e.DID), w); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at.Events++
	j.at.Last, j.cursor = now, max(j.cursor, e.At)
	return nil
}

// keep writes now and then how far all was taken, until ctx ends.
func (j *jetstream) keep(ctx context.Context) error {
	tick := time.NewTicker(cursorEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := j.save(); err != nil {
				return err
			}
		}
	}
}

func (j *jetstream) save() error {
	now := j.s.o.Now()
	j.mu.Lock()
	at := j.cursor
	if quiet := now.Add(-streamCaught); !j.at.Since.IsZero() && j.at.Since.Before(quiet) && j.at.Last.Before(quiet) && j.alive.After(quiet) && at < quiet.Add(-streamCaught).UnixMicro() {
		at = quiet.UnixMicro()
	}
	j.cursor = at
	j.mu.Unlock()
	if oldest := j.s.ears.oldest("bluesky"); !oldest.IsZero() {
		at = min(at, oldest.UnixMicro()-1)
	}
	if at <= 0 || at == j.kept {
		return nil
	}
	if err := j.s.o.Store.SetMeta(j.row, binary.BigEndian.AppendUint64(nil, uint64(at))); err != nil {
		return err
	}
	j.kept = at
	return nil
}

// pinged is a WebSocket that asks the other side now and then whether it is there: its answer counts as no silence.
type pinged struct {
	*websocket.Conn
	over  context.CancelFunc
	ended chan struct{}
}

func newPinged(c *websocket.Conn, answered func()) *pinged {
	ctx, over := context.WithCancel(context.Background())
	c.SetPongHandler(func(string) error {
		answered()
		return c.SetReadDeadline(time.Now().Add(streamIdle))
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(streamPing)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if c.WriteControl(websocket.PingMessage, nil, time.Now().Add(streamPing)) != nil {
					return // the reader finds out
				}
			}
		}
	}()
	return &pinged{c, over, ended}
}

// Close is of bluesky.Socket.
func (p *pinged) Close() error {
	p.over()
	err := p.Conn.Close()
	<-p.ended
	return err
}
