package mastodon

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Post is a status as one server shows it. Texts have no HTML; times are UTC, zero = unknown;
// counts are -1 if unknown.
type Post struct {
	ID     string // of that server, opaque
	URI    string // its ActivityPub id: the same on every server, and after an edit
	URL    string // the web page
	Author Profile

	Created time.Time
	Edited  time.Time // zero = never
	Text    string
	Warning string // the content warning
	Lang    string // set by the author's program: only a hint, snac always says en
	// Visibility is public, unlisted, private or direct. Without a credential only the first two
	// are visible.
	Visibility string
	LocalOnly  bool // the server shows it only to its own accounts, for any Visibility
	Sensitive  bool

	ReplyTo       string // the id of the post that this one replies to, "" = none
	ReplyToAuthor string // the id of that post's author
	Boost         *Post  // this post is only a boost of that one
	Quote         *Post  // this post quotes that one
	Mentions      []Mention
	Tags          []string // lower case, without #
	Links         []store.Link
	Media         []Media
	Choices       []string // of a poll

	Replies, Boosts, Favourites int64

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// ForAll reports whether everybody may see p, not only the token's owner. A server that does not
// send a visibility has only public posts. An unknown value means a smaller audience ("local",
// "list").
func (p *Post) ForAll() bool {
	switch p.Visibility {
	case "", "public", "unlisted":
		return !p.LocalOnly && (p.Boost == nil || p.Boost.ForAll())
	}
	return false
}

// Mention is an account that a post mentions.
type Mention struct{ ID, Acct, URL string }

// Key returns the key of the account.
func (m Mention) Key() (partition.Key, error) { return partition.ParseKey("mastodon:" + m.Acct) }

// Media is a file of a post. This package does not fetch it.
type Media struct {
	ID, Type string // image, video, gifv, audio, unknown
	URL      string // at this server
	Remote   string // at its home server
	Alt      string // its description
}

type wirePost struct {
	ID            text                `json:"id"`
	URI           text                `json:"uri"`
	URL           text                `json:"url"`
	Account       json.RawMessage     `json:"account"`
	Created       stamp               `json:"created_at"`
	Edited        stamp               `json:"edited_at"`
	Content       text                `json:"content"`
	Warning       text                `json:"spoiler_text"`
	Lang          text                `json:"language"`
	Visibility    text                `json:"visibility"`
	LocalOnly     flag                `json:"local_only"`
	Sensitive     flag                `json:"sensitive"`
	ReplyTo       text                `json:"in_reply_to_id"`
	ReplyToAuthor text                `json:"in_reply_to_account_id"`
	Boost         json.RawMessage     `json:"reblog"`
	Quote         json.RawMessage     `json:"quote"`
	Mentions      list[wireMoved]     `json:"mentions"`
	Tags          list[wireTag]       `json:"tags"`
	Media         list[wireMedia]     `json:"media_attachments"`
	Poll          *wirePoll           `json:"poll"`
	Replies       count               `json:"replies_count"`
	Boosts        count               `json:"reblogs_count"`
	Favourites    count               `json:"favourites_count"`
	Card          *struct{ URL text } `json:"card"`
}

type wireTag struct {
	Name text `json:"name"`
}

type wireMedia struct {
	ID     text `json:"id"`
	Type   text `json:"type"`
	URL    text `json:"url"`
	Remote text `json:"remote_url"`
	Alt    text `json:"description"`
}

type wirePoll struct {
	Options list[struct {
		Title text `json:"title"`
	}] `json:"options"`
}

// authors caches the profiles of one page by their JSON, because most posts of a page have the same
// author.
type authors map[string]Profile

// post decodes one post. inner says that it is inside another post; deeper posts are not read.
func (c *Client) post(b []byte, inner bool, by authors) (p Post, ok bool) {
	var w wirePost
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) {
		return Post{}, false
	}
	p = Post{
		ID: service.Ident(w.ID), URI: service.Address(w.URI), URL: service.Address(w.URL), Created: w.Created.Time,
		Edited: w.Edited.Time,
		Lang:   service.Line(string(w.Lang), 35), Visibility: service.Line(string(w.Visibility), 20),
		Sensitive: w.Sensitive.Said == service.Yes, LocalOnly: w.LocalOnly.Said == service.Yes,
		ReplyTo: service.Ident(w.ReplyTo), ReplyToAuthor: service.Ident(w.ReplyToAuthor),
		Replies: w.Replies.N(), Boosts: w.Boosts.N(), Favourites: w.Favourites.N(),
	}
	if p.Author, ok = by[string(w.Account)]; !ok {
		var author wireAccount
		if service.Object(w.Account) && service.Decoded(json.Unmarshal(w.Account, &author)) {
			p.Author, _ = c.profile(author, nil) // its JSON is part of the post's JSON
			by[string(w.Account)] = p.Author
		}
	}
	if p.ID == "" || p.Author.ID == "" {
		return Post{}, false
	}
	at := p.URL
	if at == "" {
		at = c.base + "/"
	}
	p.Text, p.Links = c.plain(string(w.Content), at)
	p.Warning, _ = c.plain(string(w.Warning), at)
	c.parts(&p, w)
	if !inner {
		if boost, ok := c.post(w.Boost, true, by); ok {
			p.Boost = &boost
		}
		p.Quote = c.quote(w.Quote, by)
		p.Raw = service.Raw(b, c.o.MaxRaw)
	}
	return p, true
}

// quote decodes the quoted post. At Mastodon 4.4+ the JSON is an object with the state of the quote
// and the post; at other servers it is the post itself.
func (c *Client) quote(b json.RawMessage, by authors) *Post {
	var w struct {
		Quoted json.RawMessage `json:"quoted_status"`
	}
	if service.Object(b) && service.Decoded(json.Unmarshal(b, &w)) && service.Object(w.Quoted) {
		b = w.Quoted
	}
	if q, ok := c.post(b, true, by); ok {
		return &q
	}
	return nil
}

// parts fills in the lists of a post, each up to its limit.
func (c *Client) parts(p *Post, w wirePost) {
	named := map[string]bool{}
	for _, m := range w.Mentions.All {
		acct, _ := c.acct(m.Acct, m.Username)
		if acct == "" || len(p.Mentions) == maxMentions {
			continue
		}
		p.Mentions = append(p.Mentions, Mention{service.Ident(m.ID), acct, service.Address(m.URL)})
		named[string(m.URL)] = true
	}
	seen := map[string]bool{}
	for _, t := range w.Tags.All {
		tag := strings.ToLower(strings.TrimPrefix(service.Line(string(t.Name), service.MaxName), "#"))
		if tag == "" || seen[tag] || len(p.Tags) == maxTags {
			continue
		}
		seen[tag] = true
		p.Tags = append(p.Tags, tag)
	}
	kept := p.Links[:0]
	for _, l := range p.Links { // links to mentioned accounts and tags are not links to pages
		if !named[l.Key.URL()] && !tagAnchor(l, seen) && !strings.HasPrefix(l.Anchor, "@") {
			kept = append(kept, l)
		}
	}
	p.Links = kept
	for _, m := range w.Media.All {
		if len(p.Media) == maxMedia {
			break
		}
		p.Media = append(p.Media, Media{service.Ident(m.ID), service.Line(string(m.Type), 20), service.Address(m.URL),
			service.Address(m.Remote), service.Clip(string(m.Alt), 4<<10)})
	}
	if w.Poll != nil {
		for _, o := range w.Poll.Options.All {
			if len(p.Choices) == maxFields {
				break
			}
			p.Choices = append(p.Choices, service.Line(string(o.Title), service.MaxName))
		}
	}
}

// tagAnchor reports whether a link is one of the tags of its post.
func tagAnchor(l store.Link, tags map[string]bool) bool {
	tag, ok := strings.CutPrefix(l.Anchor, "#")
	return ok && tags[strings.ToLower(tag)]
}

// posts decodes a page of posts. bad is the number of unreadable elements.
func (c *Client) posts(b []byte) (all []Post, bad int, ok bool) {
	var l list[json.RawMessage]
	if json.Unmarshal(b, &l) != nil || !l.Is {
		return nil, 0, false
	}
	by := authors{}
	all, bad = service.Each(l, func(b, _ json.RawMessage) (Post, bool) { return c.post(b, false, by) })
	return all, bad, true
}

// profiles decodes a page of profiles. bad is the number of unreadable elements.
func (c *Client) profiles(b []byte) (all []Profile, bad int, ok bool) {
	var l list[wireAccount]
	if json.Unmarshal(b, &l) != nil || !l.Is {
		return nil, 0, false
	}
	all, bad = service.Each(l, func(w wireAccount, raw json.RawMessage) (Profile, bool) { return c.profile(w, raw) })
	return all, bad, true
}
