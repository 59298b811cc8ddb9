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

// Options are the options of New.
type Options struct {
	Base       string     // "https://api.x.com", required
	Do         service.Do // required
	Credential service.Credential
	// spelling of parameters in the first request to an endpoint; default Tweet
	Spelling Spelling
	// what is known about the parameters of endpoints; default: an own one of this Client
	Dialect *Dialect
	Posts   int              // posts requested per page, 10 to 100; default 100
	Users   int              // accounts requested per page of a list, at most 1000; default 1000
	Now     func() time.Time // default time.Now
	MaxBody int64            // bytes of one response; default 4 MiB
	MaxText int              // bytes of the text of one post or profile; default 64 KiB
	// bytes of the server's own object, stored complete or not at all; default 64 KiB, <0 = never
	// stored
	MaxRaw int
}

// Spelling is the word for a post in parameter names. The API has two.
type Spelling string

// The spellings: tweet.fields, and post.fields since 2026.
const (
	Tweet Spelling = "tweet"
	PostS Spelling = "post"
)

// Client sends requests to the API. It is safe for concurrent use if Options.Do is.
type Client struct {
	s    *service.Client
	o    service.Options
	word Spelling
	d    *Dialect

	postPage, edgePage int // posts and accounts requested per page
}

// New returns a Client; its error joins every fault of o.
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

// Absence is the reason why a requested user or post is not in a response.
type Absence struct {
	ID   string       // as requested: an id or a name
	Word service.Word // Gone, or Closed: it exists but is not visible to this client
	Said string       // the API's message, at most 200 bytes; "" = it was left out silently
	// Suspended says that the API calls the account suspended. It is Gone as long as that lasts.
	Suspended bool
}

// wireProblem is one of errors[], or the body of a refused request.
type wireProblem struct {
	Type   text  `json:"type"`
	Title  text  `json:"title"`
	Detail text  `json:"detail"`
	Value  text  `json:"value"`
	Asked  text  `json:"resource_id"`
	Code   count `json:"code"` // of API 1.1
	Said   text  `json:"message"`
	// Parameters are the refused parameters.
	Parameters json.RawMessage `json:"parameters"`
}

// code returns the last part of a problem's type.
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

// absence returns what w says about a requested user or post.
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

// envelope is the common part of all responses of the API.
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

// get requests a path with q and all the fields that this package reads of users, or of posts. If
// an endpoint refuses a parameter, get immediately repeats the request without it, at most maxTries
// times. Each attempt is a separate request to Options.Do.
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

// one returns e. If e has no data, it returns the Fault of its first problem.
func (c *Client) one(op string, e envelope) (envelope, error) {
	if len(e.Data) > 0 && string(e.Data) != "null" || len(e.Errors.All) == 0 {
		return e, nil
	}
	w := e.Errors.All[0]
	return e, &service.Fault{Service: name, Op: op, Word: w.absence().Word, Status: http.StatusOK, Code: w.code(),
		Said: w.said(), FromAPI: true, Retry: -1}
}

// judge sets the Word of a refused request.
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
	// this problem names the parameter
	if len(w.Errors.All) > 0 && w.Errors.All[0].said() != "" && (p.said() == "" || len(f.Names) > 0) {
		p = w.Errors.All[0]
	}
	if f.Said = p.said(); w.code() != "" {
		f.Code = w.code()
	}
	switch f.Code {
	// the monthly budget is used up: a wait of a quarter of an hour does not help
	case "usage-capped":
		f.Word = service.Spent
	case "resource-not-found":
		f.Word = service.Gone
	case "not-authorized-for-resource", "client-forbidden", "unsupported-authentication":
		f.Word = service.Closed
	}
}
