package twitter

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Post is a post as the API shows it. Times are UTC, zero = unknown; counts are -1 if unknown.
type Post struct {
	ID       string   // a number, in the order of time
	Versions []string // all its ids, oldest first, its own last; one = never edited
	Author   Profile
	Created  time.Time
	Text     string // complete, also for a long post
	Lang     string // as X detected it: pt has no variants, und and q.. are no language

	ReplyTo       string // the id of the post that this one replies to, "" = none
	ReplyToAuthor string // the id of that post's author
	Boost         *Post  // this post is only a repost of that one, which may have only an id
	Quote         *Post  // this post quotes that one
	Thread        string // the id of the first post of the thread
	Place         string // the id of the place in its tag
	Mentions      []Mention
	Tags          []string // lower case, without #
	Links         []store.Link
	Media         []Media
	Withheld      []string // countries where it is not shown
	Sensitive     bool

	Replies, Boosts, Favourites, Quotes int64

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// Mention is an account that a post mentions; ID may be "".
type Mention struct{ ID, Acct string }

// Key returns the key of the account.
func (m Mention) Key() (partition.Key, error) { return partition.ParseKey(name + ":" + m.ID) }

// Media is a file of a post. This package does not fetch it.
type Media struct {
	ID, Type string // photo, video, animated_gif
	URL      string // for a video: URL of its preview
	Alt      string // its description
}

type wireMedia struct {
	Key     text `json:"media_key"`
	Type    text `json:"type"`
	URL     text `json:"url"`
	Preview text `json:"preview_image_url"`
	Alt     text `json:"alt_text"`
}

type wireReference struct {
	Type text `json:"type"`
	ID   text `json:"id"`
}

type wireEntities struct {
	Tags list[struct {
		Tag text `json:"tag"`
	}] `json:"hashtags"`
	Mentions list[struct {
		ID   text `json:"id"`
		User text `json:"username"`
	}] `json:"mentions"`
	URLs list[wireURL] `json:"urls"`
}

type wireLong struct {
	Text     text         `json:"text"`
	Entities wireEntities `json:"entities"`
}

type wirePost struct {
	ID        text                `json:"id"`
	Author    text                `json:"author_id"`
	Created   stamp               `json:"created_at"`
	Text      text                `json:"text"`
	Lang      text                `json:"lang"`
	Thread    text                `json:"conversation_id"`
	ReplyTo   text                `json:"in_reply_to_user_id"`
	Sensitive flag                `json:"possibly_sensitive"`
	RefTweets list[wireReference] `json:"referenced_tweets"`
	RefPosts  list[wireReference] `json:"referenced_posts"`
	WasTweets list[text]          `json:"edit_history_tweet_ids"`
	WasPosts  list[text]          `json:"edit_history_post_ids"`
	LongTweet wireLong            `json:"note_tweet"`
	LongPost  wireLong            `json:"note_post"`
	Entities  wireEntities        `json:"entities"`
	Attached  struct {
		Media list[text] `json:"media_keys"`
	} `json:"attachments"`
	Geo struct {
		Place text `json:"place_id"`
	} `json:"geo"`
	Metrics struct {
		Replies  count `json:"reply_count"`
		Retweets count `json:"retweet_count"`
		Reposts  count `json:"repost_count"`
		Likes    count `json:"like_count"`
		Quotes   count `json:"quote_count"`
	} `json:"public_metrics"`
	Withheld struct {
		Countries list[text] `json:"country_codes"`
	} `json:"withheld"`
}

// around holds the included objects of a response.
type around struct {
	users map[string]Profile
	media map[string]wireMedia
	posts map[string]json.RawMessage
}

func (c *Client) around(e envelope) around {
	a := around{map[string]Profile{}, map[string]wireMedia{}, map[string]json.RawMessage{}}
	for _, w := range e.Includes.Users.All {
		if p, ok := c.profile(w, nil); ok {
			a.users[p.ID] = p
		}
	}
	for _, m := range e.Includes.Media.All {
		a.media[string(m.Key)] = m
	}
	for _, l := range [...]list[json.RawMessage]{e.Includes.Tweets, e.Includes.Posts} {
		for _, b := range l.All {
			var w struct {
				ID text `json:"id"`
			}
			if service.Object(b) && service.Decoded(json.Unmarshal(b, &w)) {
				a.posts[string(w.ID)] = b
			}
		}
	}
	return a
}

// post decodes one post; inner says that it is inside another post. Deeper posts are not read.
func (c *Client) post(b []byte, by around, inner bool) (p Post, ok bool) {
	var w wirePost
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) || number(w.ID) == "" {
		return Post{}, false
	}
	p = Post{
		ID: number(w.ID), Created: w.Created.Time, Text: service.Clip(string(w.Text), c.o.MaxText),
		Lang: service.Line(string(w.Lang), 35), Thread: number(w.Thread),
		ReplyToAuthor: number(w.ReplyTo), Place: service.Line(string(w.Geo.Place), service.MaxName),
		Sensitive: w.Sensitive.Said == service.Yes,
		Replies:   w.Metrics.Replies.N(), Boosts: max(w.Metrics.Retweets.N(), w.Metrics.Reposts.N()),
		Favourites: w.Metrics.Likes.N(), Quotes: w.Metrics.Quotes.N(),
	}
	if author := number(w.Author); author != "" {
		if p.Author, ok = by.users[author]; !ok {
			p.Author = Profile{ID: author, Followers: -1, Following: -1, Posts: -1, Listed: -1}
		}
	}
	entities := w.Entities
	for _, long := range [...]wireLong{w.LongTweet, w.LongPost} {
		if long.Text != "" {
			p.Text, entities = service.Clip(string(long.Text), c.o.MaxText), long.Entities
		}
	}
	p.said(entities)
	for _, k := range w.Attached.Media.All {
		if m, ok := by.media[string(k)]; ok && len(p.Media) < maxMedia {
			p.Media = append(p.Media, Media{service.Ident(m.Key), service.Line(string(m.Type), 20),
				service.Address(either(m.URL, m.Preview)), service.Clip(string(m.Alt), 4<<10)})
		}
	}
	for _, t := range append(w.WasTweets.All, w.WasPosts.All...) {
		if id := number(t); id != "" && len(p.Versions) < maxVersions {
			p.Versions = append(p.Versions, id)
		}
	}
	for _, t := range w.Withheld.Countries.All {
		if cc := service.Line(string(t), 8); cc != "" && len(p.Withheld) < maxCountries {
			p.Withheld = append(p.Withheld, cc)
		}
	}
	for _, r := range append(w.RefTweets.All, w.RefPosts.All...) {
		c.refers(&p, r, by, inner)
	}
	if !inner {
		p.Raw = service.Raw(b, c.o.MaxRaw)
	}
	return p, true
}

// refers records a post that p refers to.
func (c *Client) refers(p *Post, r wireReference, by around, inner bool) {
	id := number(r.ID)
	if id == "" {
		return
	}
	of := Post{ID: id, Replies: -1, Boosts: -1, Favourites: -1, Quotes: -1}
	if b := by.posts[id]; b != nil && !inner {
		if q, ok := c.post(b, by, true); ok {
			of = q
		}
	}
	switch r.Type {
	case "replied_to":
		p.ReplyTo = id
	case "retweeted", "reposted":
		p.Boost = &of
	case "quoted":
		p.Quote = &of
	}
}

// said copies the entities of the text into p.
func (p *Post) said(e wireEntities) {
	for _, t := range e.Tags.All {
		tag := strings.ToLower(strings.TrimPrefix(service.Line(string(t.Tag), service.MaxName), "#"))
		if tag != "" && len(p.Tags) < maxTags && !slices.Contains(p.Tags, tag) {
			p.Tags = append(p.Tags, tag)
		}
	}
	for _, m := range e.Mentions.All {
		who := Mention{number(m.ID), userName(string(m.User))}
		if who.Acct != "" && len(p.Mentions) < maxMentions && !slices.Contains(p.Mentions, who) {
			p.Mentions = append(p.Mentions, who)
		}
	}
	p.Links = links(nil, e.URLs)
}

// Edited reports whether p replaces another post.
func (p Post) Edited() bool { return len(p.Versions) > 1 }
