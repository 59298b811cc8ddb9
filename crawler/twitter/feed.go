package twitter

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// Feed is a timeline.
type Feed struct {
	op    string
	class service.Class
	path  string
	id    string // of the user, "" = of many users
	token string // the name of the paging parameter
	query string
}

// PostsOf returns the feed of the posts, replies and reposts of the user with that id. It has at
// most the newest 3200.
func PostsOf(id string) Feed {
	return Feed{op: "posts", class: ClassPosts, path: "/2/users/" + id + "/tweets", id: id, token: "pagination_token"}
}

// Search returns the feed of the posts for a query, of the last seven days.
func Search(q string) Feed {
	return Feed{op: "search", class: ClassSearch, path: "/2/tweets/search/recent", token: "next_token", query: q}
}

const (
	postPage = 100  // posts of a page, which is X's maximum
	mostOf   = 3200 // posts of a user that are shown
	maxQuery = 512  // bytes of a query of Search

	searchDays = 7 * 24 * time.Hour // how far Search reaches back
)

// Timeline starts a reading of f from m, or continues the reading in m.
func (c *Client) Timeline(f Feed, m service.Mark, how service.Reading) (*Timeline, error) {
	if f.path == "" || f.class == ClassPosts && number(text(f.id)) == "" || f.class == ClassSearch &&
		(f.query == "" || len(f.query) > maxQuery) {
		return nil, fmt.Errorf("twitter: timeline: no feed of %q%q", service.Clip(f.id, 100),
			service.Clip(f.query, 100))
	}
	if f.class == ClassPosts {
		how.Most = mostOf
	}
	return service.NewTimeline(service.Feed[Post]{Service: name, Op: f.op, Ordered: true,
		Down: func(ctx context.Context, cursor string, base service.Seen) (service.Page[Post], error) {
			return c.page(ctx, f, cursor, base)
		},
		Below: func(last service.Seen) string { return below + last.ID },
		Seen:  func(p Post) service.Seen { return service.Seen{ID: p.ID, At: p.Created} },
	}, m, how)
}

// below is the prefix of cursors that use until_id and do not come from the API.
const below = "below:"

func (c *Client) page(ctx context.Context, f Feed, cursor string, base service.Seen) (service.Page[Post], error) {
	page := service.Page[Post]{Asked: c.postPage}
	q := url.Values{"max_results": {strconv.Itoa(c.postPage)}}
	if f.query != "" {
		q.Set("query", f.query)
		q.Set("sort_order", "recency")
	}
	// A search refuses an older since_id; its reading ends there by itself.
	if base.ID != "" && (f.id != "" || c.o.Now().Sub(base.At) < searchDays-time.Hour) {
		q.Set("since_id", base.ID)
	}
	id, own := strings.CutPrefix(cursor, below)
	switch {
	case own:
		q.Set("until_id", id)
	case cursor != "":
		q.Set(f.token, cursor)
	}
	e, err := c.get(ctx, f.op, f.class, f.path, q, true)
	if err == nil {
		e, err = c.one(f.op, e)
	}
	if err != nil {
		return page, err
	}
	all, bad, ok := c.posts(e)
	if !ok {
		return page, c.s.Misshapen(f.op, "")
	}
	page.Bad = bad
	for _, p := range all {
		if f.id != "" && p.Author.ID != "" && p.Author.ID != f.id {
			page.Bad++
			continue
		}
		page.Items, page.IDs = append(page.Items, p), append(page.IDs, p.ID)
	}
	page.Next = tokenOf(e.Meta.Next)
	if own && len(page.IDs) > 0 { // the API's own tokens failed
		page.Next = below + page.IDs[len(page.IDs)-1]
	} else if own {
		page.Next = ""
	}
	page.Mute = page.Next == ""
	return page, nil
}

// tokenOf returns the token in a response, "" = none or unusable.
func tokenOf(t text) string {
	if len(t) > service.MaxCursor || strings.HasPrefix(string(t), below) {
		return ""
	}
	return string(t)
}

// edgePage is the number of accounts per page, which is X's maximum.
const edgePage = 1000

// Edges starts to read a list of p. p should be recent, because the list is compared with its
// count.
func (c *Client) Edges(p Profile, side service.Side, lim service.Limits) (*Edges, error) {
	claimed := p.Followers
	if side == service.Following {
		claimed = p.Following
	}
	return service.NewEdges(name, service.EdgeList{ID: number(text(p.ID)), Acct: p.Acct, Side: side, Claimed: claimed,
		Local: true, Hides: p.Protected}, lim, c.edges)
}

// ResumeEdges continues from a Checkpoint.
func (c *Client) ResumeEdges(from service.Checkpoint, lim service.Limits) (*Edges, error) {
	return service.ResumeEdges(name, from, lim, c.edges)
}

// edges fetches one page of a list.
func (c *Client) edges(ctx context.Context, of service.EdgeList, cursor string) (service.Page[Profile], error) {
	page := service.Page[Profile]{Asked: c.edgePage}
	class := ClassFollowers
	if of.Side == service.Following {
		class = ClassFollowing
	}
	q := url.Values{"max_results": {strconv.Itoa(c.edgePage)}}
	if cursor != "" {
		q.Set("pagination_token", cursor)
	}
	e, err := c.get(ctx, string(of.Side), class, "/2/users/"+of.ID+"/"+string(of.Side), q, false)
	if err == nil {
		e, err = c.one(string(of.Side), e)
	}
	if err != nil {
		return page, err
	}
	all, bad, ok := c.profiles(e)
	if !ok {
		return page, c.s.Misshapen(string(of.Side), "")
	}
	for _, p := range all {
		page.IDs = append(page.IDs, p.ID)
	}
	page.Items, page.Bad, page.Next = all, bad, tokenOf(e.Meta.Next)
	page.Mute = page.Next == ""
	return page, nil
}
