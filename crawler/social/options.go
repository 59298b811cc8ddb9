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
	Service    string // default mastodon
	Server     string // of a Mastodon-compatible one: host[:port], as behind the @ of its accounts; else ""
	Credential service.Credential
	Daily      int64 // of X: millionths of a US dollar that it may spend in a UTC day, required
}

// site is where t is for.
func (t Token) site() partition.Site {
	if t.Service == "" || t.Service == "mastodon" {
		return partition.Site("mastodon:" + t.Server)
	}
	return partition.Site(t.Service + ":")
}

// Options of New.
type Options struct {
	Store  *db.Store     // required: the budgets, and what servers were found to be, are kept in it
	Client *fetch.Client // required: without a gap between requests to an address; see the package comment
	Tokens []Token       // none: everything is asked without a credential, and X not at all
	// View is Bluesky's AppView, Directory that of its DIDs; default https://public.api.bsky.app and
	// https://plc.directory. X is the API of X; default https://api.x.com.
	View, Directory, X string
	// Jetstream tells of Bluesky's posts as they are made: "wss://host/subscribe"; "" = none is read.
	Jetstream string
	// Streams is of how many Mastodon-compatible servers at most, those with the most accounts that are followed
	// here, the public stream is read; 0 = of none.
	Streams int
	// Dial connects to a stream. Default: Client.WebSocket, which guards private addresses.
	Dial   func(ctx context.Context, address string) (*websocket.Conn, *http.Response, error)
	Budget budget.Options
	Rules  follow.Rules
	// Lists has the followers and followings of who is followed read, too: a
	// call for each 80 of them.
	Lists bool
	// Media has the files that posts and profiles of who is followed name fetched (store.Media.File), by
	// whatever Source handles them: not those of who does not want to be shown or kept.
	Media bool
	// Back is how many posts of an account, and TagBack of a tag or public timeline, are read the first
	// time; default all, and 400. What is left out is in the ledger of gaps.
	Back, TagBack int
	Calls         int              // requests of one fetch; default 8
	Least, Most   time.Duration    // between two visits of an account; default 15 min and a day
	Profile       time.Duration    // a profile is asked for again after that; default a day
	Round         time.Duration    // in which each kept post is looked at again, where the budget does; default 7 days
	Now           func() time.Time // default time.Now
	Logger        *slog.Logger     // default: discard
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

// maxCalls is the most that one fetch may ask: what comes fits one commit.
const maxCalls = 20

// Validate reports every fault of o, but for what is missing of Store and Client, at once.
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

// New is a Source; it reports every fault of o at once.
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

// Name is of crawler.Source. What a record is from is its service.
func (*Source) Name() string { return "social" }

// Handles is of crawler.Source. A search of mastodon: names no server, and is fetched by none.
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

// Budgeted says of a site that its pace is that of a budget.
func Budgeted(s partition.Site) bool {
	service, _, _ := strings.Cut(string(s), ":")
	return service == "mastodon" || service == "bluesky" || service == "twitter"
}

// Budgets are the budgets of this peer, to be shown.
func (s *Source) Budgets() []budget.Status { return s.calls.Budgets.Status() }

// Rejected are the tokens that their servers rejected when they were used last, in order of site and name.
func (s *Source) Rejected() []calls.Rejected { return s.calls.Tokens.Rejected() }

// Rounds are how kept posts are looked at again, in order of site.
func (s *Source) Rounds() []rounds.Round { return s.shown.Rounds() }

// Streams are those that this peer reads or would, to be shown: those of the most accounts.
func (s *Source) Streams() []stream.Stream { return s.streams.Shown() }

// Listen reads the streams there are, and has the accounts visited that they tell of, and those that waited for a
// token, until ctx ends. It returns the first failure of the store.
func (s *Source) Listen(ctx context.Context, o stream.Peer) error { return s.streams.Listen(ctx, o) }

// Close keeps what is known of the budgets, and of when people post.
func (s *Source) Close() error { return errors.Join(s.calls.Budgets.Close(), s.pace.Curves.Close()) }
