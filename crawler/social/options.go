package social

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/twitter"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
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
	Store  *store.Store  // required: the budgets, and what servers were found to be, are kept in it
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
	Rules  Rules
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
		if at != "" && host(at) == "" {
			bad("%q is no address of a server: give https://host", at)
		}
	}
	if o.Jetstream != "" && streamHost(o.Jetstream) == "" {
		bad("%q is no address of a Jetstream: give wss://host/subscribe", o.Jetstream)
	}
	if o.Streams < 0 || o.Streams > maxStreams {
		bad("streams of %d servers, at most %d", o.Streams, maxStreams)
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
	return errors.Join(append(errs, o.Rules.validate())...)
}

// Source fetches accounts, their lists, tags and timelines. Safe for concurrent use.
type Source struct {
	o             Options
	retry         fetch.Retry
	budgets       *Budgets
	tokens        map[partition.Site]map[string]service.Credential // by name
	daily         map[partition.Site]map[string]int64
	ahead         ahead
	hours         curves
	prices        *prices
	subscriptions *subscriptions
	jet           *jetstream // nil = none is read
	locals        *locals    // nil = of no server
	posted        posted
	rounds        rounds

	// of X; it is learned anew after a start, from a refused call for each thing that is refused
	dialect twitter.Dialect

	sites    []partition.Site // with tokens, now or once
	salt     []byte           // of sums of tokens
	rejected rejections

	mu      sync.Mutex
	servers map[string]mastodon.Server // what was found out; kept in the store
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
	b, err := NewBudgets(o.Store, o.Budget, o.Now)
	if err != nil {
		return nil, err
	}
	s := &Source{o: o, budgets: b, tokens: map[partition.Site]map[string]service.Credential{},
		daily: map[partition.Site]map[string]int64{}, servers: map[string]mastodon.Server{},
		hours: curves{store: o.Store}, prices: newPrices(o.Now()), subscriptions: newSubscriptions(o.Jetstream != "" ||
			o.Streams > 0)}
	if o.Jetstream != "" {
		if s.jet, err = newJetstream(s); err != nil {
			return nil, err
		}
	}
	if o.Streams > 0 {
		s.locals = &locals{s: s, by: map[partition.Site]*local{}}
		s.posted.most = maxPosted
	}
	for _, t := range o.Tokens {
		at := t.site()
		if s.tokens[at] == nil {
			s.tokens[at], s.daily[at] = map[string]service.Credential{}, map[string]int64{}
		}
		s.tokens[at][t.Credential.Name()], s.daily[at][t.Credential.Name()] = t.Credential, t.Daily
	}
	if err := s.salted(); err != nil {
		return nil, err
	}
	return s, nil
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

// serve gives v the api of its Key's service.
func (s *Source) serve(v *visit) {
	switch site := v.t.Due.Key.Site(); site {
	case "bluesky:":
		v.api, v.url = &blueskyAPI{visit: v}, "https://bsky.app/"
	case "twitter:":
		v.api, v.url = &twitterAPI{visit: v}, "https://x.com/"
	default:
		server := string(site)[len("mastodon:"):]
		v.api, v.url = &mastodonAPI{visit: v, host: server}, base(server)+"/"
	}
}

// rateBudget is the budget at a site, by that table, of the credentials that there are for it.
func (s *Source) rateBudget(site partition.Site, table string) (*rateBudget, error) {
	names := slices.Sorted(maps.Keys(s.tokens[site]))
	if len(names) == 0 {
		names = []string{""}
	}
	p, err := s.budgets.of(site, table, names, s.daily[site])
	if err != nil {
		return nil, &storeError{err}
	}
	return p, nil
}

// host is that of an http address without a path, with the port where there is one; "" when it is none.
func host(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}

// Budgets are the budgets of this peer, to be shown.
func (s *Source) Budgets() []budget.Status { return s.budgets.Status() }

// Close keeps what is known of the budgets, and of when people post.
func (s *Source) Close() error { return errors.Join(s.budgets.Close(), s.hours.close()) }

// streamed are the services of which a stream is read.
func (s *Source) streamed() (out []string) {
	if s.jet != nil {
		out = append(out, "bluesky")
	}
	if s.locals != nil {
		out = append(out, "mastodon")
	}
	return out
}
