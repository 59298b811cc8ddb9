package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// Class is the kind of endpoint of a request. Limits may differ by class. Each service has its own
// classes.
type Class string

// Call is one request before it is sent.
type Call struct {
	Class   Class
	Paging  bool // has a cursor or a page number
	Auth    bool // carries the credential
	Request fetch.Request
}

// Do sends a Call: fetch.Client.Get with the Gate of a Task. A response of any status is a
// Response; an error of Do is wrapped in a Fault. Do must not follow redirects: they are responses.
type Do func(ctx context.Context, c Call) (*fetch.Response, error)

// Through returns a Do that sends with c, behind gate (nil = none).
func Through(c *fetch.Client, gate func(context.Context) error) Do {
	return func(ctx context.Context, call Call) (*fetch.Response, error) { return c.Get(ctx, call.Request, gate) }
}

// Options are the options of New.
type Options struct {
	Service string // for faults and errors: mastodon, bluesky, twitter
	// "https://host[:port]", required; with a credential, http only on loopback
	Base       string
	Do         Do               // required
	Credential Credential       // default none
	Now        func() time.Time // default time.Now
	MaxBody    int64            // bytes of one response; default 4 MiB
	MaxText    int              // bytes of the text of one post or profile; default 64 KiB
	// bytes of the server's own object, stored complete or not at all; default 64 KiB, <0 = never
	// stored
	MaxRaw int
	// Judge corrects the Fault of a response with a bad status, by the rules of the service.
	// Default: the status decides.
	Judge func(resp *fetch.Response, f *Fault)
}

// Client sends requests to one server. It is safe for concurrent use if Options.Do is.
type Client struct {
	o    Options
	base string // without a slash at the end
	host string
}

// New returns a Client; its error joins every fault of o.
func New(o Options) (*Client, error) {
	var errs []error
	u, err := url.Parse(o.Base)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		errs = append(errs, fmt.Errorf("%s: base %q is not http[s]://host[:port]", o.Service, o.Base))
	case u.Scheme == "http" && o.Credential.Set() && !loopback(u.Hostname()):
		errs = append(errs, fmt.Errorf("%s: base %q: a credential is not sent over plain http", o.Service, o.Base))
	}
	if o.Do == nil {
		errs = append(errs, fmt.Errorf("%s: no Do", o.Service))
	}
	if o.MaxBody < 0 || o.MaxText < 0 {
		errs = append(errs, fmt.Errorf("%s: negative limit: MaxBody %d, MaxText %d", o.Service, o.MaxBody, o.MaxText))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxBody == 0 {
		o.MaxBody = 4 << 20
	}
	if o.MaxText == 0 {
		o.MaxText = 64 << 10
	}
	if o.MaxRaw == 0 {
		o.MaxRaw = 64 << 10
	}
	if o.Judge == nil {
		o.Judge = func(*fetch.Response, *Fault) {}
	}
	return &Client{o: o, base: u.Scheme + "://" + u.Host, host: strings.ToLower(u.Host)}, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}

// Options returns the options of New with defaults filled in.
func (c *Client) Options() Options { return c.o }

// Base returns the address of the server, without a slash at the end.
func (c *Client) Base() string { return c.base }

// Host returns the host of Base in lower case, with the port if there is one.
func (c *Client) Host() string { return c.host }

// Ask describes one request: operation, class, path and query.
type Ask struct {
	Op     string
	Class  Class
	Path   string
	Query  url.Values
	Paging bool
}

// Answer is a good response in JSON.
type Answer struct {
	Body   []byte
	Header http.Header
}

// Get sends a request and returns the JSON of the response, or a *Fault.
func (c *Client) Get(ctx context.Context, a Ask) (Answer, error) {
	call := Call{Class: a.Class, Paging: a.Paging, Auth: c.o.Credential.Set(),
		Request: c.request(a, "application/json")}
	call.Request.MaxBody = c.o.MaxBody
	resp, err := c.o.Do(ctx, call)
	if err != nil {
		return Answer{}, c.unreachable(a.Op, err)
	}
	if f := c.judge(resp, call.Auth); f != nil {
		return Answer{}, c.refused(a.Op, f, resp.Header)
	}
	return Answer{Body: bytes.TrimSpace(resp.Body), Header: resp.Header}, nil
}

// request returns the HTTP request for a, with the credential if there is one.
func (c *Client) request(a Ask, accept string) fetch.Request {
	r := fetch.Request{URL: c.base + a.Path, Accept: accept}
	if len(a.Query) > 0 {
		r.URL += "?" + a.Query.Encode()
	}
	if c.o.Credential.Set() {
		c.o.Credential.Sign(&r)
	}
	return r
}

// unreachable returns the Fault of a request without a response.
func (c *Client) unreachable(op string, err error) *Fault {
	return &Fault{Service: c.o.Service, Op: op, Word: Unreachable, Retry: -1, Err: err}
}

// refused completes f with the operation and with the Retry-After of the header.
func (c *Client) refused(op string, f *Fault, h http.Header) *Fault {
	f.Service, f.Op, f.Retry = c.o.Service, op, -1
	if wait, said := fetch.RetryAfter(h.Get("Retry-After"), c.o.Now()); said {
		f.Retry = wait
	}
	return f
}

// Misshapen returns the Fault of JSON that does not have the requested shape.
func (c *Client) Misshapen(op, said string) *Fault {
	return &Fault{Service: c.o.Service, Op: op, Word: Misshapen, FromAPI: true, Retry: -1, Said: Line(said, 200)}
}

// judge returns the Fault of a response, nil for JSON with a good status.
func (c *Client) judge(resp *fetch.Response, auth bool) *Fault {
	body := bytes.TrimSpace(resp.Body)
	isJSON := len(body) > 0 && (body[0] == '{' || body[0] == '[') && json.Valid(body)
	f := &Fault{Status: resp.Status, FromAPI: isJSON}
	if isJSON {
		f.Said = said(body)
	}
	switch s := resp.Status; {
	case s >= 200 && s < 300:
		switch {
		case resp.Truncated != "":
			f.Word = Cut
		case !isJSON:
			f.Word = NotJSON
		default:
			return nil
		}
		return f
	case s >= 300 && s < 400:
		f.Word, f.To = Moved, Clip(resp.Header.Get("Location"), 1<<10)
	case s == http.StatusUnauthorized, s == http.StatusUnprocessableEntity && !auth &&
		strings.Contains(strings.ToLower(f.Said), "authent"):
		f.Word = NeedsToken
	case s == http.StatusForbidden, s == http.StatusUnavailableForLegalReasons:
		f.Word = Closed
	case s == http.StatusNotFound, s == http.StatusGone:
		f.Word = Gone
	case s == http.StatusMethodNotAllowed, s == http.StatusNotImplemented:
		f.Word = Unsupported
	case s == http.StatusTooManyRequests:
		f.Word = Limited
	case s >= 500:
		f.Word = Down
	default:
		f.Word = Refused
	}
	c.o.Judge(resp, f)
	return f
}

// said returns the error message in a JSON response.
func said(body []byte) string {
	var e struct {
		Error       Text `json:"error"`
		Description Text `json:"error_description"`
		Message     Text `json:"message"`
		Detail      Text `json:"detail"`
		Title       Text `json:"title"`
	}
	if body[0] != '{' || !Decoded(json.Unmarshal(body, &e)) {
		return ""
	}
	for _, s := range [...]Text{e.Error, e.Description, e.Message, e.Detail, e.Title} {
		if s != "" {
			return Line(string(s), 200)
		}
	}
	return ""
}
