package x

import (
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/twitter"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// uriOf returns the URI of a post. It has the id of the first version.
func uriOf(p twitter.Post) string {
	id := p.ID
	if len(p.Versions) > 0 {
		id = p.Versions[0]
	}
	return "https://x.com/i/status/" + id
}

// postsOf converts posts to the type of package account.
func postsOf(all []twitter.Post) (out []account.Post) {
	for _, p := range all {
		out = append(out, postOf(p))
	}
	return out
}

// postOf converts a post to the type of package account.
func postOf(p twitter.Post) account.Post {
	out := account.Post{ID: p.ID, By: writerOf(p.Author), Closed: p.Author.Protected}
	r := &out.Record
	r.Post = uriOf(p)
	r.URL, r.ID, r.PublishedAt = "https://x.com/i/status/"+p.ID, p.ID, account.Moment(p.Created)
	if p.Edited() {
		r.EditedAt = account.Moment(p.Created)
	}
	r.Author, r.Name, r.Text, r.Lang = p.Author.Acct, p.Author.Name, p.Text, p.Lang
	r.Tags, r.Links, r.Raw, r.Digest = p.Tags, p.Links, p.Raw, account.Digest(p.Raw)
	who := func(id string) partition.Key { return account.KeyOf("twitter:" + id) }
	for _, m := range p.Mentions {
		k := who(m.ID)
		r.Mentions = append(r.Mentions, store.Mention{Key: k, Name: m.Acct})
		out.Lead(k, "mention")
	}
	if p.ReplyTo != "" {
		r.InReplyTo, r.InReplyToUser = uriOf(twitter.Post{ID: p.ReplyTo}), who(p.ReplyToAuthor)
		out.Lead(r.InReplyToUser, "reply")
	}
	if p.Boost != nil {
		out.Boosted = writerOf(p.Boost.Author)
		r.BoostOf, r.Text = uriOf(*p.Boost), ""
		out.Lead(who(p.Boost.Author.ID), "boost")
	}
	if p.Quote != nil {
		out.Quoted = writerOf(p.Quote.Author)
		r.QuoteOf = uriOf(*p.Quote)
		if out.Quoted.Wish() == "" {
			out.Lead(who(p.Quote.Author.ID), "quote")
		}
	}
	for _, m := range p.Media {
		if m.URL != "" {
			r.Media = append(r.Media, store.Media{Type: m.Type, URL: m.URL, Alt: m.Alt})
		}
	}
	r.Counts = account.Counts(map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites,
		"quotes": p.Quotes})
	account.Flagged(r, map[string]bool{"sensitive": p.Sensitive})
	return out
}

// writerOf returns an author as an answer shows the author.
func writerOf(p twitter.Profile) account.Writer {
	return account.Said(account.KeyOf("twitter:"+p.ID), service.Wishes(p.Name, p.Note))
}
