package bluesky

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/crawler/service"
)

// Feed is a timeline of one server.
type Feed struct {
	op         string
	id         string // a DID
	collection string // of a PDS
	method     string // of an AppView
	fixed      url.Values
}

// PostsOf returns the feed of posts, replies and reposts of an account at an AppView. It is read
// from the newest post down to the known posts.
func PostsOf(id string) Feed {
	return Feed{op: "feed", id: id, method: "app.bsky.feed.getAuthorFeed",
		fixed: url.Values{"actor": {id}, "filter": {"posts_with_replies"}}}
}

// RecordsOf returns the feed of an account's records at its PDS. collection is Posts or Reposts. A
// reading finds exactly the records since the last one read.
func RecordsOf(id, collection string) Feed {
	return Feed{op: "records", id: id, collection: collection}
}

// Search returns the feed of the posts for q, newest first. The public AppView may refuse it, and
// every page after the first.
func Search(q string) Feed {
	return Feed{op: "search", method: "app.bsky.feed.searchPosts", fixed: url.Values{"q": {q}, "sort": {"latest"}}}
}

// Tagged returns the feed of the posts with a hashtag, by a search.
func Tagged(tag string) Feed {
	tag = strings.TrimPrefix(tag, "#")
	return Feed{op: "tag", method: "app.bsky.feed.searchPosts", fixed: url.Values{"q": {"#" + tag}, "tag": {tag},
		"sort": {"latest"}}}
}

// postPage is the number of posts requested per page, which is AT Protocol's maximum.
const postPage = 100

// Timeline starts a reading of f from m, or continues the reading in m.
func (c *Client) Timeline(f Feed, m service.Mark, how service.Reading) (*Timeline, error) {
	feed := service.Feed[Post]{Service: name, Op: f.op}
	switch {
	case f.collection != "" && did(f.id) != "" && (f.collection == Posts || f.collection == Reposts):
		feed.Up = func(ctx context.Context, after string) (service.Page[Post], error) {
			return c.records(ctx, f, after, true)
		}
		feed.Down = func(ctx context.Context, cursor string, _ service.Seen) (service.Page[Post], error) {
			return c.records(ctx, f, cursor, false)
		}
		feed.Below = func(last service.Seen) string { return last.ID }
		feed.Seen = func(p Post) service.Seen {
			// in the order of keys, for any times of the posts
			return service.Seen{ID: KeyOf(p.ID), Version: p.CID}
		}
	case f.method != "" && (f.id == "" || did(f.id) != ""):
		feed.Ordered = f.id != ""
		feed.Down = func(ctx context.Context, cursor string, _ service.Seen) (service.Page[Post], error) {
			return c.feed(ctx, f, cursor)
		}
		feed.Seen = func(p Post) service.Seen { return service.Seen{ID: p.ID, At: sorts(p), Version: p.CID} }
	default:
		return nil, fmt.Errorf("bluesky: timeline: no feed %q of %q", f.collection+f.method, service.Clip(f.id, 100))
	}
	return service.NewTimeline(feed, m, how)
}

// feed fetches a page from an AppView.
func (c *Client) feed(ctx context.Context, f Feed, cursor string) (service.Page[Post], error) {
	page := service.Page[Post]{Asked: postPage}
	q := url.Values{"limit": {strconv.Itoa(postPage)}}
	for k, v := range f.fixed {
		q[k] = v
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	class := ClassPosts
	if f.id == "" {
		class = ClassSearch
	}
	var w struct {
		Cursor text                  `json:"cursor"`
		Feed   list[wireItem]        `json:"feed"`
		Posts  list[json.RawMessage] `json:"posts"`
	}
	if err := c.read(ctx, f.op, class, f.method, q, &w); err != nil {
		return page, err
	}
	if !w.Feed.Is && !w.Posts.Is {
		return page, c.s.Misshapen(f.op, "")
	}
	theirs := func(p Post, ok bool) (Post, bool) { return p, ok && (f.id == "" || p.Author.ID == f.id) }
	items, bad := service.Each(w.Feed, func(i wireItem, _ json.RawMessage) (Post, bool) { return theirs(c.item(i)) })
	posts, worse := service.Each(w.Posts, func(b, _ json.RawMessage) (Post, bool) { return theirs(c.post(b)) })
	page.Items, page.Bad = append(items, posts...), bad+worse
	for _, p := range page.Items {
		page.IDs = append(page.IDs, p.ID)
	}
	page.Next = cursorOf(w.Cursor)
	page.Mute = page.Next == ""
	return page, nil
}

// cursorOf returns the cursor in a response, "" = none or too long.
func cursorOf(t text) string {
	if len(t) > service.MaxCursor {
		return ""
	}
	return string(t)
}

// wireRecords is a page of a repository.
type wireRecords struct {
	Cursor  text `json:"cursor"`
	Records list[struct {
		URI   text            `json:"uri"`
		CID   text            `json:"cid"`
		Value json.RawMessage `json:"value"`
	}] `json:"records"`
}

// page fetches a page of a collection from a PDS.
func (c *Client) page(ctx context.Context, op, id, collection, cursor string, up bool) (w wireRecords, err error) {
	q := url.Values{"repo": {id}, "collection": {collection}, "limit": {strconv.Itoa(postPage)}}
	if up {
		q.Set("reverse", "true")
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	if err = c.read(ctx, op, ClassRecords, "com.atproto.repo.listRecords", q, &w); err == nil && !w.Records.Is {
		err = c.s.Misshapen(op, "")
	}
	return w, err
}

// records fetches a page of posts or reposts from a PDS. With up it starts above a key, oldest
// first; otherwise it starts at a cursor, newest first.
func (c *Client) records(ctx context.Context, f Feed, cursor string, up bool) (service.Page[Post], error) {
	page := service.Page[Post]{Asked: postPage}
	w, err := c.page(ctx, f.op, f.id, f.collection, cursor, up)
	if err != nil {
		return page, err
	}
	for _, r := range w.Records.All {
		u, err := ParseURI(string(r.URI))
		if err != nil || u.DID != f.id || u.Collection != f.collection {
			page.Bad++
			continue
		}
		p, ok := c.record(u, r.CID, r.Value)
		if !ok {
			page.Bad++
			continue
		}
		page.Items, page.IDs = append(page.Items, p), append(page.IDs, u.Key)
	}
	page.Bad += w.Records.Bad
	page.Next = cursorOf(w.Cursor)
	page.Mute = page.Next == ""
	return page, nil
}
