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

// Times of a Jetstream.
const (
	streamPing = 20 * time.Second // so that a connection without events does not look dead
	// the age that a connection must have before one with more accounts replaces it
	streamMore = time.Minute
	// without an event for this long, on a live connection, everything until then has arrived
	streamCaught   = 5 * time.Minute
	jetstreamKeeps = 36 * time.Hour // how far back it has events
	// how far back events of newly joined accounts are asked for, at most
	jetstreamBack = 15 * time.Minute
	// after a crash, the events of this time and those not applied come again
	cursorEvery = 30 * time.Second
)

// cursorRow is the prefix of the rows that hold the cursor of a stream: 8 bytes, big-endian,
// microseconds since 1970.
const cursorRow = "api.stream/"

// errMore ends a connection that must be replaced by one with more accounts.
var errMore = errors.New("social: more accounts are to be listened for")

// jetstream reads the Jetstream of Options. Its cursor is kept for this peer: all events before it
// were applied, or were about no account here. For an account that is new here, or comes from
// another peer, events are asked for since its last reading.
type jetstream struct {
	stream
	client *bluesky.Stream
	row    string

	// Under stream.mu.
	cursor int64     // of the last event that came
	kept   int64     // in the store
	alive  time.Time // time of the last pong
}

// Host returns the host of a WebSocket address, "" if the address is not valid.
func Host(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}

// newJetstream reads the stored cursor. If it cannot be read, the stream starts at the present.
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

// from returns the cursor to start at, so that newly joined accounts are reported from since on. 0
// means the cursor that the client has.
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
	// the Jetstream no longer has it
	if oldest := now.Add(-jetstreamKeeps).UnixMicro(); j.cursor > 0 && j.cursor < oldest {
		j.s.subscriptions.missed(j.of)
		j.cursor, at = oldest, oldest
	}
	return at
}

// dial connects within the rate budget.
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

// take passes an event to the subscription of its account.
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

// keep stores the cursor every cursorEvery until ctx ends.
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

// save stores the cursor, but not behind the oldest waiting event. After a crash the waiting events
// are delivered again.
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

// pinged is a WebSocket that sends a ping now and then. A pong counts as a sign of life.
type pinged struct {
	*websocket.Conn
	over  context.CancelFunc
	ended func()
}

// newPinged starts the pings. answered is called for each pong.
func newPinged(c *websocket.Conn, answered func()) *pinged {
	ctx, over := context.WithCancel(context.Background())
	c.SetPongHandler(func(string) error {
		answered()
		return c.SetReadDeadline(time.Now().Add(streamIdle))
	})
	ended := meanwhile(ctx, streamPing, func() {
		// if it fails, the reader notices
		_ = c.WriteControl(websocket.PingMessage, nil, time.Now().Add(streamPing))
	})
	return &pinged{c, over, ended}
}

// Close implements bluesky.Socket.
func (p *pinged) Close() error {
	p.over()
	err := p.Conn.Close()
	p.ended()
	return err
}
