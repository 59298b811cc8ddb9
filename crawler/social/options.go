package social

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Token is a credential of this peer's operator at one server.
type Token struct {
	Server     string // host[:port], as behind the @ of its accounts
	Credential service.Credential
}

// Options of New.
type Options struct {
	Store  *store.Store  // required: the budgets, and what servers were found to be, are kept in it
	Client *fetch.Client // required: without a gap between requests to an address; see the package comment
	Tokens []Token       // none: everything is asked without a credential
	Budget budget.Options
	Rules  Rules
	// Lists has the followers and followings of who is followed read, too: a
	// call for each 80 of them.
	Lists bool
	// Back is how many posts of an account, and TagBack of a tag or public timeline, are read the first
	// time; default all, and 400. What is left out is in the ledger of gaps.
	Back, TagBack int
	Calls         int              // requests of one fetch; default 8
	Least, Most   time.Duration    // between two visits of an account; default 15 min and a day
	Profile       time.Duration    // a profile is asked for again after that; default a day
	Now           func() time.Time // default time.Now
	Logger        *slog.Logger     // default: discard
}

func (o Options) withDefaults() Options {
	for _, d := range [...]struct {
		p *time.Duration
		v time.Duration
	}{{&o.Least, 15 * time.Minute}, {&o.Most, 24 * time.Hour}, {&o.Profile, 24 * time.Hour}} {
		if *d.p == 0 {
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
	if o.Least < 0 || o.Most < 0 || o.Profile < 0 || o.Most != 0 && o.Least > o.Most {
		bad("times %s, %s, %s", o.Least, o.Most, o.Profile)
	}
	seen := map[string]bool{}
	for _, t := range o.Tokens {
		if k, err := partition.ParseKey("mastodon:" + t.Server + "/public"); err != nil || string(k) != "mastodon:"+t.Server+"/public" {
			bad("token %q: %q is no server: give host or host:port", t.Credential.Name(), t.Server)
		}
		if at := t.Server + " " + t.Credential.Name(); seen[at] || !t.Credential.Set() {
			bad("token %q of %s is there twice, or empty", t.Credential.Name(), t.Server)
		} else {
			seen[at] = true
		}
	}
	return errors.Join(append(errs, o.Rules.validate())...)
}

// Source fetches accounts, their lists, tags and timelines. Safe for concurrent use.
type Source struct {
	o       Options
	retry   fetch.Retry
	budgets *Budgets
	tokens  map[string]map[string]service.Credential // by server and name

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
	s := &Source{o: o, budgets: b, tokens: map[string]map[string]service.Credential{}, servers: map[string]mastodon.Server{}}
	for _, t := range o.Tokens {
		if s.tokens[t.Server] == nil {
			s.tokens[t.Server] = map[string]service.Credential{}
		}
		s.tokens[t.Server][t.Credential.Name()] = t.Credential
	}
	return s, nil
}

// Name is of crawler.Source.
func (*Source) Name() string { return "mastodon" }

// Handles is of crawler.Source. A search names no server, and is fetched by none.
func (*Source) Handles(k partition.Key) bool {
	if k.Service() != "mastodon" {
		return false
	}
	switch k.Kind() {
	case partition.KindAccount, partition.KindFollowers, partition.KindFollowing, partition.KindTag, partition.KindTimeline:
		return true
	}
	return false
}

// Budgeted says of a site that its pace is that of a budget.
func Budgeted(s partition.Site) bool { return strings.HasPrefix(string(s), "mastodon:") }

// Budgets are the budgets of this peer, to be shown.
func (s *Source) Budgets() []budget.Status { return s.budgets.Status() }

// Close keeps what is known of the budgets.
func (s *Source) Close() error { return s.budgets.Close() }

// base is the address of a server's API. A loopback address has no certificate that
// anybody would have signed, so it is asked without one.
func base(server string) string {
	host := server
	if ap, err := netip.ParseAddrPort(server); err == nil {
		host = ap.Addr().String()
	} else if h, _, ok := strings.Cut(server, ":"); ok {
		host = h
	}
	if a, err := netip.ParseAddr(host); err == nil && a.IsLoopback() || host == "localhost" {
		return "http://" + server
	}
	return "https://" + server
}
