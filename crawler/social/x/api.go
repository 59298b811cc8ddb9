package x

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/twitter"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// API is the account.API of X. X requires a token and charges for each user and post that it
// returns. A call is made only if the money of the day pays for the most that it may return.
type API struct {
	account.Visit
	calls   *calls.Caller
	session *calls.Session
	o       Options
	c       *twitter.Client
}

// Options are the address of the server, and what was learned of the requests that it accepts.
type Options struct {
	Base    string
	Dialect *twitter.Dialect
}

// New returns the API of one visit, which makes its calls with session.
func New(v account.Visit, c *calls.Caller, session *calls.Session, o Options) *API {
	return &API{Visit: v, calls: c, session: session, o: o}
}

// Prices in millionths of a US dollar, as in the table of budgets. Pages are so small that the
// money of a day pays for pagesADay of them, but they have at least 10 items.
const (
	priceUser = 10_000
	pricePost = 5_000
	pagesADay = 4
)

// errNoToken is the reason why X is not asked.
var errNoToken = errors.New("no token: X answers only requests with one; give it with --token-file")

// Enter implements account.API.
func (v *API) Enter(context.Context) error {
	site := v.Key.Site()
	creds := v.calls.Tokens.At(site)
	if len(creds) == 0 {
		return &service.Fault{Service: "twitter", Op: "token", Word: service.NeedsToken, Retry: -1, Err: errNoToken}
	}
	p, err := v.calls.Budget(site, "x-app")
	if err != nil {
		return err
	}
	least := v.calls.Tokens.Daily(site)[p.Names[0]]
	for _, daily := range v.calls.Tokens.Daily(site) {
		least = min(least, daily)
	}
	v.c, err = twitter.New(twitter.Options{Base: v.o.Base, Credential: creds[p.Names[0]], Dialect: v.o.Dialect,
		Now: v.calls.Now, Do: v.session.Within(p, creds, costs),
		Posts: int(min(max(least/pricePost/pagesADay, 10), 100)),
		Users: int(min(max(least/priceUser/pagesADay, 10), 1000))})
	return err
}

// costs returns the charge of a call.
func costs(c service.Call) calls.Charge {
	out := calls.Charge{Class: string(c.Class), Items: 1, Kind: "user", Had: idsIn}
	switch c.Class {
	case twitter.ClassPosts:
		out.Class, out.Kind = "timeline", "post"
	case twitter.ClassPost:
		out.Class, out.Kind = "posts", "post"
	case twitter.ClassSearch:
		out.Kind = "post"
	}
	u, err := url.Parse(c.Request.URL)
	if err != nil {
		return out
	}
	q := u.Query()
	if n, err := strconv.ParseInt(q.Get("max_results"), 10, 64); err == nil {
		out.Items = n
	}
	for _, asked := range [...]string{q.Get("ids"), q.Get("usernames")} {
		if asked != "" {
			out.Items = int64(strings.Count(asked, ",")) + 1
		}
	}
	return out
}

// idsIn returns the ids of the things in an answer.
func idsIn(body []byte) (ids []string, ok bool) {
	type thing struct {
		ID service.Text `json:"id"`
	}
	var w struct {
		Data json.RawMessage `json:"data"`
	}
	if !service.Object(body) || !service.Decoded(json.Unmarshal(body, &w)) {
		return nil, false
	}
	var all service.List[thing]
	switch {
	case len(w.Data) == 0 || string(w.Data) == "null":
		return nil, true
	case service.Object(w.Data):
		var one thing
		if !service.Decoded(json.Unmarshal(w.Data, &one)) {
			return nil, false
		}
		all.All = []thing{one}
	case json.Unmarshal(w.Data, &all) != nil || !all.Is || all.More || all.Bad > 0:
		return nil, false
	}
	for _, t := range all.All {
		ids = append(ids, string(t.ID))
	}
	return ids, true
}

// id returns the id of the Key's account.
func (v *API) id() string { return account.NameOf(v.Key.Account()) }

// Most implements account.API. The money of a day pays for pagesADay such calls.
func (v *API) Most() int {
	least := int64(twitter.BatchSize)
	for _, daily := range v.calls.Tokens.Daily(v.Key.Site()) {
		least = min(least, daily/priceUser/pagesADay)
	}
	return int(max(least, 1))
}

// Called implements account.API. It returns an id, or for the Key of a name the name in lower case.
func (*API) Called(k partition.Key, _ *account.State) string {
	if k.Kind() == partition.KindName {
		return strings.ToLower(strings.TrimPrefix(account.NameOf(k), "@"))
	}
	return account.NameOf(k.Account())
}

// Look implements account.API.
func (v *API) Look(ctx context.Context, names []string) (map[string]any, error) {
	out := map[string]any{}
	if v.Key.Kind() != partition.KindName {
		all, _, err := v.c.Users(ctx, names)
		for _, p := range all {
			out[p.ID] = p
		}
		return out, err
	}
	all, _, err := v.c.UsersByName(ctx, names)
	for _, p := range all {
		out[strings.ToLower(p.Acct)] = p
	}
	return out, err
}

// Counts implements account.API.
func (*API) Counts(int64) bool { return true }

// Class implements account.API.
func (*API) Class() string { return string(twitter.ClassUsers) }

// Named implements account.API.
func (v *API) Named(ctx context.Context, had any) (partition.Key, error) {
	if p, ok := had.(twitter.Profile); ok {
		return p.Key()
	}
	found, absent, err := v.c.UsersByName(ctx, []string{account.NameOf(v.Key)})
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].Key()
	}
	return "", gone(absent)
}

// gone returns the Fault for an account or post that is absent.
func gone(absent []twitter.Absence) error {
	f := &service.Fault{Service: "twitter", Op: "lookup", Word: service.Gone, FromAPI: true, Retry: -1}
	if len(absent) > 0 {
		f.Word, f.Said = absent[0].Word, absent[0].Said
	}
	return f
}

// Profile implements account.API.
func (v *API) Profile(ctx context.Context, had any) (account.Person, error) {
	p, ok := had.(twitter.Profile)
	var err error
	if !ok {
		p, err = v.c.User(ctx, v.id())
	}
	var f *service.Fault
	if errors.As(err, &f) && f.Word == service.Gone && strings.Contains(strings.ToLower(f.Said), "suspended") {
		return account.Person{ID: v.id(), Suspended: true}, nil
	}
	if err != nil {
		return account.Person{}, err
	}
	r := &store.Record{URL: p.URL, Raw: p.Raw, Digest: account.Digest(p.Raw), Links: p.Links}
	r.Title, r.Text, r.Author, r.ID, r.CreatedAt = p.Name, p.Note, p.Acct, p.ID, account.Moment(p.Created)
	if p.Location != "" {
		r.Declared = []string{p.Location}
	}
	r.Counts = account.Counts(map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts,
		"listed": p.Listed})
	r.Media = account.Pictures(p.Avatar, "")
	account.Wished(r, service.Wishes(p.Name, p.Note))
	account.Flagged(r, map[string]bool{"protected": p.Protected, "verified": p.Verified})
	if r.NoIndex {
		r.Text = ""
	}
	return account.Person{As: p, ID: p.ID, Record: r, Posts: p.Posts, NoIndex: r.NoIndex, Protected: p.Protected,
		Edges: func(_ context.Context, side service.Side) (account.Edges, error) {
			return account.ListOf(v.c.Edges(p, side, service.Limits{}))
		}}, nil
}

// Resume implements account.API.
func (v *API) Resume(from service.Checkpoint) (account.Edges, error) {
	return account.ListOf(v.c.ResumeEdges(from, service.Limits{}))
}

// Feeds implements account.API. The feed has the posts of an account, or the results of a search.
func (v *API) Feeds(_ context.Context, back int) ([]account.Feed, error) {
	f := twitter.PostsOf(v.State.ID)
	if k := v.Key; k.Kind() == partition.KindSearch {
		f = twitter.Search(account.Query(k))
	}
	tl, err := v.c.Timeline(f, v.State.Mark, service.Reading{Back: back, Claimed: v.State.Claimed})
	if err != nil {
		return nil, err
	}
	return []account.Feed{&feed{tl, v, map[string]bool{}}}, nil
}

// feed implements account.Feed.
type feed struct {
	*twitter.Timeline
	v        *API
	replaced map[string]bool // old versions of posts that came in another version
}

// Kept implements account.Feed.
func (f *feed) Kept() *service.Mark { return &f.v.State.Mark }

// URI implements account.Feed.
func (f *feed) URI(id string) string { return f.v.State.Names[id] }

// Empty implements account.Feed. The service says of each post what became of it.
func (*feed) Empty() bool { return false }

// posts converts posts and notes their old versions.
func (f *feed) posts(all []twitter.Post) []account.Post {
	for _, p := range all {
		for _, was := range p.Versions {
			if was != p.ID {
				f.replaced[was] = true
			}
		}
	}
	return postsOf(all)
}

// Page implements account.Feed.
func (f *feed) Page(ctx context.Context) ([]account.Post, error) {
	b, err := f.Next(ctx)
	out := f.posts(b.Posts)
	for _, p := range b.Again {
		as := postOf(p)
		as.Same = true
		out = append(out, as)
	}
	return out, err
}

// One implements account.Feed.
func (f *feed) One(ctx context.Context, id string) ([]account.Post, error) {
	if f.replaced[id] { // it exists in another version
		return nil, nil
	}
	found, absent, err := f.v.c.PostsByID(ctx, []string{id})
	out := f.posts(found)
	// a post that is no longer shown to us may still exist
	if err != nil || len(found) > 0 || absent[0].Word != service.Gone {
		return out, err
	}
	return nil, gone(absent)
}

// Whole implements account.API.
func (*API) Whole() {}

// Batch implements account.API. The share of a day's money for rounds pays for one such call.
func (v *API) Batch() int {
	least := int64(twitter.BatchSize)
	for _, daily := range v.calls.Tokens.Daily(v.Key.Site()) {
		least = min(least, int64(calls.Share*float64(daily))/pricePost)
	}
	return int(max(least, account.LooksAlone+1))
}

// LookAgain implements account.API.
func (v *API) LookAgain(ctx context.Context, posts []store.Record) ([]account.Post, []store.Record, error) {
	found, _, err := v.c.PostsByID(ctx, account.IDs(posts))
	return postsOf(found), account.Absent(posts, found, func(p twitter.Post) string { return p.ID }), err
}

// LookAt implements account.API.
func (v *API) LookAt(ctx context.Context, post store.Record) ([]account.Post, error) {
	found, absent, err := v.c.PostsByID(ctx, []string{post.ID})
	if err != nil || len(found) > 0 {
		return postsOf(found), err
	}
	return nil, gone(absent)
}

// FromStream implements account.API. No stream of X is read.
func (*API) FromStream(any, *store.Record, bool) (account.Post, bool) { return account.Post{}, false }
