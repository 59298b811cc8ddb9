package bluesky

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// Event is one line of a Jetstream.
type Event struct {
	DID    string
	At     int64 // microseconds since 1970, by the Jetstream's clock: the cursor
	Kind   Kind
	URI    string // of a record; "" for other kinds
	Rev    string
	Post   *Post   // of a new or edited record of Posts or Reposts
	Follow *Follow // of a record of Follows
	Active bool    // of an account: it is active
	Status string  // reason for inactive: takendown, suspended, deleted, deactivated
	Handle string  // of an identity: as claimed, "" = unknown
}

// Kind is the kind of an Event.
type Kind string

// The kinds.
const (
	Created  Kind = "create"
	Updated  Kind = "update"
	Deleted  Kind = "delete"
	Account  Kind = "account"  // has Active and Status
	Renaming Kind = "identity" // the Handle may have changed
)

// Socket is a WebSocket, for example *websocket.Conn of github.com/gorilla/websocket.
type Socket interface {
	ReadMessage() (kind int, line []byte, err error)
	WriteMessage(kind int, line []byte) error
	SetReadDeadline(t time.Time) error
	SetReadLimit(bytes int64)
	Close() error
}

// StreamOptions are the options of NewStream.
type StreamOptions struct {
	// "wss://host/subscribe"; ws only where Dial allows it
	Address string
	// required; must block private addresses
	Dial func(ctx context.Context, address string) (Socket, error)
	// at most 100; default Posts, Reposts, Follows
	Collections []string
	DIDs        []string // at most 10,000; default all accounts
	// the longest silence before the connection is closed; default 1 min
	Idle time.Duration
	// how much is read again after a reconnect; default 5 s, <0 = nothing
	Rewind  time.Duration
	MaxLine int64 // bytes of one event; default 1 MiB
	// bytes of the text of one post; default 64 KiB
	MaxText int
}

// Stream reads a Jetstream (v1) and delivers each event once. It is not safe for concurrent use.
type Stream struct {
	o      StreamOptions
	c      *Client // decodes records; sends no request
	cursor int64
	known  service.Known
}

// MaxDIDs is the most accounts of one Stream.
const MaxDIDs = 10_000

// helloDIDs is the most accounts in the URL, which servers accept up to a few kilobytes. More
// accounts are sent in a message.
const helloDIDs = 50

// textMessage is the opcode of a WebSocket text message (RFC 6455 section 11.8).
const textMessage = 1

// ErrIdle means that a connection was silent for StreamOptions.Idle.
var ErrIdle = errors.New("silent")

// NewStream returns a Stream that starts after cursor, in microseconds since 1970; 0 = now.
func NewStream(o StreamOptions, cursor int64) (*Stream, error) {
	u, err := url.Parse(o.Address)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.Host == "" || u.User != nil || o.Dial == nil ||
		cursor < 0 || len(o.Collections) > 100 || len(o.DIDs) > MaxDIDs || o.MaxLine < 0 {
		return nil, fmt.Errorf("bluesky: stream: address %q, cursor %d, %d collections, %d DIDs, dial %t", o.Address,
			cursor, len(o.Collections), len(o.DIDs), o.Dial != nil)
	}
	if len(o.Collections) == 0 {
		o.Collections = []string{Posts, Reposts, Follows}
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	if o.Rewind == 0 {
		o.Rewind = 5 * time.Second
	}
	if o.MaxLine == 0 {
		o.MaxLine = 1 << 20
	}
	if o.MaxText == 0 {
		o.MaxText = 64 << 10
	}
	return &Stream{o: o, cursor: cursor, c: &Client{o: service.Options{MaxText: o.MaxText, MaxRaw: 64 << 10}}}, nil
}

// Cursor returns the position in the stream. The caller stores it together with the result of the
// last event.
func (s *Stream) Cursor() int64 { return s.cursor }

// Follow changes the accounts of the next Run, none = all, and its start. cursor is in microseconds
// since 1970, 0 = from Cursor on. Events that were delivered before are not delivered again, as
// long as they are remembered.
func (s *Stream) Follow(dids []string, cursor int64) error {
	if len(dids) > MaxDIDs || cursor < 0 {
		return fmt.Errorf("bluesky: stream: %d DIDs, at most %d, from %d", len(dids), MaxDIDs, cursor)
	}
	if s.o.DIDs = dids; cursor > 0 {
		s.cursor = cursor
	}
	return nil
}

// hello returns the first message of a connection with many accounts, nil = none.
func (s *Stream) hello() ([]byte, error) {
	if len(s.o.DIDs) <= helloDIDs {
		return nil, nil
	}
	return json.Marshal(map[string]any{"type": "options_update", "payload": map[string]any{
		"wantedCollections": s.o.Collections, "wantedDids": s.o.DIDs, "maxMessageSizeBytes": s.o.MaxLine}})
}

// Run reads one connection from Cursor on and passes each new event to take, in order of arrival.
// It returns why the connection ended: the error of take or of ctx, ErrIdle, or another error. The
// caller decides when to retry. bad is the number of unreadable events.
func (s *Stream) Run(ctx context.Context, take func(Event) error) (bad int, err error) {
	q := url.Values{"wantedCollections": s.o.Collections}
	hello, err := s.hello()
	if err != nil {
		return 0, err
	}
	if hello != nil {
		q.Set("requireHello", "true")
	} else if len(s.o.DIDs) > 0 {
		q["wantedDids"] = s.o.DIDs
	}
	if s.cursor > 0 {
		q.Set("cursor", strconv.FormatInt(max(s.cursor-max(s.o.Rewind, 0).Microseconds(), 1), 10))
	}
	conn, err := s.o.Dial(ctx, s.o.Address+"?"+q.Encode())
	if err != nil {
		return 0, fmt.Errorf("bluesky: stream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // wakes the reader
	defer func() {
		if stop() {
			_ = conn.Close() // read only: nothing is lost
		}
	}()
	conn.SetReadLimit(s.o.MaxLine)
	if hello != nil {
		if err := conn.WriteMessage(textMessage, hello); err != nil {
			return 0, fmt.Errorf("bluesky: stream: %w", errors.Join(ctx.Err(), err))
		}
	}
	for {
		if err := conn.SetReadDeadline(time.Now().Add(s.o.Idle)); err != nil && ctx.Err() == nil {
			return bad, fmt.Errorf("bluesky: stream: %w", err)
		}
		_, line, err := conn.ReadMessage()
		var late interface{ Timeout() bool }
		switch {
		case ctx.Err() != nil:
			return bad, ctx.Err()
		case errors.As(err, &late) && late.Timeout():
			return bad, fmt.Errorf("bluesky: stream: %w for %v", ErrIdle, s.o.Idle)
		case err != nil:
			return bad, fmt.Errorf("bluesky: stream: %w", err)
		}
		e, ok := s.c.event(line)
		if !ok {
			bad++
			continue
		}
		if id := strings.Join([]string{e.DID, string(e.Kind), e.URI, e.Rev, strconv.FormatInt(e.At, 10)},
			" "); !s.known.Has(id) {
			if err := take(e); err != nil {
				return bad, err // take failed, so the event is delivered again
			}
			s.known.Add(id)
		}
		s.cursor = max(s.cursor, e.At)
	}
}

// event decodes one line.
func (c *Client) event(b []byte) (e Event, ok bool) {
	var w struct {
		DID    text `json:"did"`
		Micros text `json:"time_us"`
		Kind   text `json:"kind"`
		Commit struct {
			Rev        text            `json:"rev"`
			Operation  text            `json:"operation"`
			Collection text            `json:"collection"`
			Key        text            `json:"rkey"`
			CID        text            `json:"cid"`
			Record     json.RawMessage `json:"record"`
		} `json:"commit"`
		Account struct {
			Active service.Flag `json:"active"`
			Status text         `json:"status"`
		} `json:"account"`
		Identity struct {
			Handle text `json:"handle"`
		} `json:"identity"`
	}
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) {
		return Event{}, false
	}
	at, err := strconv.ParseInt(string(w.Micros), 10, 64)
	e = Event{DID: did(string(w.DID)), At: at}
	if err != nil || e.DID == "" || e.At <= 0 || e.At > 1<<53 {
		return Event{}, false
	}
	switch w.Kind {
	case "account":
		e.Kind, e.Active, e.Status = Account, w.Account.Active.Said == service.Yes,
			service.Line(string(w.Account.Status), 40)
		return e, w.Account.Active.Said != service.Unsaid
	case "identity":
		e.Kind, e.Handle = Renaming, handle(string(w.Identity.Handle))
		return e, true
	case "commit":
	default:
		return Event{}, false
	}
	record := URI{e.DID, string(w.Commit.Collection), string(w.Commit.Key)}
	e.Kind, e.URI, e.Rev = Kind(w.Commit.Operation), uri(text(record.String())), service.Ident(w.Commit.Rev)
	if e.URI == "" || e.Kind != Created && e.Kind != Updated && e.Kind != Deleted {
		return Event{}, false
	}
	if e.Kind == Deleted {
		return e, true
	}
	switch record.Collection {
	case Posts, Reposts:
		p, ok := c.record(record, w.Commit.CID, w.Commit.Record)
		e.Post = &p
		return e, ok
	case Follows:
		f, ok := followOf(record, w.Commit.Record)
		e.Follow = &f
		return e, ok
	}
	return e, true
}
