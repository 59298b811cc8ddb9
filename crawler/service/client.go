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

// Class is the kind of endpoint a request is for: limits may differ by it. Each
// service has its own.
type Class string

// Call is one request, before it is made.
type Call struct {
	Class   Class
	Paging  bool // has a cursor or a page
	Auth    bool // carries the credential
	Request fetch.Request
}

// Do makes a Call: fetch.Client.Get with the Gate of a Task. An answer of any
// status is a Response; whatever error it returns comes back wrapped in a Fault.
// Redirects must not be followed: they are answers.
type Do func(ctx context.Context, c Call) (*fetch.Response, error)

// Through is a Do that asks with c, behind gate (nil = none).
func Through(c *fetch.Client, gate func(context.Context) error) Do {
	return func(ctx context.Context, call Call) (*fetch.Response, error) { return c.Get(ctx, call.Request, gate) }
}

// Options of New.
type Options struct {
	Service    string           // in faults and errors: mastodon, bluesky, twitter
	Base       string           // "https://host[:port]", required; http only on loopback when there is a credential
	Do         Do               // required
	Credential Credential       // default none
	Now        func() time.Time // default time.Now
	MaxBody    int64            // bytes of one answer; default 4 MiB
	MaxText    int              // bytes of the text of one post or profile; default 64 KiB
	// bytes of the server's own object, kept or left out whole; default 64 KiB, <0 = never kept
	MaxRaw int
	// Judge corrects the Fault that an answer without a good status is, by what the
	// service means by it. default: as its status says.
	Judge func(resp *fetch.Response, f *Fault)
}

// Client asks one server. Safe for concurrent use when Options.Do is.
type Client struct {
	o    Options
	base string // without a slash at the end
	host string
}

// New is a Client; it reports every fault of o at once.
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

// Options are those of New, the defaults filled in.
func (c *Client) Options() Options { return c.o }

// Base is the address of the server, without a slash at the end.
func (c *Client) Base() string { return c.base }

// Host is the host of Base, in lower case, with the port where there is one.
func (c *Client) Host() string { return c.host }

// Ask is one question: what for, where, with what.
type Ask struct {
	Op     string
	Class  Class
	Path   string
	Query  url.Values
	Paging bool
}

// Answer is a good answer in JSON.
type Answer struct {
	Body   []byte
	Header http.Header
}

// Get asks and gives the JSON that came, or a *Fault.
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

// request is a with the credential, if there is one.
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

// unreachable is the Fault of a question without an answer.
func (c *Client) unreachable(op string, err error) *Fault {
	return &Fault{Service: c.o.Service, Op: op, Word: Unreachable, Retry: -1, Err: err}
}

// refused is f, of an answer with that header, with what was asked and when to ask again.
func (c *Client) refused(op string, f *Fault, h http.Header) *Fault {
	f.Service, f.Op, f.Retry = c.o.Service, op, -1
	if wait, said := fetch.RetryAfter(h.Get("Retry-After"), c.o.Now()); said {
		f.Retry = wait
	}
	return f
}

// Misshapen is the Fault of JSON that is not what was asked for.
func (c *Client) Misshapen(op, said string) *Fault {
	return &Fault{Service: c.o.Service, Op: op, Word: Misshapen, FromAPI: true, Retry: -1, Said: Line(said, 200)}
}

// judge is the Fault that an answer is, nil for JSON with a good status.
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

// said is the error that a JSON answer names.
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
