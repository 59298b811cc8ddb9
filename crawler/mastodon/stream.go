package mastodon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// ClassStream is the class of a connection to a stream.
const ClassStream service.Class = "stream"

// LocalStream is the path of the stream of a server's own accounts.
const LocalStream = "/api/v1/streaming/public/local"

// Event is one event of a stream about a post.
type Event struct {
	Kind EventKind
	ID   string // of the post, at this server
	Post *Post  // nil for Deleted
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds; the values are the server's own.
const (
	Made    EventKind = "update"
	Edited  EventKind = "status.update"
	Deleted EventKind = "delete"
)

// StreamOptions are the options of Client.Stream.
type StreamOptions struct {
	Open service.Opener // required
	// the stream of a hashtag, without #; "" = the public timeline of the server's own accounts
	Tag string
	// the longest time without a byte; a working server sends ":thump" every half minute. Default
	// 90 s
	Idle     time.Duration
	MaxLine  int // bytes of a line; default 1 MiB
	MaxEvent int // bytes of the data of an event; default 1 MiB
}

// Errors that end a connection and that callers branch on.
var (
	ErrIdle  = errors.New("silent")
	ErrLine  = errors.New("a line longer than the limit")
	ErrEvent = errors.New("an event longer than the limit")
)

// Stream reads one connection to a stream of server-sent events. It passes each event to take in
// the order of arrival, including repeated ones. A server has no cursor, so events between two
// connections are lost.
//
// Stream returns why the connection ended: the error of take or of ctx, ErrIdle, ErrLine, ErrEvent,
// io.EOF, a *service.Fault if the server refused, or another error. bad is the number of unreadable
// events. Events that are not about a post, and posts that are not public, are skipped. The
// credential is sent only to the server of Options.Base, which may differ from the accounts'
// server.
func (c *Client) Stream(ctx context.Context, o StreamOptions, take func(Event) error) (bad int, err error) {
	if o.Open == nil || o.Idle < 0 || o.MaxLine < 0 || o.MaxEvent < 0 {
		return 0, fmt.Errorf("mastodon: stream: open %t, idle %v, line %d, event %d", o.Open != nil, o.Idle, o.MaxLine,
			o.MaxEvent)
	}
	if o.Idle == 0 {
		o.Idle = 90 * time.Second
	}
	if o.MaxLine == 0 {
		o.MaxLine = 1 << 20
	}
	if o.MaxEvent == 0 {
		o.MaxEvent = 1 << 20
	}
	ask := service.Ask{Op: "stream", Class: ClassStream, Path: LocalStream}
	if o.Tag != "" {
		ask.Path, ask.Query = "/api/v1/streaming/hashtag", url.Values{"tag": {o.Tag}}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	silent := time.AfterFunc(o.Idle, func() { stop(fmt.Errorf("mastodon: stream: %w for %v", ErrIdle, o.Idle)) })
	defer silent.Stop()
	resp, err := c.s.Open(ctx, ask, "text/event-stream", o.Open)
	if err != nil {
		return 0, errors.Join(context.Cause(ctx), err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only: nothing is lost
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "text/event-stream" {
		return 0, c.s.Misshapen(ask.Op, "no stream of events: "+resp.Header.Get("Content-Type"))
	}
	bad, err = c.events(&lively{resp.Body, func() { silent.Reset(o.Idle) }}, o, take)
	if cause := context.Cause(ctx); cause != nil {
		return bad, cause
	}
	return bad, err
}

// lively is a reader that calls came when bytes arrive.
type lively struct {
	io.Reader
	came func()
}

// Read implements io.Reader.
func (l *lively) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.came()
	}
	return n, err
}

// events reads server-sent events (HTML, section 9.2.6) until r ends.
func (c *Client) events(r io.Reader, o StreamOptions, take func(Event) error) (bad int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, o.MaxLine)
	kind, data, said := "", []byte(nil), false
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if said {
				e, is, ok := c.event(kind, data)
				switch {
				case !ok:
					bad++
				case is:
					if err := take(e); err != nil {
						return bad, err
					}
				}
			}
			kind, data, said = "", nil, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			kind, said = service.Clip(string(value), 40), true
		case "data":
			if len(data)+len(value)+1 > o.MaxEvent {
				return bad, fmt.Errorf("mastodon: stream: %w of %d bytes", ErrEvent, o.MaxEvent)
			}
			if data != nil {
				data = append(data, '\n')
			}
			data, said = append(data, value...), true
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return bad, fmt.Errorf("mastodon: stream: %w of %d bytes", ErrLine, o.MaxLine)
	case err != nil:
		return bad, fmt.Errorf("mastodon: stream: %w", err)
	}
	return bad, fmt.Errorf("mastodon: stream: %w", io.EOF)
}

// event decodes one event. is reports whether it is about a post that is not private or direct. ok
// reports whether it could be read.
func (c *Client) event(kind string, data []byte) (e Event, is, ok bool) {
	switch e.Kind = EventKind(kind); e.Kind {
	case Made, Edited:
		p, ok := c.post(data, false, authors{})
		if !ok || p.ID == "" {
			return Event{}, false, false
		}
		e.ID, e.Post = p.ID, &p
		return e, p.Visibility != "private" && p.Visibility != "direct", true
	case Deleted:
		e.ID = service.Ident(service.Text(bytes.Trim(data, " \"")))
		return e, e.ID != "", e.ID != ""
	}
	return Event{}, false, kind != ""
}
