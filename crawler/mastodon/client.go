package mastodon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// Options are the options of New.
type Options struct {
	Base string // "https://host[:port]", required; with a credential, http only on loopback
	// the host after the @ of local accounts, default the host of Base (see Server.Domain)
	Domain     string
	Do         service.Do         // required
	Credential service.Credential // default none
	Now        func() time.Time   // default time.Now
	MaxBody    int64              // bytes of one response; default 4 MiB
	MaxText    int                // bytes of the text of one post or profile; default 64 KiB
	// bytes of the server's own object, stored complete or not at all; default 64 KiB, <0 = never
	// stored
	MaxRaw int
}

// Client sends requests to one server. It is safe for concurrent use if Options.Do is.
type Client struct {
	s    *service.Client
	o    Options
	base string // without a slash at the end
	host string
}

// New returns a Client; its error joins every fault of o.
func New(o Options) (*Client, error) {
	s, err := service.New(service.Options{Service: name, Base: o.Base, Do: o.Do, Credential: o.Credential, Now: o.Now,
		MaxBody: o.MaxBody, MaxText: o.MaxText, MaxRaw: o.MaxRaw})
	if strings.ContainsAny(o.Domain, "/@ ") {
		err = errors.Join(err, fmt.Errorf("mastodon: domain %q is no host", o.Domain))
	}
	if err != nil {
		return nil, err
	}
	full := s.Options()
	o.Now, o.MaxBody, o.MaxText, o.MaxRaw = full.Now, full.MaxBody, full.MaxText, full.MaxRaw
	if o.Domain == "" {
		o.Domain = s.Host()
	}
	o.Domain = strings.ToLower(o.Domain)
	return &Client{s: s, o: o, base: s.Base(), host: s.Host()}, nil
}

// ask describes one request: operation, class, path and query.
type ask struct {
	op    string
	class service.Class
	path  string
	query url.Values
}

// paging reports whether Mastodon counts the request as paging (rack_attack.rb: page, min_id,
// max_id, since_id).
func (a ask) paging() bool {
	return a.query.Has("max_id") || a.query.Has("min_id") || a.query.Has("since_id") || a.query.Has("page")
}

// answer is a good response in JSON.
type answer struct {
	body []byte
	next string // the query of the Link to the next page, "" = none
	link bool   // there was a Link header with a page in it
}

// get sends a request and returns the JSON of the response, or a *Fault.
func (c *Client) get(ctx context.Context, a ask) (answer, error) {
	got, err := c.s.Get(ctx, service.Ask{Op: a.op, Class: a.class, Path: a.path, Query: a.query, Paging: a.paging()})
	if err != nil {
		return answer{}, err
	}
	next, link := nextPage(got.Header)
	return answer{body: got.Body, next: next, link: link}, nil
}

// nextPage returns the query of the Link with rel=next (RFC 8288). any reports whether there was a
// Link to another page. Only the query of the Link is used. Behind a proxy, servers get their own
// scheme, port and host wrong, and a credential must not go to another host.
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
		if rel == "next" && query == "" && len(u.RawQuery) <= service.MaxCursor {
			if q, err := url.ParseQuery(u.RawQuery); err == nil {
				q.Del("limit") // we set our own
				q.Del("access_token")
				query = q.Encode()
			}
		}
	}
	return query, any
}

// splitLinks cuts a Link header at the commas between its links, not at commas within <>.
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
