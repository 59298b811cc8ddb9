package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Of a Jetstream.
const (
	streamPing = 20 * time.Second // an account that keeps silent is no dead connection
	// so long a connection lasts before one that is about more accounts takes its place
	streamMore     = time.Minute
	streamCaught   = 5 * time.Minute  // without an event, on a connection that lives: all until then has come
	jetstreamKeeps = 36 * time.Hour   // what it has of the past
	jetstreamBack  = 15 * time.Minute // of which what happened to accounts that are new here is asked for, at most
	cursorEvery    = 30 * time.Second // a crash has so much told again, and what had not been taken
)

// cursorRow is what the names of rows begin with that hold how far a stream was taken: 8 bytes, big-endian,
// microseconds of 1970.
const cursorRow = "api.stream/"

// errMore ends a connection that another is to take the place of, about more accounts.
var errMore = errors.New("social: more accounts are to be listened for")

// jetstream reads the Jetstream of Options. Its cursor is kept for this peer: it is that before which everything was
// taken, or was about nobody here. Who comes here from another peer, or is new, is asked for from when it was read
// last.
type jetstream struct {
	stream
	client *bluesky.Stream
	row    string

	// Under stream.mu.
	cursor int64     // of the last event that came
	kept   int64     // in the store
	alive  time.Time // the last answer
}

// Host is the host of an address of a WebSocket, "" when it is none.
func Host(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}

func newJetstream(s *shared) (*jetstream, error) {
	j := &jetstream{stream: stream{s: s, of: "bluesky:", stands: time.Minute, most: 5 * time.Minute,
		at: Stream{Address: s.o.Jetstream, Why: "nobody to listen for"}},
		row: streamRow(cursorRow, s.o.Jetstream)}
	b, err := s.o.Store.Meta(j.row)
	switch {
	case errors.Is(err, store.ErrNotExist):
	case err != nil:
		return nil, err
	case len(b) == 8 && binary.BigEndian.Uint64(b) < 1<<53:
		j.cursor = int64(binary.BigEndian.Uint64(b))
		j.kept = j.cursor
	default:
		s.o.Calls.Logger.Warn("the cursor of a stream cannot be read: it begins now", "stream", s.o.Jetstream)
	}
	j.client, err = bluesky.NewStream(bluesky.StreamOptions{Address: s.o.Jetstream, Dial: j.dial,
		Collections: []string{bluesky.Posts, bluesky.Reposts}, Idle: streamIdle}, j.cursor)
	return j, err
}

// connect reads one connection to its end.
func (j *jetstream) connect(ctx context.Context, o Peer) error {
	keys, from := j.s.subscriptions.ask(j.of, bluesky.MaxDIDs)
	dids := make([]string, len(keys))
	for i, k := range keys {
		dids[i] = account.NameOf(k)
	}
	if err := j.client.Follow(dids, j.from(j.s.o.Calls.Now(), from)); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	over := meanwhile(ctx, streamMore, func() {
		if len(dids) < bluesky.MaxDIDs && j.s.subscriptions.news(j.of) {
			end(errMore)
		}
	})
	bad, err := j.client.Run(ctx, func(e bluesky.Event) error { return j.take(ctx, o, e) })
	cause := context.Cause(ctx)
	end(nil)
	over()
	j.mu.Lock()
	j.at.Bad += int64(bad)
	j.mu.Unlock()
	if errors.Is(cause, errMore) {
		return errMore
	}
	return err
}

// from is the cursor to begin at, when those that were not asked for before are to be told of from since on; 0 = where
// the stream stands.
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
		j.s.subscriptions.missed(j.of)
		j.cursor, at = oldest, oldest
	}
	return at
}

// dial connects, within the budget.
func (j *jetstream) dial(ctx context.Context, address string) (bluesky.Socket, error) {
	p, err := j.s.o.Calls.Budget(partition.Site("bluesky:"+Host(j.s.o.Jetstream)), "fediverse")
	if err != nil {
		return nil, &calls.StoreError{Err: err}
	}
	var conn *websocket.Conn
	resp, err := p.Ask(ctx, calls.Charge{Class: calls.ClassRead}, func(string) (*fetch.Response, error) {
		j.tried()
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
	now := j.s.o.Calls.Now()
	j.s.subscriptions.connected(j.of, now)
	j.begun(now)
	j.mu.Lock()
	j.alive = now
	j.mu.Unlock()
	return newPinged(conn, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.alive = j.s.o.Calls.Now()
	}), nil
}

// take has an event taken by a visit of its account.
func (j *jetstream) take(ctx context.Context, o Peer, e bluesky.Event) error {
	if err := o.ready(ctx); err != nil {
		return err
	}
	now := j.s.o.Calls.Now()
	w := Event{At: time.UnixMicro(e.At).UTC(), came: now, size: eventWeight}
	switch {
	case e.Kind == bluesky.Account, e.Kind == bluesky.Renaming:
		w.Ends = true
	case e.Kind == bluesky.Deleted:
		w.Gone, w.URI, w.ID = true, e.URI, bluesky.KeyOf(e.URI)
	case e.Post != nil:
		w.size += len(e.Post.Raw) + len(e.Post.Text)
		w.Post, w.URI = *e.Post, e.Post.ID
	}
	o.Received(int64(w.size))
	if w.tells() {
		if err := j.s.subscriptions.receive(ctx, account.KeyOf("bluesky:"+e.DID), w); err != nil {
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
	for {
		if err := fetch.Sleep(ctx, cursorEvery); err != nil {
			return err
		}
		if err := j.save(); err != nil {
			return err
		}
	}
}

func (j *jetstream) save() error {
	now := j.s.o.Calls.Now()
	j.mu.Lock()
	at := j.cursor
	if quiet := now.Add(-streamCaught); !j.at.Since.IsZero() && j.at.Since.Before(quiet) && j.at.Last.Before(quiet) &&
		j.alive.After(quiet) && at < quiet.Add(-streamCaught).UnixMicro() {
		at = quiet.UnixMicro()
	}
	j.cursor = at
	j.mu.Unlock()
	if oldest := j.s.subscriptions.oldest(j.of); !oldest.IsZero() {
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
	ended func()
}

func newPinged(c *websocket.Conn, answered func()) *pinged {
	ctx, over := context.WithCancel(context.Background())
	c.SetPongHandler(func(string) error {
		answered()
		return c.SetReadDeadline(time.Now().Add(streamIdle))
	})
	ended := meanwhile(ctx, streamPing, func() {
		// when it fails, the reader finds out
		_ = c.WriteControl(websocket.PingMessage, nil, time.Now().Add(streamPing))
	})
	return &pinged{c, over, ended}
}

// Close is of bluesky.Socket.
func (p *pinged) Close() error {
	p.over()
	err := p.Conn.Close()
	p.ended()
	return err
}
