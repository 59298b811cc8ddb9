package bluesky

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// Options are the options of New.
type Options struct {
	Base    string           // an AppView, a PDS or a directory: "https://host[:port]", required
	Do      service.Do       // required
	Now     func() time.Time // default time.Now
	MaxBody int64            // bytes of one response; default 4 MiB
	MaxText int              // bytes of the text of one post or profile; default 64 KiB
	// bytes of the server's own object, stored complete or not at all; default 64 KiB, <0 = never
	// stored
	MaxRaw int
}

// Client sends requests to one server. It is safe for concurrent use if Options.Do is.
type Client struct {
	s *service.Client
	o service.Options
}

// New returns a Client; its error joins every fault of o.
func New(o Options) (*Client, error) {
	s, err := service.New(service.Options{Service: name, Base: o.Base, Do: o.Do, Now: o.Now,
		MaxBody: o.MaxBody, MaxText: o.MaxText, MaxRaw: o.MaxRaw, Judge: judge})
	if err != nil {
		return nil, err
	}
	return &Client{s: s, o: s.Options()}, nil
}

// query calls an XRPC method.
func (c *Client) query(ctx context.Context, op string, class service.Class, method string, q url.Values) ([]byte,
	error) {
	a, err := c.s.Get(ctx, service.Ask{Op: op, Class: class, Path: "/xrpc/" + method, Query: q,
		Paging: q.Has("cursor")})
	return a.Body, err
}

// read calls a method and decodes the response object into w.
func (c *Client) read(ctx context.Context, op string, class service.Class, method string, q url.Values, w any) error {
	b, err := c.query(ctx, op, class, method, q)
	if err != nil {
		return err
	}
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, w)) {
		return c.s.Misshapen(op, "")
	}
	return nil
}

// judge sets the Word of an XRPC error. Nearly all errors have status 400 and a name.
func judge(resp *fetch.Response, f *service.Fault) {
	var e struct {
		Error   text `json:"error"`
		Message text `json:"message"`
	}
	if !service.Object(resp.Body) || !service.Decoded(json.Unmarshal(resp.Body, &e)) || e.Error == "" {
		// the method is missing; a missing account or record is a 400
		if f.Status == http.StatusNotFound {
			f.Word = service.Unsupported
		}
		return
	}
	f.Code, f.Said = service.Line(string(e.Error), 100), service.Line(string(e.Message), 200)
	said := strings.ToLower(f.Said)
	switch f.Code {
	case "RecordNotFound", "RepoNotFound", "AccountNotFound", "ActorNotFound", "HandleNotFound", "NotFound",
		"AccountTakedown", "AccountDeactivated", "RepoTakendown", "RepoSuspended", "RepoDeactivated":
		f.Word = service.Gone
	case "BlockedActor", "BlockedByActor":
		f.Word = service.Closed
	case "AuthMissing", "AuthenticationRequired", "AuthRequired", "InvalidToken", "ExpiredToken":
		f.Word = service.NeedsToken
	case "MethodNotImplemented", "XRPCNotSupported":
		f.Word = service.Unsupported
	case "RateLimitExceeded":
		f.Word = service.Limited
	case "InvalidRequest":
		for _, words := range [...]string{"not found", "could not find", "could not locate", "unable to resolve",
			"has been suspended", "is deactivated"} {
			if f.Status == http.StatusBadRequest && strings.Contains(said, words) {
				f.Word = service.Gone
			}
		}
	}
}
