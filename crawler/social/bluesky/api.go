package bluesky

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	client "github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// API is the account.API of the AT Protocol. The AppView has profiles, lists and searches. The
// posts of an account are read at its PDS, which says exactly what is new, changed or deleted. The
// document of the account's DID names the PDS. Each of these servers has its own rate budget.
//
// Anybody can write such a document. So a request to the PDS that it names passes the guard of
// private addresses, as every request does. Only https is accepted. The exception is loopback,
// which the guard allows where a person said so.
type API struct {
	account.Visit
	calls   *calls.Caller
	session *calls.Session
	o       Options
	view    *client.Client
	rev     string // of the repository that is read
}

// Options are the addresses of the AppView and of the directory of DIDs.
type Options struct{ View, Directory string }

// New returns the API of one visit, which makes its calls with session.
func New(v account.Visit, c *calls.Caller, session *calls.Session, o Options) *API {
	return &API{Visit: v, calls: c, session: session, o: o}
}

// again is how many posts of a repository are read again at each visit. They fit in the page that
// is read anyway.
const again = 30

// at returns a client for a server, within the rate budget of that site with that table.
func (v *API) at(address string, site partition.Site, table string) (*client.Client, error) {
	p, err := v.calls.Budget(site, table)
	if err != nil {
		return nil, err
	}
	costs := func(c service.Call) calls.Charge {
		if c.Class == client.ClassSearch && table == "bluesky-appview" {
			return calls.Charge{Class: "search", Closes: true}
		}
		return calls.Charge{Class: calls.ClassRead}
	}
	return client.New(client.Options{Base: address, Now: v.calls.Now, Do: v.session.Within(p, nil, costs)})
}

// siteAt returns the name of the rate budget of a server that is not a site of Keys.
func siteAt(address string) partition.Site { return partition.Site("bluesky:" + account.Host(address)) }

// Enter implements account.API.
func (v *API) Enter(context.Context) (err error) {
	v.view, err = v.at(v.o.View, v.Key.Site(), "bluesky-appview")
	return err
}

// did returns the DID of the Key's account.
func (v *API) did() string { return account.NameOf(v.Key.Account()) }

// Most implements account.API.
func (*API) Most() int { return client.BatchSize }

// Called implements account.API. A handle is resolved alone.
func (*API) Called(k partition.Key, _ *account.State) string {
	if k.Kind() == partition.KindName {
		return ""
	}
	return account.NameOf(k.Account())
}

// Look implements account.API.
func (v *API) Look(ctx context.Context, names []string) (map[string]any, error) {
	all, _, err := v.view.Profiles(ctx, names)
	out := map[string]any{}
	for _, p := range all {
		out[p.ID] = p
	}
	return out, err
}

// Counts implements account.API. An AppView does not count reposts, and its counts come late. The
// repository itself says exactly whether anything was written (repo).
func (*API) Counts(int64) bool { return false }

// Class implements account.API.
func (*API) Class() string { return calls.ClassRead }

// Named implements account.API.
func (v *API) Named(ctx context.Context, _ any) (partition.Key, error) {
	id, err := v.view.Resolve(ctx, account.NameOf(v.Key))
	if err != nil {
		return "", err
	}
	return partition.ParseKey("bluesky:" + id)
}

// Profile implements account.API.
func (v *API) Profile(ctx context.Context, had any) (account.Person, error) {
	p, ok := had.(client.Profile)
	var err error
	if !ok {
		p, err = v.view.Profile(ctx, v.did())
	}
	var f *service.Fault
	if errors.As(err, &f) && (strings.HasSuffix(f.Code, "Takedown") || strings.HasSuffix(f.Code, "Suspended") ||
		strings.HasSuffix(f.Code, "Deactivated")) {
		return account.Person{ID: v.did(), Suspended: true}, nil
	}
	if err != nil {
		return account.Person{}, err
	}
	r := &store.Record{URL: p.URL, Raw: p.Raw, Digest: account.Digest(p.Raw), Links: p.Links}
	r.Title, r.Text, r.Author, r.ID, r.URI = p.Name, p.Note, p.Acct, p.ID, "at://"+p.ID
	r.CreatedAt = account.Moment(p.Created)
	r.Counts = account.Counts(map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts})
	r.Media = account.Pictures(p.Avatar, p.Header)
	for _, l := range p.Labels {
		if l.By == p.ID { // labels that the account gives itself
			r.Flags = append(r.Flags, l.Value)
		}
	}
	account.Wished(r, service.Wishes(p.Name, p.Note))
	account.Flagged(r, map[string]bool{account.NotLoggedIn: p.NoUnauthenticated})
	if r.NoIndex {
		r.Text = ""
	}
	v.State.Acct, v.State.Name = p.Acct, p.Name
	return account.Person{As: p, ID: p.ID, Record: r, Posts: p.Posts, NoIndex: r.NoIndex,
		Edges: func(_ context.Context, side service.Side) (account.Edges, error) {
			return account.ListOf(v.view.Edges(p, side, "", service.Limits{}))
		}}, nil
}

// Resume implements account.API.
func (v *API) Resume(from service.Checkpoint) (account.Edges, error) {
	return account.ListOf(v.view.ResumeEdges(from, "", service.Limits{}))
}

// Feeds implements account.API. An account has two feeds, its posts and its reposts, or none if its
// repository has not changed. A search has one.
func (v *API) Feeds(ctx context.Context, back int) ([]account.Feed, error) {
	if v.Key.Kind() == partition.KindSearch {
		tl, err := v.view.Timeline(searched(account.Query(v.Key)), v.State.Mark, service.Reading{Back: back})
		if err != nil {
			return nil, err
		}
		return []account.Feed{&search{feed{tl, v, &v.State.Mark}}}, nil
	}
	pds, repo, err := v.repo(ctx)
	if err != nil {
		return nil, err
	}
	if !repo.Active {
		return nil, &account.Inactive{Why: "its repository is " + repo.Status}
	}
	if v.rev = repo.Rev; repo.Rev != "" && repo.Rev == v.State.Rev {
		return nil, nil
	}
	var out []account.Feed
	for _, collection := range [...]string{client.Posts, client.Reposts} {
		mark := &v.State.Mark
		how := service.Reading{Back: back, Overlap: again, Claimed: v.State.Claimed}
		if collection == client.Reposts {
			mark, how.Claimed = &v.State.Boosts, 0
		}
		tl, err := pds.Timeline(client.RecordsOf(v.did(), collection), *mark, how)
		if err != nil {
			return nil, err
		}
		out = append(out, &records{feed{tl, v, mark}, pds, collection})
	}
	return out, nil
}

// Whole implements account.API.
func (v *API) Whole() { v.State.Rev = v.rev }

// Batch implements account.API.
func (*API) Batch() int { return client.BatchSize }

// LookAgain implements account.API. The AppView says which posts exist, in its version. It has no
// reposts. For an account, reposts and posts whose version differs from the kept one count as
// absent, so that the repository is asked. For a search, the version of the AppView counts.
func (v *API) LookAgain(ctx context.Context, posts []store.Record) (out []account.Post, absent []store.Record,
	err error) {
	var uris []string
	for _, r := range posts {
		if u, err := client.ParseURI(r.Post); err == nil && u.Collection == client.Posts {
			uris = append(uris, r.Post)
		}
	}
	there := map[string]client.Post{}
	if len(uris) > 0 {
		found, _, err := v.view.PostsByURI(ctx, uris)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range found {
			there[p.ID] = p
		}
	}
	search := v.Key.Kind() == partition.KindSearch
	for _, r := range posts {
		p, ok := there[r.Post]
		switch {
		case ok && search:
			out = append(out, v.postOf(p, p.ID))
		case ok && p.CID == r.ID:
			as := v.postOf(p, client.KeyOf(p.ID))
			as.Same = true
			out = append(out, as)
		default:
			absent = append(absent, r)
		}
	}
	return out, absent, nil
}

// LookAt implements account.API.
func (v *API) LookAt(ctx context.Context, post store.Record) ([]account.Post, error) {
	if v.Key.Kind() == partition.KindSearch {
		return v.found(ctx, post.Post)
	}
	if v.State.PDS == "" {
		if err := v.locate(ctx); err != nil {
			return nil, err
		}
	}
	pds, err := v.at(v.State.PDS, siteAt(v.State.PDS), "bluesky-pds")
	if err != nil {
		return nil, err
	}
	return v.recordAt(ctx, pds, post.Post)
}

// recordAt returns a record from its repository.
func (v *API) recordAt(ctx context.Context, pds *client.Client, uri string) ([]account.Post, error) {
	p, err := pds.Record(ctx, uri)
	var f *service.Fault
	// the account is gone, which says nothing of the post
	if errors.As(err, &f) && f.Word == service.Gone && f.Code != "RecordNotFound" {
		f.Word = service.Closed
	}
	if err != nil {
		return nil, err
	}
	return []account.Post{v.postOf(p, client.KeyOf(uri))}, nil
}

// found returns a post from the AppView.
func (v *API) found(ctx context.Context, uri string) (out []account.Post, err error) {
	found, _, err := v.view.PostsByURI(ctx, []string{uri})
	if err == nil && len(found) == 0 {
		return nil, &service.Fault{Service: "bluesky", Op: "post", Word: service.Gone, FromAPI: true, Retry: -1}
	}
	for _, p := range found {
		out = append(out, v.postOf(p, p.ID))
	}
	return out, err
}

// FromStream implements account.API.
func (v *API) FromStream(post any, _ *store.Record, later bool) (account.Post, bool) {
	p, ok := post.(client.Post)
	if !ok || !later {
		return account.Post{}, false
	}
	return v.postOf(p, client.KeyOf(p.ID)), true
}

// repo returns the state of the account's repository, and a client of its PDS. If the known PDS
// does not have the repository, repo looks once for a new one.
func (v *API) repo(ctx context.Context) (*client.Client, client.Repo, error) {
	known := v.State.PDS != ""
	if !known {
		if err := v.locate(ctx); err != nil {
			return nil, client.Repo{}, err
		}
	}
	pds, err := v.at(v.State.PDS, siteAt(v.State.PDS), "bluesky-pds")
	if err != nil {
		return nil, client.Repo{}, err
	}
	repo, err := pds.Repo(ctx, v.did())
	if word := service.WordOf(err); err != nil && known && (word == service.Gone || word == service.Unsupported ||
		word == service.NotJSON || word == service.Moved) {
		v.State.PDS = ""
		return v.repo(ctx)
	}
	var f *service.Fault
	// it may have moved: the next visit locates it again
	if errors.As(err, &f) && f.Word == service.Unreachable && f.Err != nil && !errors.Is(f.Err, calls.ErrEnough) &&
		!calls.IsWait(f.Err) {
		v.State.PDS = ""
	}
	return pds, repo, err
}

// locate finds the server that has the account's records.
func (v *API) locate(ctx context.Context) error {
	address, _, err := client.DocumentAddress(v.did(), v.o.Directory)
	if err != nil {
		return err
	}
	c, err := v.at(address, siteAt(address), "fediverse")
	if err != nil {
		return err
	}
	who, err := c.Document(ctx, v.did())
	if err != nil {
		var f *service.Fault
		// only the profile says whether the account exists
		if errors.As(err, &f) && f.Word == service.Gone {
			f.Word = service.Refused
		}
		return err
	}
	if !secure(who.PDS) {
		return &service.Fault{Service: "bluesky", Op: "document", Word: service.Misshapen, FromAPI: true, Retry: -1,
			Said: fmt.Sprintf("its records are nowhere that is asked: %.100q", who.PDS)}
	}
	v.State.PDS = who.PDS
	return nil
}

// secure reports whether an address that a document names may be asked: by https, or on this
// machine.
func secure(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return false
	}
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && err == nil && a.IsLoopback()
}
