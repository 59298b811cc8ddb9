package social

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// blueskyAPI is the api of AT Protocol. An AppView has profiles, lists and searches; the posts of an account
// are read at its PDS, which tells exactly what came since, was changed or deleted, and where that
// is the document of its DID says. Each of these servers has a budget of its own.
//
// Anybody writes such documents: what is asked because of one passes the guard of private
// addresses as every request does, and only https is believed, but for loopback, which the guard lets through where
// a person said so.
type blueskyAPI struct {
	*visit
	view *bluesky.Client
}

// again is how many posts of a repository are read again at each visit: the page has room for them.
const again = 30

// at is a client of a server that is asked within the budget of that site, by that table.
func (v *blueskyAPI) at(address string, site partition.Site, table string) (*bluesky.Client, error) {
	p, err := v.s.rateBudget(site, table)
	if err != nil {
		return nil, err
	}
	return bluesky.New(bluesky.Options{Base: address, Now: v.s.o.Now, Do: v.within(p, nil, func(c service.Call) charge {
		if c.Class == bluesky.ClassSearch && table == "bluesky-appview" {
			return charge{class: "search", closes: true}
		}
		return charge{class: classRead}
	})})
}

// siteAt is what the budget of a server is called that is no site of Keys.
func siteAt(address string) partition.Site { return partition.Site("bluesky:" + host(address)) }

// enter is of api.
func (v *blueskyAPI) enter(context.Context) (err error) {
	v.view, err = v.at(v.s.o.View, v.t.Due.Key.Site(), "bluesky-appview")
	return err
}

// did is the account of the Key.
func (v *blueskyAPI) did() string { return nameOf(v.t.Due.Key.Account()) }

// nameOf is a Key without its service, with its escapes: a DID may have %3A in it.
func nameOf(k partition.Key) string {
	_, name, _ := strings.Cut(string(k), ":")
	return name
}

// most is of api.
func (*blueskyAPI) most() int { return bluesky.BatchSize }

// called is of api. Handles are resolved one by one.
func (*blueskyAPI) called(k partition.Key, _ *state) string {
	if k.Kind() == partition.KindName {
		return ""
	}
	return nameOf(k.Account())
}

// look is of api.
func (v *blueskyAPI) look(ctx context.Context, names []string) (map[string]any, error) {
	all, _, err := v.view.Profiles(ctx, names)
	out := map[string]any{}
	for _, p := range all {
		out[p.ID] = p
	}
	return out, err
}

// counts is of api: an AppView counts no reposts, and its count comes late. That nothing was written the
// repository itself says, exactly (repo).
func (*blueskyAPI) counts(int64) bool { return false }

// class is of api.
func (*blueskyAPI) class() string { return classRead }

// named is of api.
func (v *blueskyAPI) named(ctx context.Context, _ any) (partition.Key, error) {
	id, err := v.view.Resolve(ctx, nameOf(v.t.Due.Key))
	if err != nil {
		return "", err
	}
	return partition.ParseKey("bluesky:" + id)
}

// profile is of api.
func (v *blueskyAPI) profile(ctx context.Context, had any) (person, error) {
	p, ok := had.(bluesky.Profile)
	var err error
	if !ok {
		p, err = v.view.Profile(ctx, v.did())
	}
	var f *service.Fault
	if errors.As(err, &f) && (strings.HasSuffix(f.Code, "Takedown") || strings.HasSuffix(f.Code, "Suspended") ||
		strings.HasSuffix(f.Code, "Deactivated")) {
		return person{id: v.did(), suspended: true}, nil
	}
	if err != nil {
		return person{}, err
	}
	r := v.profileRecord(p.URL, p.Raw, p.Links)
	r.Title, r.Text, r.Author, r.ID, r.URI, r.CreatedAt = p.Name, p.Note, p.Acct, p.ID, "at://"+p.ID, moment(p.Created)
	r.Counts = counts(map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts})
	r.Media = pictures(p.Avatar, p.Header)
	for _, l := range p.Labels {
		if l.By == p.ID { // what it says of itself
			r.Flags = append(r.Flags, l.Value)
		}
	}
	wished(r, service.Wishes(p.Name, p.Note))
	flagged(r, map[string]bool{notLoggedIn: p.NoUnauthenticated})
	if r.NoIndex {
		r.Text = ""
	}
	v.st.Acct, v.st.Name = p.Acct, p.Name
	return person{as: p, id: p.ID, record: r, posts: p.Posts, noIndex: r.NoIndex,
		edges: func(_ context.Context, side service.Side) (edges, error) {
			return listOf(v.view.Edges(p, side, "", service.Limits{}))
		}}, nil
}

// notLoggedIn is the label by which an account asks not to be shown to who is not logged in, as we are not.
const notLoggedIn = "!no-unauthenticated"

// resume is of api.
func (v *blueskyAPI) resume(from service.Checkpoint) (edges, error) {
	return listOf(v.view.ResumeEdges(from, "", service.Limits{}))
}

// feeds is of api: of an account its posts and its reposts, none where nothing was written since; of
// a search what it finds.
func (v *blueskyAPI) feeds(ctx context.Context) ([]feed, error) {
	if v.t.Due.Key.Kind() == partition.KindSearch {
		f, err := v.search()
		return []feed{f}, err
	}
	pds, repo, err := v.repo(ctx)
	if err != nil {
		return nil, err
	}
	if !repo.Active {
		v.gap(store.GapSkipped, "its repository is "+repo.Status)
		v.st.Profiled = v.st.Profiled.Add(-v.s.o.Profile) // what it says of that is asked for the next time
		return nil, nil
	}
	if v.rev = repo.Rev; repo.Rev != "" && repo.Rev == v.st.Rev {
		return nil, nil
	}
	var out []feed
	for _, collection := range [...]string{bluesky.Posts, bluesky.Reposts} {
		mark := &v.st.Mark
		how := service.Reading{Back: v.back(), Overlap: again, Claimed: v.st.Claimed}
		if collection == bluesky.Reposts {
			mark, how.Claimed = &v.st.Boosts, 0
		}
		uri := func(id string) string { return bluesky.URI{DID: v.did(), Collection: collection, Key: id}.String() }
		tl, err := pds.Timeline(bluesky.RecordsOf(v.did(), collection), *mark, how)
		if err != nil {
			return nil, err
		}
		one := func(ctx context.Context, id string) error { return v.recordAt(ctx, pds, uri(id)) }
		out = append(out, v.reading(tl, mark, one, uri, func(p bluesky.Post) string { return bluesky.KeyOf(p.ID) }))
	}
	return out, nil
}

// search is the feed of a search, as the AppView has it; #word is a hashtag.
func (v *blueskyAPI) search() (feed, error) {
	q := query(v.t.Due.Key)
	f := bluesky.Search(q)
	if tag, ok := strings.CutPrefix(q, "#"); ok && !strings.ContainsAny(tag, " #") {
		f = bluesky.Tagged(tag)
	}
	tl, err := v.view.Timeline(f, v.st.Mark, service.Reading{Back: v.s.o.TagBack})
	if err != nil {
		return feed{}, err
	}
	itself := func(uri string) string { return uri }
	return v.reading(tl, &v.st.Mark, v.found, itself, func(p bluesky.Post) string { return p.ID }), nil
}

// batch is of api.
func (*blueskyAPI) batch() int { return bluesky.BatchSize }

// lookAgain is of api: the AppView says which posts there are, in the version that it has. It knows no reposts, and
// what it has otherwise than it is kept the repository is asked for.
func (v *blueskyAPI) lookAgain(ctx context.Context, posts []store.Record) (absent []store.Record, err error) {
	var uris []string
	for _, r := range posts {
		if u, err := bluesky.ParseURI(r.Post); err == nil && u.Collection == bluesky.Posts {
			uris = append(uris, r.Post)
		}
	}
	there := map[string]bluesky.Post{}
	if len(uris) > 0 {
		found, _, err := v.view.PostsByURI(ctx, uris)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			there[p.ID] = p
		}
	}
	search := v.t.Due.Key.Kind() == partition.KindSearch
	for _, r := range posts {
		p, ok := there[r.Post]
		switch {
		case ok && search:
			v.post(p, p.ID)
		case ok && p.CID == r.ID:
			v.may(p.ID, bluesky.KeyOf(p.ID), peopleAtBluesky(p))
		default:
			absent = append(absent, r)
		}
	}
	return absent, nil
}

// lookAt is of api.
func (v *blueskyAPI) lookAt(ctx context.Context, post store.Record) error {
	if v.t.Due.Key.Kind() == partition.KindSearch {
		return v.found(ctx, post.Post)
	}
	if v.st.PDS == "" {
		if err := v.locate(ctx); err != nil {
			return err
		}
	}
	pds, err := v.at(v.st.PDS, siteAt(v.st.PDS), "bluesky-pds")
	if err != nil {
		return err
	}
	return v.recordAt(ctx, pds, post.Post)
}

// recordAt takes in a record as its repository has it.
func (v *blueskyAPI) recordAt(ctx context.Context, pds *bluesky.Client, uri string) error {
	p, err := pds.Record(ctx, uri)
	var f *service.Fault
	if errors.As(err, &f) && f.Word == service.Gone && f.Code != "RecordNotFound" { // the account, not the post
		f.Word = service.Closed
	}
	if err == nil {
		v.post(p, bluesky.KeyOf(uri))
	}
	return err
}

// found takes in a post as the AppView has it.
func (v *blueskyAPI) found(ctx context.Context, uri string) error {
	found, _, err := v.view.PostsByURI(ctx, []string{uri})
	if err == nil && len(found) == 0 {
		return &service.Fault{Service: "bluesky", Op: "post", Word: service.Gone, FromAPI: true, Retry: -1}
	}
	for _, p := range found {
		v.post(p, p.ID)
	}
	return err
}

// reading is a feed; id is what its Mark calls a post.
func (v *blueskyAPI) reading(tl *bluesky.Timeline, mark *service.Mark, one func(context.Context, string) error,
	uri func(string) string, id func(bluesky.Post) string) feed {
	return feed{tl, mark, func(ctx context.Context) error {
		b, err := tl.Next(ctx)
		for _, p := range b.Posts {
			v.post(p, id(p))
		}
		for i, p := range b.Again {
			if slices.Contains(b.Changed, i) {
				v.post(p, id(p))
			} else {
				v.may(p.ID, id(p), peopleAtBluesky(p))
			}
		}
		return err
	}, one, uri, nil}
}

// repo is the state of the account's repository, and a client of its PDS. One that has moved is looked
// for once more.
func (v *blueskyAPI) repo(ctx context.Context) (*bluesky.Client, bluesky.Repo, error) {
	known := v.st.PDS != ""
	if !known {
		if err := v.locate(ctx); err != nil {
			return nil, bluesky.Repo{}, err
		}
	}
	pds, err := v.at(v.st.PDS, siteAt(v.st.PDS), "bluesky-pds")
	if err != nil {
		return nil, bluesky.Repo{}, err
	}
	repo, err := pds.Repo(ctx, v.did())
	if word := service.WordOf(err); err != nil && known && (word == service.Gone || word == service.Unsupported ||
		word == service.NotJSON || word == service.Moved) {
		v.st.PDS = ""
		return v.repo(ctx)
	}
	var f *service.Fault
	// it may have moved: the next visit looks
	if errors.As(err, &f) && f.Word == service.Unreachable && f.Err != nil && !errors.Is(f.Err, errEnough) &&
		!isWait(f.Err) {
		v.st.PDS = ""
	}
	return pds, repo, err
}

// locate finds out which server has the account's records.
func (v *blueskyAPI) locate(ctx context.Context) error {
	address, _, err := bluesky.DocumentAddress(v.did(), v.s.o.Directory)
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
		if errors.As(err, &f) && f.Word == service.Gone { // the profile says whether the account is
			f.Word = service.Refused
		}
		return err
	}
	if !secure(who.PDS) {
		return &service.Fault{Service: "bluesky", Op: "document", Word: service.Misshapen, FromAPI: true, Retry: -1,
			Said: fmt.Sprintf("its records are nowhere that is asked: %.100q", who.PDS)}
	}
	v.st.PDS = who.PDS
	return nil
}

// secure says of an address that a document names whether it may be asked: by https, or on this machine.
func secure(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return false
	}
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && err == nil && a.IsLoopback()
}

// post takes in one post, which its feed's Mark calls id.
func (v *blueskyAPI) post(p bluesky.Post, id string) {
	of := peopleAtBluesky(p)
	r := v.draft(p.ID, id, of)
	if r == nil {
		return
	}
	r.ID, r.PublishedAt, r.Author, r.Name = p.CID, moment(p.Created), p.Author.Acct, p.Author.Name
	if at, err := bluesky.ParseURI(p.ID); err == nil && at.Collection == bluesky.Posts {
		r.URL = "https://bsky.app/profile/" + at.DID + "/post/" + at.Key
	}
	if p.Author.ID == v.did() { // a record has no names in it
		r.Author, r.Name = v.st.Acct, v.st.Name
	}
	r.Text, r.Tags, r.Links, r.Raw, r.Digest = p.Text, p.Tags, p.Links, p.Raw, digest(p.Raw)
	if len(p.Langs) > 0 {
		r.Lang = p.Langs[0]
	}
	who := func(did string) partition.Key { return keyOf("bluesky:" + did) }
	by := func(uri string) partition.Key {
		at, err := bluesky.ParseURI(uri)
		if err != nil {
			return ""
		}
		return who(at.DID)
	}
	v.wrote(r.Record, who(p.Author.ID))
	for _, m := range p.Mentions {
		k := who(m.ID)
		r.Mentions = append(r.Mentions, store.Mention{Key: k})
		v.candidate(k, "mention")
	}
	if p.ReplyTo != "" {
		r.InReplyTo, r.InReplyToUser = p.ReplyTo, by(p.ReplyTo)
		v.candidate(r.InReplyToUser, "reply")
	}
	if p.Boost != nil {
		r.BoostOf, r.Text = p.Boost.ID, ""
		v.candidate(by(p.Boost.ID), "boost")
	}
	if r.QuoteOf = p.Quote; p.Quote != "" && of.quoted.wish() == "" {
		v.candidate(by(p.Quote), "quote")
	}
	for _, m := range p.Media {
		at := m.URL
		if at == "" { // a blob of the repository
			at = v.st.PDS + "/xrpc/com.atproto.sync.getBlob?" + url.Values{"did": {p.Author.ID},
				"cid": {m.CID}}.Encode()
		}
		r.Media = append(r.Media, store.Media{Type: m.Type, URL: at, Alt: m.Alt})
	}
	r.Counts = counts(map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites,
		"quotes": p.Quotes})
	for _, l := range p.Labels {
		r.Flags = append(r.Flags, l.Value)
	}
	v.take(r)
}
