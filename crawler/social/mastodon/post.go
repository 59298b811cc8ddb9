package mastodon

import (
	"strings"

	client "github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// recordOf returns the record of an account.
func recordOf(p client.Profile) *store.Record {
	r := &store.Record{URL: p.URL, Raw: p.Raw, Digest: account.Digest(p.Raw), Links: p.Links}
	r.Title, r.Text, r.Author = p.Name, p.Note, p.Acct
	r.ID, r.URI, r.CreatedAt, r.LastPost = p.ID, p.URI, account.Moment(p.Created), account.Moment(p.LastPost)
	for _, f := range p.Fields {
		r.Fields = append(r.Fields, store.Field{Name: f.Name, Value: f.Value, Verified: account.Moment(f.Verified)})
		if placeName(f.Name) {
			r.Declared = append(r.Declared, f.Value)
		}
	}
	r.Counts = account.Counts(map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts})
	var wishes []string
	for _, o := range p.OptOuts {
		wishes = append(wishes, string(o))
		r.NoIndex = r.NoIndex || o == client.OptNoIndex
	}
	account.Wished(r, wishes)
	if p.Moved != nil {
		r.MovedTo = account.KeyOf("mastodon:" + p.Moved.Acct)
	}
	r.Media = account.Pictures(p.Avatar, p.Header)
	account.Flagged(r, map[string]bool{"bot": p.Bot, "group": p.Group, "locked": p.Locked, "suspended": p.Suspended,
		"limited": p.Limited, "memorial": p.Memorial, "hides-lists": p.HidesLists == service.Yes})
	if r.NoIndex {
		r.Text = ""
	}
	return r
}

// placeName reports whether the name of a profile field is one that people use for their place.
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

// URIOf returns the URI of a post. It is the same on every server, and after an edit.
func URIOf(p client.Post) string {
	for _, s := range [...]string{p.URI, p.URL} {
		if s != "" && len(s) <= store.MaxPostURI {
			return s
		}
	}
	return "id:" + p.ID
}

// parentOf returns the URI of the post that p replies to, if it follows from p's own URI. It does
// if both posts have one author and were written at this server, and URIs there end in the id.
// Otherwise it returns "id:" and the server's id of that post.
func parentOf(p client.Post) string {
	if stem, ok := strings.CutSuffix(URIOf(p), "/"+p.ID); ok && p.ID != "" && p.Author.ID != "" &&
		p.ReplyToAuthor == p.Author.ID {
		if uri := stem + "/" + p.ReplyTo; len(uri) <= store.MaxPostURI {
			return uri
		}
	}
	return "id:" + p.ReplyTo
}

// postsOf converts posts to the type of package account.
func postsOf(all []client.Post) (out []account.Post) {
	for _, p := range all {
		out = append(out, postOf(p))
	}
	return out
}

// postOf converts a post to the type of package account.
func postOf(p client.Post) account.Post {
	out := account.Post{ID: p.ID, By: writerOf(p.Author), Closed: !p.ForAll(), ReplyTo: p.ReplyTo}
	r := &out.Record
	r.Post = URIOf(p)
	r.ID, r.PublishedAt, r.EditedAt = p.ID, account.Moment(p.Created), account.Moment(p.Edited)
	r.URL = p.URL
	r.Author, r.Name, r.Text, r.Warning, r.Lang, r.Visibility = p.Author.Acct, p.Author.Name, p.Text, p.Warning, p.Lang,
		p.Visibility
	r.Tags, r.Choices, r.Links, r.Raw, r.Digest = p.Tags, p.Choices, p.Links, p.Raw, account.Digest(p.Raw)
	who := func(acct string) partition.Key { return account.KeyOf("mastodon:" + acct) }
	for _, m := range p.Mentions {
		k := who(m.Acct)
		r.Mentions = append(r.Mentions, store.Mention{Key: k, Name: m.Acct})
		if m.ID != "" && m.ID == p.ReplyToAuthor {
			r.InReplyToUser = k
			out.Lead(k, "reply")
		}
		out.Lead(k, "mention")
	}
	if p.ReplyTo != "" {
		r.InReplyTo = parentOf(p)
		if p.ReplyToAuthor == p.Author.ID && p.Author.ID != "" {
			r.InReplyToUser = who(p.Author.Acct)
		}
	}
	if p.Boost != nil {
		out.Boosted = writerOf(p.Boost.Author)
		r.BoostOf, r.Text = URIOf(*p.Boost), ""
		out.Lead(who(p.Boost.Author.Acct), "boost")
	}
	if p.Quote != nil {
		out.Quoted = writerOf(p.Quote.Author)
		r.QuoteOf = URIOf(*p.Quote)
		if out.Quoted.Wish() == "" {
			out.Lead(who(p.Quote.Author.Acct), "quote")
		}
	}
	for _, m := range p.Media {
		r.Media = append(r.Media, store.Media{Type: m.Type, URL: m.URL, Remote: m.Remote, Alt: m.Alt})
	}
	r.Counts = account.Counts(map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites})
	if p.Sensitive {
		r.Flags = append(r.Flags, "sensitive")
	}
	return out
}

// writerOf returns an author as an answer shows the author.
func writerOf(p client.Profile) account.Writer {
	var tags []string
	for _, o := range p.OptOuts {
		tags = append(tags, string(o))
	}
	w := account.Said(account.KeyOf("mastodon:"+p.Acct), tags)
	w.NoIndex = w.NoIndex || p.NoIndex == service.Yes
	return w
}

// newer reports whether p is a later version than had. Events have no time, and a server may repeat
// old ones. A post that was deleted stays deleted, unless a reading finds it.
func newer(p client.Post, had *store.Record) bool {
	return had == nil || !had.Deleted && !p.Edited.IsZero() && (had.EditedAt == nil || p.Edited.After(*had.EditedAt))
}
