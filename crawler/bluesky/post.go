package bluesky

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Post is a post or a repost. Times are UTC, zero = unknown; counts are -1 if unknown, as in a
// record.
type Post struct {
	ID      string // its address, at://DID/COLLECTION/KEY
	CID     string // of the content: it changes with an edit
	Author  Profile
	Created time.Time // as set by its author's program
	Indexed time.Time // when the AppView indexed it, zero for a record
	Text    string
	Langs   []string // set by the author's program: only a hint

	ReplyTo   string   // the address of the post that this one replies to, "" = none
	ReplyRoot string   // the address of the first post of the thread
	Boost     *Post    // this post is only a repost of that one; in a record, only its address
	Quote     string   // the address of the quoted post
	Quoted    *Profile // author of the quoted post, if an AppView shows it; nil in a record
	Mentions  []Mention
	Tags      []string // lower case, without #
	Links     []store.Link
	Media     []Media
	Labels    []Label
	Pinned    bool // it is in the feed out of order

	Replies, Boosts, Favourites, Quotes int64

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// Mention is an account that a post mentions.
type Mention struct{ ID string }

// Key returns the key of the account.
func (m Mention) Key() (partition.Key, error) { return partition.ParseKey(name + ":" + m.ID) }

// Media is a file of a post. This package does not fetch it.
type Media struct {
	Type string // image, video
	URL  string // at the AppView's servers; "" in a record
	CID  string // in a record: the blob in the account's repository
	Alt  string // its description
}

type wireRef struct {
	URI text `json:"uri"`
	CID text `json:"cid"`
}

type wireBlob struct {
	Ref struct {
		Link text `json:"$link"`
	} `json:"ref"`
}

// wireRecord is the JSON by the author's program: a post, or a repost (Subject).
type wireRecord struct {
	Type    text       `json:"$type"`
	Text    text       `json:"text"`
	Created stamp      `json:"createdAt"`
	Langs   list[text] `json:"langs"`
	Tags    list[text] `json:"tags"`
	Subject wireRef    `json:"subject"`
	Reply   struct {
		Parent wireRef `json:"parent"`
		Root   wireRef `json:"root"`
	} `json:"reply"`
	Facets list[struct {
		Features list[struct {
			Type text `json:"$type"`
			URI  text `json:"uri"`
			DID  text `json:"did"`
			Tag  text `json:"tag"`
		}] `json:"features"`
	}] `json:"facets"`
	Embed  wireRecordEmbed `json:"embed"`
	Labels struct {
		Values list[wireLabel] `json:"values"`
	} `json:"labels"`
}

type wireRecordEmbed struct {
	Type   text `json:"$type"`
	Images list[struct {
		Image wireBlob `json:"image"`
		Alt   text     `json:"alt"`
	}] `json:"images"`
	Video    wireBlob `json:"video"`
	Alt      text     `json:"alt"`
	External struct {
		URI   text `json:"uri"`
		Title text `json:"title"`
	} `json:"external"`
	Record json.RawMessage `json:"record"` // a wireRef; with media, the wireRef is one level deeper
	Media  *struct {
		Images list[struct {
			Image wireBlob `json:"image"`
			Alt   text     `json:"alt"`
		}] `json:"images"`
		External struct {
			URI   text `json:"uri"`
			Title text `json:"title"`
		} `json:"external"`
		Video wireBlob `json:"video"`
	} `json:"media"`
}

type wirePost struct {
	URI        text            `json:"uri"`
	CID        text            `json:"cid"`
	Author     wireProfile     `json:"author"`
	Record     wireRecord      `json:"record"`
	Indexed    stamp           `json:"indexedAt"`
	Replies    count           `json:"replyCount"`
	Boosts     count           `json:"repostCount"`
	Favourites count           `json:"likeCount"`
	Quotes     count           `json:"quoteCount"`
	Labels     list[wireLabel] `json:"labels"`
	Embed      struct {
		Images list[struct {
			Full text `json:"fullsize"`
			Alt  text `json:"alt"`
		}] `json:"images"`
		Playlist text     `json:"playlist"`
		Alt      text     `json:"alt"`
		Record   struct { // the quoted post; with media, it is one level deeper
			Author wireProfile `json:"author"`
			Record struct {
				Author wireProfile `json:"author"`
			} `json:"record"`
		} `json:"record"`
	} `json:"embed"`
}

// wireItem is one item of a feed.
type wireItem struct {
	Post   json.RawMessage `json:"post"`
	Reason *struct {
		Type    text        `json:"$type"`
		By      wireProfile `json:"by"`
		URI     text        `json:"uri"`
		CID     text        `json:"cid"`
		Indexed stamp       `json:"indexedAt"`
	} `json:"reason"`
}

func cid(t text) string {
	s := service.Ident(t)
	if len(s) > 128 {
		return ""
	}
	return s
}

// post decodes a post of an AppView.
func (c *Client) post(b []byte) (p Post, ok bool) {
	var w wirePost
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) {
		return Post{}, false
	}
	p = Post{ID: uri(w.URI), CID: cid(w.CID), Indexed: w.Indexed.Time, Labels: labels(w.Labels),
		Replies: w.Replies.N(), Boosts: w.Boosts.N(), Favourites: w.Favourites.N(), Quotes: w.Quotes.N()}
	p.Author, ok = c.profile(w.Author, nil) // its JSON is part of the post's JSON
	if u, err := ParseURI(p.ID); !ok || err != nil || u.DID != p.Author.ID {
		return Post{}, false
	}
	c.said(&p, w.Record)
	for _, of := range [...]wireProfile{w.Embed.Record.Author, w.Embed.Record.Record.Author} {
		if quoted, ok := c.profile(of, nil); ok {
			p.Quoted = &quoted
		}
	}
	for _, i := range w.Embed.Images.All {
		p.Media = addMedia(p.Media, Media{Type: "image", URL: service.Address(i.Full),
			Alt: service.Clip(string(i.Alt), 4<<10)})
	}
	if a := service.Address(w.Embed.Playlist); a != "" {
		p.Media = addMedia(p.Media, Media{Type: "video", URL: a, Alt: service.Clip(string(w.Embed.Alt), 4<<10)})
	}
	p.Raw = service.Raw(b, c.o.MaxRaw)
	return p, true
}

// record decodes a post or a repost of a repository.
func (c *Client) record(at URI, id text, b []byte) (p Post, ok bool) {
	var w wireRecord
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) {
		return Post{}, false
	}
	p = Post{ID: at.String(), CID: cid(id), Author: Profile{ID: at.DID, Followers: -1, Following: -1, Posts: -1},
		Replies: -1, Boosts: -1, Favourites: -1, Quotes: -1}
	if of := uri(w.Subject.URI); at.Collection == Reposts {
		if of == "" {
			return Post{}, false
		}
		p.Created, p.Boost = w.Created.Time, &Post{ID: of, CID: cid(w.Subject.CID), Replies: -1, Boosts: -1,
			Favourites: -1, Quotes: -1}
	} else {
		c.said(&p, w)
		embed := w.Embed
		if embed.Media != nil {
			embed.Images, embed.Video, embed.External = embed.Media.Images, embed.Media.Video, embed.Media.External
		}
		for _, i := range embed.Images.All {
			p.Media = addMedia(p.Media,
				Media{Type: "image", CID: cid(i.Image.Ref.Link), Alt: service.Clip(string(i.Alt), 4<<10)})
		}
		if v := cid(embed.Video.Ref.Link); v != "" {
			p.Media = addMedia(p.Media, Media{Type: "video", CID: v, Alt: service.Clip(string(embed.Alt), 4<<10)})
		}
	}
	p.Raw = service.Raw(b, c.o.MaxRaw)
	return p, true
}

func addMedia(had []Media, m Media) []Media {
	if len(had) >= maxMedia || m.URL == "" && m.CID == "" {
		return had
	}
	return append(had, m)
}

// said copies the content of the author's record into p.
func (c *Client) said(p *Post, w wireRecord) {
	p.Text, p.Created = service.Clip(string(w.Text), c.o.MaxText), w.Created.Time
	p.ReplyTo, p.ReplyRoot = uri(w.Reply.Parent.URI), uri(w.Reply.Root.URI)
	for _, l := range w.Langs.All {
		if tag := service.Line(string(l), 35); tag != "" && len(p.Langs) < maxLangs {
			p.Langs = append(p.Langs, tag)
		}
	}
	for _, l := range labels(w.Labels.Values) {
		p.Labels = append(p.Labels, Label{l.Value, p.Author.ID})
	}
	tag := func(t text) {
		s := strings.ToLower(strings.TrimPrefix(service.Line(string(t), service.MaxName), "#"))
		if s != "" && len(p.Tags) < maxTags && !slices.Contains(p.Tags, s) {
			p.Tags = append(p.Tags, s)
		}
	}
	link := func(addr, anchor text) {
		l, ok := service.LinkTo(string(addr), string(anchor))
		if ok && len(p.Links) < maxLinks &&
			!slices.ContainsFunc(p.Links, func(had store.Link) bool { return had.Key == l.Key }) {
			p.Links = append(p.Links, l)
		}
	}
	for _, f := range w.Facets.All {
		for _, part := range f.Features.All {
			switch part.Type {
			case "app.bsky.richtext.facet#mention":
				if id := did(string(part.DID)); id != "" && len(p.Mentions) < maxMentions &&
					!slices.Contains(p.Mentions, Mention{id}) {
					p.Mentions = append(p.Mentions, Mention{id})
				}
			case "app.bsky.richtext.facet#link":
				link(part.URI, "")
			case "app.bsky.richtext.facet#tag":
				tag(part.Tag)
			}
		}
	}
	for _, t := range w.Tags.All {
		tag(t)
	}
	link(w.Embed.External.URI, w.Embed.External.Title)
	if w.Embed.Media != nil {
		link(w.Embed.Media.External.URI, w.Embed.Media.External.Title)
	}
	p.Quote = quoted(w.Embed.Record)
}

// quoted returns the address of the quoted post in a record. With media, it is one level deeper.
func quoted(b json.RawMessage) string {
	var w struct {
		URI    text    `json:"uri"`
		Record wireRef `json:"record"`
	}
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) {
		return ""
	}
	if at := uri(w.URI); at != "" {
		return at
	}
	return uri(w.Record.URI)
}

// item decodes one item of a feed: a post, or a repost of one.
func (c *Client) item(w wireItem) (p Post, ok bool) {
	if p, ok = c.post(w.Post); !ok || w.Reason == nil {
		return p, ok
	}
	switch {
	case strings.HasSuffix(string(w.Reason.Type), "#reasonPin"):
		p.Pinned = true
		return p, true
	case !strings.HasSuffix(string(w.Reason.Type), "#reasonRepost"):
		return p, true
	}
	by, ok := c.profile(w.Reason.By, nil)
	if !ok {
		return Post{}, false
	}
	of := p
	out := Post{ID: uri(w.Reason.URI), CID: cid(w.Reason.CID), Author: by, Created: w.Reason.Indexed.Time,
		Indexed: w.Reason.Indexed.Time, Boost: &of, Replies: -1, Boosts: -1, Favourites: -1, Quotes: -1}
	// the AppView sent no address: an account can repost a post only once at a time
	if out.ID == "" {
		out.ID = of.ID + "#" + by.ID
	}
	return out, true
}
