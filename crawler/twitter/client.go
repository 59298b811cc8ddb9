package twitter

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// Options of New.
type Options struct {
	Base       string     // "https://api.x.com", required
	Do         service.Do // required
	Credential service.Credential
	Spelling   Spelling         // of parameters, in which an endpoint is asked first; default Tweet
	Dialect    *Dialect         // what endpoints were found to take; default: one of this Client's own
	Posts      int              // that a page is asked for; default 100, at most that, at least 10
	Users      int              // the same of a list; default 1000, at most that
	Now        func() time.Time // default time.Now
	MaxBody    int64            // bytes of one answer; default 4 MiB
	MaxText    int              // bytes of the text of one post or profile; default 64 KiB
	// bytes of the server's own object, kept or left out whole; default 64 KiB, <0 = never kept
	MaxRaw int
}

// Spelling is which of the API's two words for a post parameters have.
type Spelling string

// The spellings: tweet.fields, and post.fields of 2026.
const (
	Tweet Spelling = "tweet"
	PostS Spelling = "post"
)

// Client asks the API. Safe for concurrent use when Options.Do is.
type Client struct {
	s    *service.Client
	o    service.Options
	word Spelling
	d    *Dialect

	postPage, edgePage int // posts and accounts a page is asked for
}

// New is a Client; it reports every fault of o at once.
func New(o Options) (*Client, error) {
	s, err := service.New(service.Options{Service: name, Base: o.Base, Do: o.Do, Credential: o.Credential, Now: o.Now,
		MaxBody: o.MaxBody, MaxText: o.MaxText, MaxRaw: o.MaxRaw, Judge: judge})
	if err != nil {
		return nil, err
	}
	if o.Spelling == "" {
		o.Spelling = Tweet
	}
	if o.Dialect == nil {
		o.Dialect = &Dialect{}
	}
	if o.Posts == 0 {
		o.Posts = postPage
	}
	if o.Users == 0 {
		o.Users = edgePage
	}
	return &Client{s, s.Options(), o.Spelling, o.Dialect, min(max(o.Posts, 10), postPage),
		min(max(o.Users, 1), edgePage)}, nil
}

// Absence is why one of those asked for is not in an answer.
type Absence struct {
	ID   string       // as it was asked for: an id or a name
	Word service.Word // Gone, or Closed: it is there and not shown to who asks
	Said string       // by the API, at most 200 bytes; "" = it was left out without a word
	// Suspended says that the API said so; that is Gone for as long as it lasts.
	Suspended bool
}

// wireProblem is one of errors[], or what a refused request answers.
type wireProblem struct {
	Type   text  `json:"type"`
	Title  text  `json:"title"`
	Detail text  `json:"detail"`
	Value  text  `json:"value"`
	Asked  text  `json:"resource_id"`
	Code   count `json:"code"` // of API 1.1
	Said   text  `json:"message"`
	// Parameters are those that a refusal is about.
	Parameters json.RawMessage `json:"parameters"`
}

// code is the last part of a problem's type.
func (w wireProblem) code() string {
	s := service.Line(string(w.Type), service.MaxName)
	return s[strings.LastIndexByte(s, '/')+1:]
}

func (w wireProblem) said() string {
	for _, t := range [...]text{w.Detail, w.Said, w.Title} {
		if t != "" {
			return service.Line(string(t), 200)
		}
	}
	return ""
}

// absence is what w says of one that was asked for.
func (w wireProblem) absence() Absence {
	id := w.Asked
	if w.Value != "" {
		id = w.Value
	}
	a := Absence{ID: service.Ident(id), Word: service.Gone, Said: w.said(),
		Suspended: strings.Contains(strings.ToLower(string(w.Detail)), "suspended")}
	if w.code() == "not-authorized-for-resource" {
		a.Word = service.Closed
	}
	return a
}

// envelope is what every answer of the API has.
type envelope struct {
	Data     json.RawMessage   `json:"data"`
	Errors   list[wireProblem] `json:"errors"`
	Includes struct {
		Users  list[wireUser]        `json:"users"`
		Tweets list[json.RawMessage] `json:"tweets"`
		Posts  list[json.RawMessage] `json:"posts"`
		Media  list[wireMedia]       `json:"media"`
	} `json:"includes"`
	Meta struct {
		Next  text  `json:"next_token"`
		Count count `json:"result_count"`
	} `json:"meta"`
}

// get asks for a path with q, and for all that is read of users, or of posts. An answer without data in which all is
// refused is the Fault that its first problem is, where one thing was asked for. An endpoint that refuses a parameter
// is asked again without it at once, maxTries times at most; each is a request of its own for Options.Do.
func (c *Client) get(ctx context.Context, op string, class service.Class, path string, q url.Values,
	posts bool) (e envelope, err error) {
	at := string(class) + " " + op
	var a service.Answer
	for try := 1; ; try++ {
		word, fields := c.d.ask(at, c.word, posts, c.o.Now())
		full := maps.Clone(q)
		if full == nil {
			full = url.Values{}
		}
		for param, values := range fields {
			full.Set(param, strings.Join(values, ","))
		}
		a, err = c.s.Get(ctx, service.Ask{Op: op, Class: class, Path: path, Query: full,
			Paging: q.Has("pagination_token") || q.Has("next_token") || q.Has("until_id")})
		if err == nil {
			c.d.took(at, word)
			break
		}
		var f *service.Fault
		if !errors.As(err, &f) || f.Status != http.StatusBadRequest || f.Word != service.Refused ||
			!c.d.refused(at, word, fields, q, f.Names, c.o.Now()) || try == maxTries {
			return e, err
		}
	}
	if !service.Object(a.Body) || !service.Decoded(json.Unmarshal(a.Body, &e)) || len(e.Data) == 0 && !e.Errors.Is &&
		e.Meta.Count.N() < 0 {
		return e, c.s.Misshapen(op, "")
	}
	return e, nil
}

// one is e, or the Fault that it is when it has no data.
func (c *Client) one(op string, e envelope) (envelope, error) {
	if len(e.Data) > 0 && string(e.Data) != "null" || len(e.Errors.All) == 0 {
		return e, nil
	}
	w := e.Errors.All[0]
	return e, &service.Fault{Service: name, Op: op, Word: w.absence().Word, Status: http.StatusOK, Code: w.code(),
		Said: w.said(), FromAPI: true, Retry: -1}
}

// judge says what a refused request means.
func judge(resp *fetch.Response, f *service.Fault) {
	var w struct {
		wireProblem
		Errors list[wireProblem] `json:"errors"`
	}
	if !service.Object(resp.Body) || !service.Decoded(json.Unmarshal(resp.Body, &w)) {
		return
	}
	f.Names = blamed(resp, w.wireProblem, w.Errors)
	p := w.wireProblem
	// says which of the parameters
	if len(w.Errors.All) > 0 && w.Errors.All[0].said() != "" && (p.said() == "" || len(f.Names) > 0) {
		p = w.Errors.All[0]
	}
	if f.Said = p.said(); w.code() != "" {
		f.Code = w.code()
	}
	switch f.Code {
	case "usage-capped": // the money of the month: no wait of a quarter of an hour helps
		f.Word = service.Spent
	case "resource-not-found":
		f.Word = service.Gone
	case "not-authorized-for-resource", "client-forbidden", "unsupported-authentication":
		f.Word = service.Closed
	}
}
