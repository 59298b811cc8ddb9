package social

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/crawler/social/mastodon"
	"github.com/echo-node/echo-node/crawler/social/pace"
	"github.com/echo-node/echo-node/crawler/social/rounds"
	"github.com/echo-node/echo-node/crawler/social/stream"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
)

// Token is a credential of this peer's operator at one server.
type Token struct {
	Service string // default mastodon
	// of a Mastodon-compatible server: host[:port], as behind the @ of its accounts; else ""
	Server     string
	Credential service.Credential
	// for X only: millionths of a US dollar that it may spend in a UTC day, required
	Daily int64
}

// site returns the site that t is for.
func (t Token) site() partition.Site {
	if t.Service == "" || t.Service == "mastodon" {
		return partition.Site("mastodon:" + t.Server)
	}
	return partition.Site(t.Service + ":")
}

// Options of New.
type Options struct {
	Store *db.Store // required: it stores the rate budgets, and what servers support
	// required: without a gap between requests to an address; see the package comment
	Client *fetch.Client
	// if there are none, all calls are made without a credential, and X is not asked
	Tokens []Token
	// View is the address of Bluesky's AppView, Directory that of the directory of its DIDs. The
	// defaults are https://public.api.bsky.app and https://plc.directory. X is the API of X;
	// default https://api.x.com.
	View, Directory, X string
	// Jetstream is the address of a Jetstream, which reports Bluesky's posts as they are made:
	// "wss://host/subscribe". "" means that none is read.
	Jetstream string
	// Streams is the number of Mastodon-compatible servers whose public stream is read, those with
	// the most accounts that are followed here. 0 means none.
	Streams int
	// Dial connects to a stream. Default: Client.WebSocket, which guards private addresses.
	Dial   func(ctx context.Context, address string) (*websocket.Conn, *http.Response, error)
	Budget budget.Options
	Rules  follow.Rules
	// Lists says that the followers and followings of followed accounts are read, too. This costs a
	// call for each 80 of them.
	Lists bool
	// Media says that the files which posts and profiles of followed accounts name are fetched
	// (store.Media.File), by the Source that handles them. Files of accounts that opt out of search
	// or collection are not.
	Media bool
	// Back is how many posts of an account are read the first time, TagBack how many of a tag or
	// public timeline. The defaults are all, and 400. What is left out is in the gap ledger.
	Back, TagBack int
	Calls         int           // requests of one fetch; default 8
	Least, Most   time.Duration // between two visits of an account; default 15 min and a day
	Profile       time.Duration // time after which a profile is fetched again; default a day
	// time in which each kept post is looked at again, if the budget allows it; default 7 days
	Round  time.Duration
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: discard
}

func (o Options) withDefaults() Options {
	for _, d := range [...]struct {
		p *time.Duration
		v time.Duration
	}{{&o.Least, 15 * time.Minute}, {&o.Most, 24 * time.Hour}, {&o.Profile, 24 * time.Hour},
		{&o.Round, 7 * 24 * time.Hour}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	for _, d := range [...]struct {
		p *string
		v string
	}{{&o.View, "https://public.api.bsky.app"}, {&o.Directory, "https://plc.directory"}, {&o.X, "https://api.x.com"}} {
		if *d.p == "" {
			*d.p = d.v
		}
	}
	if o.TagBack == 0 {
		o.TagBack = 400
	}
	if o.Calls == 0 {
		o.Calls = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = o.Client.WebSocket
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxCalls is the most requests that one fetch may make: the answers fit in one commit.
const maxCalls = 20

// Validate reports all errors in o at once. It does not check that Store and Client are set.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("social: "+format, args...)) }
	if o.Back < 0 || o.TagBack < 0 || o.Calls < 0 || o.Calls > maxCalls {
		bad("back %d, tag back %d, calls %d, at most %d", o.Back, o.TagBack, o.Calls, maxCalls)
	}
	if o.Least < 0 || o.Most < 0 || o.Profile < 0 || o.Round < 0 || o.Most != 0 && o.Least > o.Most {
		bad("times %s, %s, %s", o.Least, o.Most, o.Profile)
	}
	for _, at := range [...]string{o.View, o.Directory, o.X} {
		if at != "" && account.Host(at) == "" {
			bad("%q is no address of a server: give https://host", at)
		}
	}
	if o.Jetstream != "" && stream.Host(o.Jetstream) == "" {
		bad("%q is no address of a Jetstream: give wss://host/subscribe", o.Jetstream)
	}
	if o.Streams < 0 || o.Streams > stream.MaxStreams {
		bad("streams of %d servers, at most %d", o.Streams, stream.MaxStreams)
	}
	type named struct {
		site partition.Site
		name string
	}
	seen := map[named]bool{}
	for _, t := range o.Tokens {
		name := t.Credential.Name()
		switch at := t.site(); {
		case strings.HasPrefix(string(at), "mastodon:"):
			if k, err := partition.ParseKey(string(at) + "/public"); err != nil || string(k) != string(at)+"/public" ||
				t.Daily != 0 {
				bad("token %q: %q is no server: give host or host:port", name, t.Server)
			}
		case at != "twitter:" || t.Server != "":
			bad("token %q: no credential is used at %s%s", name, at, t.Server)
		case t.Daily <= 0 || t.Daily > budget.MaxLimit:
			bad("token %q: X charges for each answer: say how many dollars a day it may spend", name)
		}
		if at := (named{t.site(), name}); seen[at] || !t.Credential.Set() {
			bad("token %q of %s is there twice, or empty", name, at.site)
		} else {
			seen[at] = true
		}
	}
	return errors.Join(append(errs, o.Rules.Validate())...)
}

// Source fetches accounts, their lists, tags and timelines. Safe for concurrent use.
type Source struct {
	parts
	streams *stream.Streams
}

// New returns a Source. It reports all errors in o at once.
func New(o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Store == nil || o.Client == nil {
		return nil, errors.New("social: no store or no client")
	}
	o = o.withDefaults()
	b, err := calls.NewBudgets(o.Store, o.Budget, o.Now)
	if err != nil {
		return nil, err
	}
	tokens := calls.NewTokens(o.Store, o.Logger)
	for _, t := range o.Tokens {
		tokens.Add(t.site(), t.Credential, t.Daily)
	}
	c := &calls.Caller{Budgets: b, Tokens: tokens, Client: o.Client, Now: o.Now, Logger: o.Logger}
	servers := mastodon.NewServers(o.Store, tokens, o.Logger)
	s, err := stream.New(stream.Options{Store: o.Store, Calls: c, Servers: servers, Dial: o.Dial,
		Jetstream: o.Jetstream, Streams: o.Streams})
	if err != nil {
		return nil, err
	}
	if err := tokens.Open(); err != nil {
		return nil, err
	}
	out := &Source{streams: s, parts: parts{o: o, calls: c, servers: servers, subscriptions: s.Subscriptions(),
		posted: s.Posted(), pace: pace.Pace{Least: o.Least, Most: o.Most, Prices: pace.NewPrices(o.Now()),
			Curves: pace.NewCurves(o.Store)}}}
	out.known = follow.Known{Store: o.Store, Rules: &out.o.Rules}
	return out, nil
}

// Name implements crawler.Source. The source of a record is its service.
func (*Source) Name() string { return "social" }

// Handles implements crawler.Source. A search of mastodon: names no server and cannot be fetched.
func (*Source) Handles(k partition.Key) bool {
	switch k.Kind() {
	case partition.KindAccount, partition.KindFollowers, partition.KindFollowing, partition.KindTag,
		partition.KindTimeline, partition.KindName:
		return true
	case partition.KindSearch:
		return k.Service() != "mastodon"
	}
	return false
}

// Budgeted reports whether the pace of a site is that of a rate budget.
func Budgeted(s partition.Site) bool {
	service, _, _ := strings.Cut(string(s), ":")
	return service == "mastodon" || service == "bluesky" || service == "twitter"
}

// Budgets returns the status of this peer's rate budgets.
func (s *Source) Budgets() []budget.Status { return s.calls.Budgets.Status() }

// Rejected returns the tokens that their servers rejected at their last use, in order of site and
// name.
func (s *Source) Rejected() []calls.Rejected { return s.calls.Tokens.Rejected() }

// Rounds returns how kept posts are looked at again, in order of site.
func (s *Source) Rounds() []rounds.Round { return s.shown.Rounds() }

// Streams returns the status of the streams that this peer reads or would read, the ones with the
// most accounts first.
func (s *Source) Streams() []stream.Stream { return s.streams.Shown() }

// Listen reads all streams until ctx ends. It has an account visited when a stream reports it. It
// also has Keys visited that waited for another token. It returns the first error of the store.
func (s *Source) Listen(ctx context.Context, o stream.Peer) error { return s.streams.Listen(ctx, o) }

// Close stores the rate budgets, and the hours in which people post.
func (s *Source) Close() error { return errors.Join(s.calls.Budgets.Close(), s.pace.Curves.Close()) }
