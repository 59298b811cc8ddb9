package social

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// mastodonAPI is the api of a Mastodon-compatible server: that of the Key's host.
type mastodonAPI struct {
	*visit
	host   string
	server mastodon.Server
	c      *mastodon.Client
}

// enter is of api.
func (v *mastodonAPI) enter(ctx context.Context) error {
	info, known, err := v.s.server(v.host, v.now)
	if err != nil {
		return &storeError{err}
	}
	if err := v.open(info); err != nil {
		return err
	}
	if known {
		return nil
	}
	sample := ""
	if a := v.t.Due.Key.Account(); a != "" {
		sample = string(a)[len("mastodon:"):]
	}
	left := v.left
	v.left = maxCalls // of a probe; they are not of the work
	info, err = v.c.Resume(ctx, sample, info)
	v.left = left
	if err != nil {
		return err
	}
	if err := v.s.learn(v.host, info); err != nil {
		return &storeError{err}
	}
	return v.open(info)
}

// open makes the client for a server that is what info says.
func (v *mastodonAPI) open(info mastodon.Server) error {
	v.server = info
	site := v.t.Due.Key.Site()
	p, err := v.s.rateBudget(site, tableOf(info.Software))
	if err != nil {
		return err
	}
	domain := info.Domain
	if domain == "" {
		domain = v.host
	}
	creds := v.s.tokens[site]
	v.c, err = mastodon.New(mastodon.Options{Base: base(v.host), Domain: domain, Now: v.s.o.Now,
		Credential: creds[p.names[0]],
		Do: v.within(p, creds, func(c service.Call) charge {
			if c.Paging {
				return charge{class: "paging"}
			}
			return charge{class: classRead, person: strings.HasSuffix(c.Request.URL, "/verify_credentials")}
		})})
	return err
}

// tableOf is the table of limits of a software. What is not known yet is asked as Mastodon may
// be; most of the others say nothing of limits.
func tableOf(software string) string {
	switch software {
	case "", "mastodon", "hometown":
		return "mastodon"
	case "gotosocial":
		return "gotosocial"
	}
	return "fediverse"
}

// most is of api.
func (v *mastodonAPI) most() int {
	if v.server.Batch == service.Obeyed {
		return mastodon.BatchSize
	}
	return 1
}

// called is of api: by the id, which is known from the second visit on.
func (*mastodonAPI) called(_ partition.Key, st *state) string { return st.ID }

// look is of api.
func (v *mastodonAPI) look(ctx context.Context, names []string) (map[string]any, error) {
	all, _, err := v.c.Accounts(ctx, names)
	out := map[string]any{}
	for _, p := range all {
		out[p.ID] = p
	}
	return out, err
}

// counts is of api. Some servers say 0 of everybody.
func (v *mastodonAPI) counts(posts int64) bool { return posts > 0 }

// class is of api.
func (*mastodonAPI) class() string { return classRead }

// named is of api: an account's name is its Key here.
func (v *mastodonAPI) named(context.Context, any) (partition.Key, error) { return v.t.Due.Key, nil }

// profile is of api: by name the first time, later by the id, which stays when a name
// is given to somebody else.
func (v *mastodonAPI) profile(ctx context.Context, had any) (person, error) {
	p, ok := had.(mastodon.Profile)
	var err error
	switch {
	case ok:
	case v.st.ID == "":
		user, _, _ := strings.Cut(string(v.t.Due.Key.Account())[len("mastodon:"):], "@")
		p, err = v.c.Lookup(ctx, user)
	default:
		p, err = v.c.Account(ctx, v.st.ID)
	}
	if err != nil {
		return person{}, err
	}
	out := person{as: p, id: p.ID, record: v.account(p), posts: p.Posts, lastPost: p.LastPost, suspended: p.Suspended,
		edges: func(ctx context.Context, side service.Side) (edges, error) {
			believe, err := v.whose(ctx, p, side)
			if err != nil {
				return nil, err
			}
			return listOf(v.c.Edges(p, side, believe, service.Limits{}))
		}}
	out.noIndex = p.NoIndex == service.Yes || out.record.NoIndex
	if p.Moved != nil {
		out.moved, out.movedTo = p.Moved.Acct, out.record.MovedTo
	}
	return out, nil
}

// resume is of api.
func (v *mastodonAPI) resume(from service.Checkpoint) (edges, error) {
	side := service.Followers
	if v.t.Due.Key.Kind() == partition.KindFollowing {
		side = service.Following
	}
	return listOf(v.c.ResumeEdges(from, v.server.ListOf(side), service.Limits{}))
}

// whose finds out whether the server gives p's list, or that of the owner of this peer's token. What it learns is kept
// with the server, so that few lists cost the calls.
func (v *mastodonAPI) whose(ctx context.Context, p mastodon.Profile, side service.Side) (service.Word, error) {
	creds := v.s.tokens[v.t.Due.Key.Site()]
	if v.only = v.used; v.only == "" && len(creds) > 0 {
		v.only = slices.Sorted(maps.Keys(creds))[0]
	}
	defer func() { v.only = "" }()
	info, believe, err := v.c.Whose(ctx, v.server, p, side, len(creds) < 2)
	if err != nil || info.OfFollowers == v.server.OfFollowers && info.OfFollowing == v.server.OfFollowing {
		return believe, err
	}
	v.server = info
	if err := v.s.learn(v.host, info); err != nil {
		return "", &storeError{err}
	}
	return believe, nil
}

// feeds is of api: one, read from the newest down to what was read before. That costs no paging, of
// which a Mastodon allows a third as much as of other calls, as long as a page is enough;
// and each page shows what was edited or deleted of the last forty.
func (v *mastodonAPI) feeds(context.Context) ([]feed, error) {
	f, back := mastodon.PostsOf(v.st.ID), v.back()
	switch k := v.t.Due.Key; k.Kind() {
	case partition.KindTimeline:
		f, back = mastodon.Public(true), v.s.o.TagBack
	case partition.KindTag:
		_, tag, _ := strings.Cut(string(k), "/tag/")
		f, back = mastodon.Tagged(unescaped(tag), false), v.s.o.TagBack
	}
	tl, err := v.c.Timeline(f, v.st.Mark, mastodon.Reading{
		Paging: mastodon.Paging{Min: service.Ignored, Max: v.server.Timeline.Max}, Back: back, Claimed: v.st.Claimed,
	})
	if err != nil {
		return nil, err
	}
	page := func(ctx context.Context) error {
		b, err := tl.Next(ctx)
		for _, p := range b.Posts {
			v.post(p)
		}
		for _, p := range b.Again {
			if !p.Edited.IsZero() && p.Edited.After(v.st.Visited.Add(-time.Hour)) || v.st.Names[p.ID] == "" {
				v.post(p)
			} else {
				v.may(uriOf(p), p.ID, peopleAtMastodon(p))
			}
		}
		return err
	}
	one := func(ctx context.Context, id string) error {
		p, err := v.c.Post(ctx, id)
		if err == nil { // it is there, under this id or another (an edit at snac)
			v.post(p)
		}
		return err
	}
	return []feed{{tl, &v.st.Mark, page, one, func(id string) string { return v.st.Names[id] }, tl.Empty}}, nil
}

// batch is of api.
func (v *mastodonAPI) batch() int {
	if v.server.Batch == service.Obeyed {
		return mastodon.BatchSize
	}
	return roundCalls
}

// lookAgain is of api.
func (v *mastodonAPI) lookAgain(ctx context.Context, posts []store.Record) ([]store.Record, error) {
	found, _, err := v.c.PostsByID(ctx, idsOf(posts))
	return takenIn(posts, found, func(p mastodon.Post) string { return p.ID }, v.post), err
}

// lookAt is of api.
func (v *mastodonAPI) lookAt(ctx context.Context, post store.Record) error {
	p, err := v.c.Post(ctx, post.ID)
	if err == nil {
		v.post(p)
	}
	return err
}

// takenIn takes in what was found of posts, and returns those of them that were not found.
func takenIn[P any](posts []store.Record, found []P, id func(P) string, take func(P)) (absent []store.Record) {
	there := map[string]bool{}
	for _, p := range found {
		there[id(p)] = true
		take(p)
	}
	return slices.DeleteFunc(slices.Clone(posts), func(r store.Record) bool { return there[r.ID] })
}

// idsOf are the ids of posts at their server.
func idsOf(posts []store.Record) (out []string) {
	for _, p := range posts {
		out = append(out, p.ID)
	}
	return out
}

// account is the record of an account.
func (v *mastodonAPI) account(p mastodon.Profile) *store.Record {
	r := v.profileRecord(p.URL, p.Raw, p.Links)
	r.Title, r.Text, r.Author = p.Name, p.Note, p.Acct
	r.ID, r.URI, r.CreatedAt, r.LastPost = p.ID, p.URI, moment(p.Created), moment(p.LastPost)
	for _, f := range p.Fields {
		r.Fields = append(r.Fields, store.Field{Name: f.Name, Value: f.Value, Verified: moment(f.Verified)})
		if placeName(f.Name) {
			r.Declared = append(r.Declared, f.Value)
		}
	}
	r.Counts = counts(map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts})
	var wishes []string
	for _, o := range p.OptOuts {
		wishes = append(wishes, string(o))
		r.NoIndex = r.NoIndex || o == mastodon.OptNoIndex
	}
	wished(r, wishes)
	if p.Moved != nil {
		r.MovedTo = keyOf("mastodon:" + p.Moved.Acct)
	}
	r.Media = pictures(p.Avatar, p.Header)
	flagged(r, map[string]bool{"bot": p.Bot, "group": p.Group, "locked": p.Locked, "suspended": p.Suspended,
		"limited": p.Limited, "memorial": p.Memorial, "hides-lists": p.HidesLists == service.Yes})
	if r.NoIndex {
		r.Text = ""
	}
	return r
}

// placeName says whether a line of a profile is named as the one with a place mostly is.
func placeName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"locali", "location", "ubicaci", "lugar", "place", "onde", "where", "cidade",
		"city", "país", "country", "📍", "ort", "lieu", "ville", "based"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// uriOf is the name of a post that it has on every server, and after an edit.
func uriOf(p mastodon.Post) string {
	for _, s := range [...]string{p.URI, p.URL} {
		if s != "" && len(s) <= store.MaxPostURI {
			return s
		}
	}
	return "id:" + p.ID
}

// parentOf is the name of the post that p answers, where p's own shows it: both are of one author and were written at
// this server, whose names end in its ids. Else it is the server's id of it.
func parentOf(p mastodon.Post) string {
	if stem, ok := strings.CutSuffix(uriOf(p), "/"+p.ID); ok && p.ID != "" && p.Author.ID != "" &&
		p.ReplyToAuthor == p.Author.ID {
		if uri := stem + "/" + p.ReplyTo; len(uri) <= store.MaxPostURI {
			return uri
		}
	}
	return "id:" + p.ReplyTo
}

// post takes in one post.
func (v *mastodonAPI) post(p mastodon.Post) {
	of := peopleAtMastodon(p)
	r := v.draft(uriOf(p), p.ID, of)
	if r == nil {
		return
	}
	r.ID, r.PublishedAt, r.EditedAt = p.ID, moment(p.Created), moment(p.Edited)
	if p.URL != "" {
		r.URL = p.URL
	}
	r.Author, r.Name, r.Text, r.Warning, r.Lang, r.Visibility = p.Author.Acct, p.Author.Name, p.Text, p.Warning, p.Lang,
		p.Visibility
	r.Tags, r.Choices, r.Links, r.Raw, r.Digest = p.Tags, p.Choices, p.Links, p.Raw, digest(p.Raw)
	who := func(acct string) partition.Key { return keyOf("mastodon:" + acct) }
	v.wrote(r.Record, who(p.Author.Acct))
	for _, m := range p.Mentions {
		k := who(m.Acct)
		r.Mentions = append(r.Mentions, store.Mention{Key: k, Name: m.Acct})
		if m.ID != "" && m.ID == p.ReplyToAuthor {
			r.InReplyToUser = k
			v.candidate(k, "reply")
		}
		v.candidate(k, "mention")
	}
	if p.ReplyTo != "" {
		if r.InReplyTo = v.st.Names[p.ReplyTo]; r.InReplyTo == "" {
			r.InReplyTo = parentOf(p)
		}
		if p.ReplyToAuthor == p.Author.ID && p.Author.ID != "" {
			r.InReplyToUser = who(p.Author.Acct)
		}
	}
	if p.Boost != nil {
		r.BoostOf, r.Text = uriOf(*p.Boost), ""
		v.candidate(who(p.Boost.Author.Acct), "boost")
	}
	if p.Quote != nil {
		r.QuoteOf = uriOf(*p.Quote)
		if of.quoted.wish() == "" {
			v.candidate(who(p.Quote.Author.Acct), "quote")
		}
	}
	for _, m := range p.Media {
		r.Media = append(r.Media, store.Media{Type: m.Type, URL: m.URL, Remote: m.Remote, Alt: m.Alt})
	}
	r.Counts = counts(map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites})
	if p.Sensitive {
		r.Flags = append(r.Flags, "sensitive")
	}
	v.take(r)
}

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

// serverRow is what the names of rows begin with that hold a mastodon.Server.
const serverRow = "api.server/"

// maxServers is how many servers are remembered in memory; all are in the store.
const maxServers = 10_000

func (s *Source) serverKey(host string) string {
	with := ""
	if sum := s.sum(partition.Site("mastodon:" + host)); sum != "" {
		with = "with a credential " + sum // what was found out with a bad one says nothing of a good one
	}
	sum := sha256.Sum256([]byte(host + "\x00" + with))
	return serverRow + hex.EncodeToString(sum[:16])
}

// server is what is known of a server; known is false when that is nothing, or too long ago.
// What was once known is given all the same: its software has not changed.
func (s *Source) server(host string, now time.Time) (info mastodon.Server, known bool, err error) {
	s.mu.Lock()
	info, ok := s.servers[host]
	s.mu.Unlock()
	if ok {
		return info, info.Fresh(now), nil
	}
	b, err := s.o.Store.Meta(s.serverKey(host))
	if errors.Is(err, store.ErrNotExist) {
		return mastodon.Server{}, false, nil
	}
	if err != nil {
		return mastodon.Server{}, false, err
	}
	if info, err = mastodon.DecodeServer(b); err != nil {
		s.o.Logger.Warn("what was known of a server is found out anew", "server", host, "err", err)
		return mastodon.Server{}, false, nil
	}
	s.remember(host, info)
	return info, info.Fresh(now), nil
}

// learn keeps what a server was found to be.
func (s *Source) learn(host string, info mastodon.Server) error {
	if err := s.o.Store.SetMeta(s.serverKey(host), info.Encode()); err != nil {
		return err
	}
	s.remember(host, info)
	return nil
}

func (s *Source) remember(host string, info mastodon.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.servers) >= maxServers {
		clear(s.servers)
	}
	s.servers[host] = info
}
