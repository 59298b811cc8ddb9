package bluesky

import (
	"net/url"

	client "github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// postOf converts a post to the type of package account. id is its id in the Mark of its feed.
func (v *API) postOf(p client.Post, id string) account.Post {
	out := account.Post{ID: id, By: writerOf(p.Author)}
	r := &out.Record
	r.Post = p.ID
	r.ID, r.PublishedAt, r.Author, r.Name = p.CID, account.Moment(p.Created), p.Author.Acct, p.Author.Name
	if at, err := client.ParseURI(p.ID); err == nil && at.Collection == client.Posts {
		r.URL = "https://bsky.app/profile/" + at.DID + "/post/" + at.Key
	}
	if p.Author.ID == v.did() { // a record has no author names in it
		r.Author, r.Name = v.State.Acct, v.State.Name
	}
	r.Text, r.Tags, r.Links, r.Raw, r.Digest = p.Text, p.Tags, p.Links, p.Raw, account.Digest(p.Raw)
	if len(p.Langs) > 0 {
		r.Lang = p.Langs[0]
	}
	who := func(did string) partition.Key { return account.KeyOf("bluesky:" + did) }
	by := func(uri string) partition.Key {
		at, err := client.ParseURI(uri)
		if err != nil {
			return ""
		}
		return who(at.DID)
	}
	for _, m := range p.Mentions {
		k := who(m.ID)
		r.Mentions = append(r.Mentions, store.Mention{Key: k})
		out.Lead(k, "mention")
	}
	if p.ReplyTo != "" {
		r.InReplyTo, r.InReplyToUser = p.ReplyTo, by(p.ReplyTo)
		out.Lead(r.InReplyToUser, "reply")
	}
	if p.Boost != nil {
		out.Boosted = writerOf(p.Boost.Author)
		r.BoostOf, r.Text = p.Boost.ID, ""
		out.Lead(by(p.Boost.ID), "boost")
	}
	if p.Quoted != nil {
		out.Quoted = writerOf(*p.Quoted)
	}
	if r.QuoteOf = p.Quote; p.Quote != "" && out.Quoted.Wish() == "" {
		out.Lead(by(p.Quote), "quote")
	}
	for _, m := range p.Media {
		at := m.URL
		if at == "" { // a blob of the repository
			at = v.State.PDS + "/xrpc/com.atproto.sync.getBlob?" + url.Values{"did": {p.Author.ID},
				"cid": {m.CID}}.Encode()
		}
		r.Media = append(r.Media, store.Media{Type: m.Type, URL: at, Alt: m.Alt})
	}
	r.Counts = account.Counts(map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites,
		"quotes": p.Quotes})
	for _, l := range p.Labels {
		r.Flags = append(r.Flags, l.Value)
	}
	return out
}

// writerOf returns an author as an answer shows the author.
func writerOf(p client.Profile) account.Writer {
	w := account.Said(account.KeyOf("bluesky:"+p.ID), service.Wishes(p.Name, p.Note))
	if p.NoUnauthenticated {
		w.Wishes = append(w.Wishes, account.NotLoggedIn)
	}
	return w
}
