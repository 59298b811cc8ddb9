package social

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/twitter"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// twitterAPI is the api of X, which answers nobody without a token and charges for each user and post
// that it returns: a call is made when the money of the day is enough for the most that it may bring.
type twitterAPI struct {
	*visit
	c *twitter.Client
}

// Prices in millionths of a US dollar, as in the table of budgets: a page is no larger than what a
// day's money buys a few times.
const (
	priceUser = 10_000
	pricePost = 5_000
	pagesADay = 4
)

// errNoToken is why X is not asked.
var errNoToken = errors.New("no token, without which X answers nobody: give one by --token-file")

// enter is of api.
func (v *twitterAPI) enter(context.Context) error {
	site := v.t.Due.Key.Site()
	creds := v.s.tokens[site]
	if len(creds) == 0 {
		return &service.Fault{Service: "twitter", Op: "token", Word: service.NeedsToken, Retry: -1, Err: errNoToken}
	}
	p, err := v.s.rateBudget(site, "x-app")
	if err != nil {
		return err
	}
	least := v.s.daily[site][p.names[0]]
	for _, daily := range v.s.daily[site] {
		least = min(least, daily)
	}
	v.c, err = twitter.New(twitter.Options{Base: v.s.o.X, Credential: creds[p.names[0]], Dialect: &v.s.dialect,
		Now: v.s.o.Now, Do: v.within(p, creds, costs),
		Posts: int(min(max(least/pricePost/pagesADay, 10), 100)),
		Users: int(min(max(least/priceUser/pagesADay, 10), 1000))})
	return err
}

// costs is what a call counts as.
func costs(c service.Call) charge {
	out := charge{class: string(c.Class), items: 1, kind: "user", had: idsIn}
	switch c.Class {
	case twitter.ClassPosts:
		out.class, out.kind = "timeline", "post"
	case twitter.ClassPost:
		out.class, out.kind = "posts", "post"
	case twitter.ClassSearch:
		out.kind = "post"
	}
	u, err := url.Parse(c.Request.URL)
	if err != nil {
		return out
	}
	q := u.Query()
	if n, err := strconv.ParseInt(q.Get("max_results"), 10, 64); err == nil {
		out.items = n
	}
	for _, asked := range [...]string{q.Get("ids"), q.Get("usernames")} {
		if asked != "" {
			out.items = int64(strings.Count(asked, ",")) + 1
		}
	}
	return out
}

// idsIn are the ids of what an answer returns.
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

// id is the account of the Key.
func (v *twitterAPI) id() string { return nameOf(v.t.Due.Key.Account()) }

// most is of api: as many as a day's money buys a few times.
func (v *twitterAPI) most() int {
	least := int64(twitter.BatchSize)
	for _, daily := range v.s.daily[v.t.Due.Key.Site()] {
		least = min(least, daily/priceUser/pagesADay)
	}
	return int(max(least, 1))
}

// called is of api: ids, or names where whose they are is what is asked.
func (*twitterAPI) called(k partition.Key, _ *state) string {
	if k.Kind() == partition.KindName {
		return strings.ToLower(strings.TrimPrefix(nameOf(k), "@"))
	}
	return nameOf(k.Account())
}

// look is of api.
func (v *twitterAPI) look(ctx context.Context, names []string) (map[string]any, error) {
	out := map[string]any{}
	if v.t.Due.Key.Kind() != partition.KindName {
		all, _, err := v.c.Users(ctx, names)
		for _, p := range all {
			out[p.ID] = p
		}
		return out, err
	}
	all, _, err := v.c.UsersByName(ctx, names)
	for _, p := range all {
		out[strings.ToLower(p.Acct)] = p
		if k, err := p.Key(); err == nil { // who is found is visited next
			v.s.ahead.put(k, found{at: v.now, profile: p})
		}
	}
	return out, err
}

// counts is of api.
func (*twitterAPI) counts(int64) bool { return true }

// class is of api.
func (*twitterAPI) class() string { return string(twitter.ClassUsers) }

// named is of api.
func (v *twitterAPI) named(ctx context.Context, had any) (partition.Key, error) {
	if p, ok := had.(twitter.Profile); ok {
		return p.Key()
	}
	found, absent, err := v.c.UsersByName(ctx, []string{nameOf(v.t.Due.Key)})
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].Key()
	}
	return "", gone(absent)
}

// gone is the Fault that an absence is.
func gone(absent []twitter.Absence) error {
	f := &service.Fault{Service: "twitter", Op: "lookup", Word: service.Gone, FromAPI: true, Retry: -1}
	if len(absent) > 0 {
		f.Word, f.Said = absent[0].Word, absent[0].Said
	}
	return f
}

// profile is of api.
func (v *twitterAPI) profile(ctx context.Context, had any) (person, error) {
	p, ok := had.(twitter.Profile)
	var err error
	if !ok {
		p, err = v.c.User(ctx, v.id())
	}
	var f *service.Fault
	if errors.As(err, &f) && f.Word == service.Gone && strings.Contains(strings.ToLower(f.Said), "suspended") {
		return person{id: v.id(), suspended: true}, nil
	}
	if err != nil {
		return person{}, err
	}
	r := v.profileRecord(p.URL, p.Raw, p.Links)
	r.Title, r.Text, r.Author, r.ID, r.CreatedAt = p.Name, p.Note, p.Acct, p.ID, moment(p.Created)
	if p.Location != "" {
		r.Declared = []string{p.Location}
	}
	r.Counts = counts(map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts,
		"listed": p.Listed})
	r.Media = pictures(p.Avatar, "")
	wished(r, service.Wishes(p.Name, p.Note))
	flagged(r, map[string]bool{"protected": p.Protected, "verified": p.Verified})
	if r.NoIndex {
		r.Text = ""
	}
	return person{as: p, id: p.ID, record: r, posts: p.Posts, noIndex: r.NoIndex, protected: p.Protected,
		edges: func(_ context.Context, side service.Side) (edges, error) {
			return listOf(v.c.Edges(p, side, service.Limits{}))
		}}, nil
}

// resume is of api.
func (v *twitterAPI) resume(from service.Checkpoint) (edges, error) {
	return listOf(v.c.ResumeEdges(from, service.Limits{}))
}

// feeds is of api: the posts of an account, or what a search finds.
func (v *twitterAPI) feeds(context.Context) ([]feed, error) {
	f, back := twitter.PostsOf(v.st.ID), v.back()
	if k := v.t.Due.Key; k.Kind() == partition.KindSearch {
		f, back = twitter.Search(query(k)), v.s.o.TagBack
	}
	tl, err := v.c.Timeline(f, v.st.Mark, service.Reading{Back: back, Claimed: v.st.Claimed})
	if err != nil {
		return nil, err
	}
	replaced := map[string]bool{}
	took := func(p twitter.Post) {
		for _, was := range p.Versions {
			if was != p.ID {
				replaced[was] = true
			}
		}
		v.post(p)
	}
	page := func(ctx context.Context) error {
		b, err := tl.Next(ctx)
		for _, p := range b.Posts {
			took(p)
		}
		for _, p := range b.Again {
			v.may(uriOfX(p), p.ID, peopleAtX(p))
		}
		return err
	}
	one := func(ctx context.Context, id string) error {
		if replaced[id] { // it is there, as another version
			return nil
		}
		found, absent, err := v.c.PostsByID(ctx, []string{id})
		for _, p := range found {
			took(p)
		}
		if err != nil || len(found) > 0 || absent[0].Word != service.Gone { // not shown to us any more is not deleted
			return err
		}
		return gone(absent)
	}
	return []feed{{tl, &v.st.Mark, page, one, func(id string) string { return v.st.Names[id] }, nil}}, nil
}

// batch is of api: as many as a day's money buys a few times, within what rounds may use of it.
func (v *twitterAPI) batch() int {
	least := int64(twitter.BatchSize)
	for _, daily := range v.s.daily[v.t.Due.Key.Site()] {
		least = min(least, int64(roundShare*float64(daily))/pricePost)
	}
	return int(max(least, roundCalls+1))
}

// lookAgain is of api.
func (v *twitterAPI) lookAgain(ctx context.Context, posts []store.Record) ([]store.Record, error) {
	found, _, err := v.c.PostsByID(ctx, idsOf(posts))
	return takenIn(posts, found, func(p twitter.Post) string { return p.ID }, v.post), err
}

// lookAt is of api.
func (v *twitterAPI) lookAt(ctx context.Context, post store.Record) error {
	found, absent, err := v.c.PostsByID(ctx, []string{post.ID})
	for _, p := range found {
		v.post(p)
	}
	if err != nil || len(found) > 0 {
		return err
	}
	return gone(absent)
}

// uriOfX is the name of a post: by its first version.
func uriOfX(p twitter.Post) string {
	id := p.ID
	if len(p.Versions) > 0 {
		id = p.Versions[0]
	}
	return "https://x.com/i/status/" + id
}

// post takes in one post.
func (v *twitterAPI) post(p twitter.Post) {
	of := peopleAtX(p)
	r := v.draft(uriOfX(p), p.ID, of)
	if r == nil {
		return
	}
	r.URL, r.ID, r.PublishedAt = "https://x.com/i/status/"+p.ID, p.ID, moment(p.Created)
	if p.Edited() {
		r.EditedAt = moment(p.Created)
	}
	r.Author, r.Name, r.Text, r.Lang = p.Author.Acct, p.Author.Name, p.Text, p.Lang
	r.Tags, r.Links, r.Raw, r.Digest = p.Tags, p.Links, p.Raw, digest(p.Raw)
	who := func(id string) partition.Key { return keyOf("twitter:" + id) }
	v.wrote(r.Record, who(p.Author.ID))
	for _, m := range p.Mentions {
		k := who(m.ID)
		r.Mentions = append(r.Mentions, store.Mention{Key: k, Name: m.Acct})
		v.candidate(k, "mention")
	}
	if p.ReplyTo != "" {
		r.InReplyTo, r.InReplyToUser = uriOfX(twitter.Post{ID: p.ReplyTo}), who(p.ReplyToAuthor)
		v.candidate(r.InReplyToUser, "reply")
	}
	if p.Boost != nil {
		r.BoostOf, r.Text = uriOfX(*p.Boost), ""
		v.candidate(who(p.Boost.Author.ID), "boost")
	}
	if p.Quote != nil {
		r.QuoteOf = uriOfX(*p.Quote)
		if of.quoted.wish() == "" {
			v.candidate(who(p.Quote.Author.ID), "quote")
		}
	}
	for _, m := range p.Media {
		if m.URL != "" {
			r.Media = append(r.Media, store.Media{Type: m.Type, URL: m.URL, Alt: m.Alt})
		}
	}
	r.Counts = counts(map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites,
		"quotes": p.Quotes})
	flagged(r.Record, map[string]bool{"sensitive": p.Sensitive})
	v.take(r)
}
