package mastodon

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	client "github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// API is the account.API of a Mastodon-compatible server, the host of the Key.
type API struct {
	account.Visit
	calls   *calls.Caller
	session *calls.Session
	servers *Servers
	host    string
	server  client.Server
	c       *client.Client
}

// maxCalls is the most calls that a probe of a server may make.
const maxCalls = 20

// New returns the API of one visit, which makes its calls with session.
func New(v account.Visit, c *calls.Caller, session *calls.Session, servers *Servers) *API {
	return &API{Visit: v, calls: c, session: session, servers: servers, host: string(v.Key.Site())[len("mastodon:"):]}
}

// Enter implements account.API. It probes the server if that is due.
func (v *API) Enter(ctx context.Context) error {
	info, known, err := v.servers.Get(v.host, v.Now)
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	if err := v.open(info); err != nil {
		return err
	}
	if known {
		return nil
	}
	sample := ""
	if a := v.Key.Account(); a != "" {
		sample = string(a)[len("mastodon:"):]
	}
	left := v.session.Left
	v.session.Left = maxCalls // calls of a probe do not count as calls of the fetch
	info, err = v.c.Resume(ctx, sample, info)
	v.session.Left = left
	if err != nil {
		return err
	}
	if err := v.servers.learn(v.host, info); err != nil {
		return &calls.StoreError{Err: err}
	}
	return v.open(info)
}

// open creates the client for a server with that info.
func (v *API) open(info client.Server) error {
	v.server = info
	site := v.Key.Site()
	p, err := v.calls.Budget(site, TableOf(info.Software))
	if err != nil {
		return err
	}
	domain := info.Domain
	if domain == "" {
		domain = v.host
	}
	creds := v.calls.Tokens.At(site)
	v.c, err = client.New(client.Options{Base: account.Base(v.host), Domain: domain, Now: v.calls.Now,
		Credential: creds[p.Names[0]],
		Do: v.session.Within(p, creds, func(c service.Call) calls.Charge {
			if c.Paging {
				return calls.Charge{Class: "paging"}
			}
			return calls.Charge{Class: calls.ClassRead, Person: strings.HasSuffix(c.Request.URL, "/verify_credentials")}
		})})
	return err
}

// Most implements account.API.
func (v *API) Most() int {
	if v.server.Batch == service.Obeyed {
		return client.BatchSize
	}
	return 1
}

// Called implements account.API. It returns the id, which is known from the second visit on.
func (*API) Called(_ partition.Key, st *account.State) string { return st.ID }

// Look implements account.API.
func (v *API) Look(ctx context.Context, names []string) (map[string]any, error) {
	all, _, err := v.c.Accounts(ctx, names)
	out := map[string]any{}
	for _, p := range all {
		out[p.ID] = p
	}
	return out, err
}

// Counts implements account.API. Some servers claim 0 posts for every account.
func (v *API) Counts(posts int64) bool { return posts > 0 }

// Class implements account.API.
func (*API) Class() string { return calls.ClassRead }

// Named implements account.API. Here an account's name is its Key.
func (v *API) Named(context.Context, any) (partition.Key, error) { return v.Key, nil }

// Profile implements account.API. The first time it asks by name. Later it asks by id, which stays
// when the name is given to another account.
func (v *API) Profile(ctx context.Context, had any) (account.Person, error) {
	p, ok := had.(client.Profile)
	var err error
	switch {
	case ok:
	case v.State.ID == "":
		user, _, _ := strings.Cut(string(v.Key.Account())[len("mastodon:"):], "@")
		p, err = v.c.Lookup(ctx, user)
	default:
		p, err = v.c.Account(ctx, v.State.ID)
	}
	if err != nil {
		return account.Person{}, err
	}
	out := account.Person{As: p, ID: p.ID, Record: recordOf(p), Posts: p.Posts, LastPost: p.LastPost,
		Suspended: p.Suspended, Edges: func(ctx context.Context, side service.Side) (account.Edges, error) {
			believe, err := v.whose(ctx, p, side)
			if err != nil {
				return nil, err
			}
			return account.ListOf(v.c.Edges(p, side, believe, service.Limits{}))
		}}
	out.NoIndex = p.NoIndex == service.Yes || out.Record.NoIndex
	if p.Moved != nil {
		out.Moved, out.MovedTo = p.Moved.Acct, out.Record.MovedTo
	}
	return out, nil
}

// Resume implements account.API.
func (v *API) Resume(from service.Checkpoint) (account.Edges, error) {
	side := service.Followers
	if v.Key.Kind() == partition.KindFollowing {
		side = service.Following
	}
	return account.ListOf(v.c.ResumeEdges(from, v.server.ListOf(side), service.Limits{}))
}

// whose finds out whether the server returns p's list, or that of the owner of this peer's token.
// The result is stored with the server, so that few lists need these calls.
func (v *API) whose(ctx context.Context, p client.Profile, side service.Side) (service.Word, error) {
	creds := v.calls.Tokens.At(v.Key.Site())
	if v.session.Only = v.session.Used; v.session.Only == "" && len(creds) > 0 {
		v.session.Only = slices.Sorted(maps.Keys(creds))[0]
	}
	defer func() { v.session.Only = "" }()
	info, believe, err := v.c.Whose(ctx, v.server, p, side, len(creds) < 2)
	if err != nil || info.OfFollowers == v.server.OfFollowers && info.OfFollowing == v.server.OfFollowing {
		return believe, err
	}
	v.server = info
	if err := v.servers.learn(v.host, info); err != nil {
		return "", &calls.StoreError{Err: err}
	}
	return believe, nil
}

// Feeds implements account.API. There is one feed, read from the newest post down to the last one
// read. As long as one page is enough, this costs no paging call, of which Mastodon allows a third
// as many. Each page also shows edits and deletions among the last forty posts.
func (v *API) Feeds(_ context.Context, back int) ([]account.Feed, error) {
	f := client.PostsOf(v.State.ID)
	switch k := v.Key; k.Kind() {
	case partition.KindTimeline:
		f = client.Public(true)
	case partition.KindTag:
		_, tag, _ := strings.Cut(string(k), "/tag/")
		f = client.Tagged(account.Unescaped(tag), false)
	}
	tl, err := v.c.Timeline(f, v.State.Mark, client.Reading{
		Paging: client.Paging{Min: service.Ignored, Max: v.server.Timeline.Max}, Back: back, Claimed: v.State.Claimed,
	})
	if err != nil {
		return nil, err
	}
	return []account.Feed{&feed{tl, v}}, nil
}

// feed implements account.Feed.
type feed struct {
	*client.Timeline
	v *API
}

// Kept implements account.Feed.
func (f *feed) Kept() *service.Mark { return &f.v.State.Mark }

// URI implements account.Feed.
func (f *feed) URI(id string) string { return f.v.State.Names[id] }

// Page implements account.Feed.
func (f *feed) Page(ctx context.Context) ([]account.Post, error) {
	b, err := f.Next(ctx)
	out := postsOf(b.Posts)
	for _, p := range b.Again {
		as, st := postOf(p), f.v.State
		as.Same = (p.Edited.IsZero() || !p.Edited.After(st.Visited.Add(-time.Hour))) && st.Names[p.ID] != ""
		out = append(out, as)
	}
	return out, err
}

// One implements account.Feed. The post may exist under another id (after an edit at snac).
func (f *feed) One(ctx context.Context, id string) ([]account.Post, error) { return f.v.one(ctx, id) }

// one asks for one post.
func (v *API) one(ctx context.Context, id string) ([]account.Post, error) {
	p, err := v.c.Post(ctx, id)
	if err != nil {
		return nil, err
	}
	return []account.Post{postOf(p)}, nil
}

// Whole implements account.API.
func (*API) Whole() {}

// Batch implements account.API.
func (v *API) Batch() int {
	if v.server.Batch == service.Obeyed {
		return client.BatchSize
	}
	return account.LooksAlone
}

// LookAgain implements account.API.
func (v *API) LookAgain(ctx context.Context, posts []store.Record) ([]account.Post, []store.Record, error) {
	found, _, err := v.c.PostsByID(ctx, account.IDs(posts))
	return postsOf(found), account.Absent(posts, found, func(p client.Post) string { return p.ID }), err
}

// LookAt implements account.API.
func (v *API) LookAt(ctx context.Context, post store.Record) ([]account.Post, error) {
	return v.one(ctx, post.ID)
}

// FromStream implements account.API.
func (*API) FromStream(post any, had *store.Record, _ bool) (account.Post, bool) {
	p, ok := post.(client.Post)
	if !ok || !newer(p, had) {
		return account.Post{}, false
	}
	return postOf(p), true
}
