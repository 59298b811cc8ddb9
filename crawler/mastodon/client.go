package mastodon

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
	Base       string           // "https://host[:port]", required; http only on loopback when there is a credential
	Domain     string           // what stands behind the @ of local accounts, default the host of Base (see Server.Domain)
	Do         Do               // required
	Credential Credential       // default none
	Now        func() time.Time // default time.Now
	MaxBody    int64            // bytes of one answer; default 4 MiB
	MaxText    int              // bytes of the text of one post or profile; default 64 KiB
	MaxRaw     int              // bytes of the server's own object, kept or left out whole; default 64 KiB, <0 = never kept
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
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		errs = append(errs, fmt.Errorf("mastodon: base %q is not http[s]://host[:port]", o.Base))
	case u.Scheme == "http" && o.Credential.Set() && !loopback(u.Hostname()):
		errs = append(errs, fmt.Errorf("mastodon: base %q: a credential is not sent over plain http", o.Base))
	}
	if o.Do == nil {
		errs = append(errs, errors.New("mastodon: no Do"))
	}
	if o.MaxBody < 0 || o.MaxText < 0 {
		errs = append(errs, fmt.Errorf("mastodon: negative limit: MaxBody %d, MaxText %d", o.MaxBody, o.MaxText))
	}
	if strings.ContainsAny(o.Domain, "/@ ") {
		errs = append(errs, fmt.Errorf("mastodon: domain %q is no host", o.Domain))
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
	if o.Domain == "" {
		o.Domain = u.Host
	}
	o.Domain = strings.ToLower(o.Domain)
	return &Client{o: o, base: u.Scheme + "://" + u.Host, host: strings.ToLower(u.Host)}, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}

// ask is one question: what for, where, with what.
type ask struct {
	op    string
	class Class
	path  string
	query url.Values
}

// paging says whether Mastodon counts the request as one of paging
// (rack_attack.rb: page, min_id, max_id, since_id).
func (a ask) paging() bool {
	return a.query.Has("max_id") || a.query.Has("min_id") || a.query.Has("since_id") || a.query.Has("page")
}

// answer is a good answer in JSON.
type answer struct {
	body []byte
	next string // the query of the Link to the next page, "" = none
	link bool   // there was a Link header with a page in it
}

// get asks and gives the JSON that came, or a *Fault.
func (c *Client) get(ctx context.Context, a ask) (answer, error) {
	call := Call{Class: a.class, Paging: a.paging(), Request: fetch.Request{
		URL: c.base + a.path, Accept: "application/json", MaxBody: c.o.MaxBody,
	}}
	if len(a.query) > 0 {
		call.Request.URL += "?" + a.query.Encode()
	}
	if c.o.Credential.Set() {
		call.Auth = true
		c.o.Credential.Sign(&call.Request)
	}
	resp, err := c.o.Do(ctx, call)
	if err != nil {
		return answer{}, &Fault{Op: a.op, Word: Unreachable, Retry: -1, Err: err}
	}
	if f := judge(resp, call.Auth); f != nil {
		f.Op, f.Retry = a.op, -1
		if wait, said := fetch.RetryAfter(resp.Header.Get("Retry-After"), c.o.Now()); said {
			f.Retry = wait
		}
		return answer{}, f
	}
	next, link := nextPage(resp.Header)
	return answer{body: bytes.TrimSpace(resp.Body), next: next, link: link}, nil
}

// judge is the Fault that an answer is, nil for JSON with a good status.
func judge(resp *fetch.Response, auth bool) *Fault {
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
	case s >= 300 && s < 400:
		f.Word, f.To = Moved, clip(resp.Header.Get("Location"), 1<<10)
	case s == http.StatusUnauthorized, s == http.StatusUnprocessableEntity && !auth && strings.Contains(strings.ToLower(f.Said), "authent"):
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
	return f
}

// said is the error that a JSON answer names.
func said(body []byte) string {
	var e struct {
		Error       text `json:"error"`
		Description text `json:"error_description"`
		Message     text `json:"message"`
	}
	if body[0] != '{' || !decoded(json.Unmarshal(body, &e)) {
		return ""
	}
	for _, s := range [...]text{e.Error, e.Description, e.Message} {
		if s != "" {
			return line(string(s), 200)
		}
	}
	return ""
}

// maxCursor is the longest query of a Link that is gone on with.
const maxCursor = 2 << 10

// nextPage is the query of the Link with rel=next (RFC 8288), and whether there was
// any Link to another page. Only its query is used: behind a proxy servers get their own scheme, port and
// host wrong, and a credential goes to no other host.
func nextPage(h http.Header) (query string, any bool) {
	for _, part := range splitLinks(strings.Join(h.Values("Link"), ",")) {
		target, params, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(part), "<"), ">")
		if !ok {
			continue
		}
		rel := ""
		for p := range strings.SplitSeq(params, ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "rel") {
				rel = strings.ToLower(strings.Trim(value, `"`))
			}
		}
		u, err := url.Parse(target)
		if err != nil || rel != "next" && rel != "prev" {
			continue
		}
		any = true
		if rel == "next" && query == "" && len(u.RawQuery) <= maxCursor {
			if q, err := url.ParseQuery(u.RawQuery); err == nil {
				q.Del("limit") // ours
				q.Del("access_token")
				query = q.Encode()
			}
		}
	}
	return query, any
}

// splitLinks cuts a Link header at the commas between its links, not those within <>.
func splitLinks(h string) (parts []string) {
	if len(h) > 8<<10 {
		return nil
	}
	begin, inside := 0, false
	for i := range len(h) {
		switch h[i] {
		case '<':
			inside = true
		case '>':
			inside = false
		case ',':
			if !inside {
				parts = append(parts, h[begin:i])
				begin = i + 1
			}
		}
	}
	return append(parts, h[begin:])
}
