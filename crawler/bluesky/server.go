package bluesky

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// Server is what a probe found out about one server. It is a value; Encode and DecodeServer convert
// it to and from bytes.
type Server struct {
	V    int    `json:"v"`
	Base string `json:"base"`

	Profiles service.Access `json:"profiles,omitempty"` // an AppView
	Batch    service.Access `json:"batch,omitempty"`    // many profiles per request
	Feed     service.Access `json:"feed,omitempty"`     // posts of an account
	Edges    service.Access `json:"edges,omitempty"`    // follower and following lists
	Search   service.Access `json:"search,omitempty"`   // of posts
	Paging   service.Access `json:"paging,omitempty"`   // the second page of a search
	Resolves service.Access `json:"resolves,omitempty"` // handles
	Records  service.Access `json:"records,omitempty"`  // a PDS
	Repo     service.Access `json:"repo,omitempty"`     // the state of a repository
	Up       service.Obeys  `json:"up,omitempty"`       // listRecords?reverse: for Reading.Up
	Lists    service.Word   `json:"lists,omitempty"`    // the fault of its lists, "" = none found
	Unsure   []Doubt        `json:"unsure,omitempty"`   // open questions
	Calls    int            `json:"calls"`
	Probed   time.Time      `json:"probed"`
	Expires  time.Time      `json:"expires"`
}

// Doubt is a question of a probe that stayed open.
type Doubt = service.Doubt

const (
	serverVersion = 1
	maxServer     = 16 << 10 // bytes of a Server
	serverFresh   = 7 * 24 * time.Hour
	serverUnsure  = 6 * time.Hour // if an open question may be settled later
)

// Fresh reports whether s is still valid at now.
func (s Server) Fresh(now time.Time) bool {
	return s.V == serverVersion && now.Before(s.Expires) && !now.Before(s.Probed.Add(-time.Hour))
}

// Encode returns s as bytes.
func (s Server) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		// cannot happen: plain fields; times come from a clock or DecodeServer
		panic(fmt.Sprintf("bluesky: server: %v", err))
	}
	return b
}

// DecodeServer decodes the output of Encode.
func DecodeServer(b []byte) (Server, error) {
	var s Server
	if len(b) > maxServer {
		return Server{}, fmt.Errorf("bluesky: server: %d bytes, at most %d", len(b), maxServer)
	}
	if err := strictjson.Unmarshal(b, &s); err != nil {
		return Server{}, fmt.Errorf("bluesky: server: %w", err)
	}
	if s.V != serverVersion {
		return Server{}, fmt.Errorf("bluesky: server: version %d: %w", s.V, service.ErrVersion)
	}
	return s, nil
}

// Probe finds out what the server does, with about ten requests about the account sample. sample is
// a DID that the server should know. The error is a Fault that may pass and with which nothing was
// learned, or the error of ctx. Any other failure becomes a Doubt and makes the Server expire
// sooner.
func (c *Client) Probe(ctx context.Context, sample string) (Server, error) {
	if did(sample) == "" {
		return Server{}, fmt.Errorf("bluesky: probe: %q is no DID", service.Clip(sample, 100))
	}
	p := &probe{s: Server{V: serverVersion, Base: c.s.Base(), Probed: c.o.Now().UTC().Round(0)}}
	o := c.o // a separate client that counts calls
	o.Do = func(ctx context.Context, call service.Call) (*fetch.Response, error) {
		p.s.Calls++
		return c.o.Do(ctx, call)
	}
	s, err := service.New(o)
	if err != nil {
		return Server{}, err
	}
	p.c = &Client{s, s.Options()}
	p.view(ctx, sample)
	p.pds(ctx, sample)
	p.s.Expires = p.s.Probed.Add(serverFresh)
	if slices.ContainsFunc(p.s.Unsure, func(d Doubt) bool { return (&service.Fault{Word: d.Why}).Again() }) {
		p.s.Expires = p.s.Probed.Add(serverUnsure)
	}
	if p.first != nil && !p.learnt {
		return Server{}, p.first
	}
	return p.s, ctx.Err()
}

// probe is one Probe in progress.
type probe struct {
	c      *Client
	s      Server
	first  error // the first fault that may pass
	learnt bool
}

// note sets *to to the Access that err shows, or records a Doubt.
func (p *probe) note(what string, to *service.Access, err error) bool {
	*to = service.AccessOf(err)
	switch {
	case *to != "":
		p.learnt = true
	case service.WordOf(err) != "":
		p.s.Unsure = append(p.s.Unsure, Doubt{What: what, Why: service.WordOf(err)})
		if p.first == nil && service.Again(err) {
			p.first = err
		}
	}
	return err == nil
}

func (p *probe) view(ctx context.Context, sample string) {
	who, err := p.c.Profile(ctx, sample)
	if !p.note("profile", &p.s.Profiles, err) {
		return
	}
	_, _, err = p.c.Profiles(ctx, []string{sample})
	p.note("batch", &p.s.Batch, err)
	if who.Acct != "" {
		_, err = p.c.Resolve(ctx, who.Acct)
		p.note("resolve", &p.s.Resolves, err)
	}
	_, err = p.c.feed(ctx, PostsOf(sample), "")
	p.note("feed", &p.s.Feed, err)
	for _, side := range [...]service.Side{service.Followers, service.Following} {
		e, err := p.c.Edges(who, side, "", service.Limits{Pages: 1})
		if err != nil {
			return // cannot happen: the profile has an id
		}
		_, err = e.Next(ctx)
		if p.note(string(side), &p.s.Edges, err) &&
			(e.Listing().Why == service.EmptyButClaims || e.Listing().Why == service.NoCursor) {
			p.s.Lists = e.Listing().Why
		}
	}
	found, err := p.c.feed(ctx, Search("a"), "")
	if p.note("search", &p.s.Search, err) && found.Next != "" {
		_, err = p.c.feed(ctx, Search("a"), found.Next)
		p.note("search, second page", &p.s.Paging, err)
	}
}

func (p *probe) pds(ctx context.Context, sample string) {
	_, err := p.c.Repo(ctx, sample)
	p.note("repo", &p.s.Repo, err)
	down, err := p.c.records(ctx, RecordsOf(sample, Posts), "", false)
	if !p.note("records", &p.s.Records, err) || len(down.IDs) < 2 {
		return
	}
	up, err := p.c.records(ctx, RecordsOf(sample, Posts), down.IDs[1], true)
	switch {
	case err != nil && service.WordOf(err) != service.Refused:
		p.s.Unsure = append(p.s.Unsure, Doubt{What: "reverse", Why: service.WordOf(err)})
	case err != nil || len(up.IDs) == 0 || !slices.IsSortedFunc(up.IDs, strings.Compare) || up.IDs[0] <= down.IDs[1]:
		p.s.Up = service.Ignored
	default:
		p.s.Up = service.Obeyed
	}
}
