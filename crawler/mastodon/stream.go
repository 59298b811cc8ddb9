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

// ClassStream is what connecting to a stream counts as.
const ClassStream service.Class = "stream"

// LocalStream is the path of the stream of a server's own accounts.
const LocalStream = "/api/v1/streaming/public/local"

// Event is what a stream tells of a post.
type Event struct {
	Kind EventKind
	ID   string // of the post, at this server
	Post *Post  // nil of Deleted
}

// EventKind is what happened.
type EventKind string

// What may happen; the words are the server's.
const (
	Made    EventKind = "update"
	Edited  EventKind = "status.update"
	Deleted EventKind = "delete"
)

// StreamOptions of Client.Stream.
type StreamOptions struct {
	Open service.Opener // required
	Tag  string         // the stream of a hashtag, without #; "" = the public timeline of the server's own accounts
	// without a byte, of which a living server sends some (":thump") each half minute; default 90 s
	Idle     time.Duration
	MaxLine  int // bytes of a line; default 1 MiB
	MaxEvent int // bytes of the data of an event; default 1 MiB
}

// The ends of a connection that its caller may want to know.
var (
	ErrIdle  = errors.New("silent")
	ErrLine  = errors.New("a line longer than the limit")
	ErrEvent = errors.New("an event longer than the limit")
)

// Stream reads one connection to a stream of server-sent events and gives take each event in the order
// they come, repeated ones too: a server has no cursor, so what is sent while there is no connection is not had.
// It returns why the connection ended: the error of take, of ctx, ErrIdle, ErrLine, ErrEvent, io.EOF, a *service.Fault
// when the server refused, or another. What is no event is counted in bad; kinds that are about no post, and
// posts that are not public, are passed over. The credential is sent to the server of Options.Base alone, which need
// not be that of the accounts.
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

// lively is a reader that says when bytes come.
type lively struct {
	io.Reader
	came func()
}

// Read is of io.Reader.
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

// event is one event; is says that it tells of a post for all, ok that it could be read.
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
