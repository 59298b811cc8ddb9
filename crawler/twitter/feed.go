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
	id    string // of the user, "" = of many
	token string // the name of the parameter that pages
	query string
}

// PostsOf are the posts, replies and reposts of the user with that id: those since
// the last seen, at most the newest 3200.
func PostsOf(id string) Feed {
	return Feed{op: "posts", class: ClassPosts, path: "/2/users/" + id + "/tweets", id: id, token: "pagination_token"}
}

// Search are the posts of the last seven days that a query finds.
func Search(q string) Feed {
	return Feed{op: "search", class: ClassSearch, path: "/2/tweets/search/recent", token: "next_token", query: q}
}

const (
	postPage = 100  // posts of a page: X's most
	mostOf   = 3200 // posts of a user are shown
	maxQuery = 512  // bytes of a query of Search

	searchDays = 7 * 24 * time.Hour // that Search reaches back
)

// Timeline begins a reading of f from m, or goes on with the one that m is in
// the middle of.
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

// below is how a cursor begins that is not the API's own: until_id.
const below = "below:"

func (c *Client) page(ctx context.Context, f Feed, cursor string, base service.Seen) (service.Page[Post], error) {
	page := service.Page[Post]{Asked: c.postPage}
	q := url.Values{"max_results": {strconv.Itoa(c.postPage)}}
	if f.query != "" {
		q.Set("query", f.query)
		q.Set("sort_order", "recency")
	}
	// A search refuses what is older than it reaches; its reading ends there by itself.
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
	if own && len(page.IDs) > 0 { // its own tokens led nowhere
		page.Next = below + page.IDs[len(page.IDs)-1]
	} else if own {
		page.Next = ""
	}
	page.Mute = page.Next == ""
	return page, nil
}

// tokenOf is the token that an answer names, "" = none that can be gone on with.
func tokenOf(t text) string {
	if len(t) > service.MaxCursor || strings.HasPrefix(string(t), below) {
		return ""
	}
	return string(t)
}

// edgePage is how many accounts a page has: X's most.
const edgePage = 1000

// Edges begins with the list of p, as the API showed it a moment ago: its count is what the
// list is held against.
func (c *Client) Edges(p Profile, side service.Side, lim service.Limits) (*Edges, error) {
	claimed := p.Followers
	if side == service.Following {
		claimed = p.Following
	}
	return service.NewEdges(name, service.EdgeList{ID: number(text(p.ID)), Acct: p.Acct, Side: side, Claimed: claimed,
		Local: true, Hides: p.Protected}, lim, c.edges)
}

// ResumeEdges goes on where a Checkpoint was taken.
func (c *Client) ResumeEdges(from service.Checkpoint, lim service.Limits) (*Edges, error) {
	return service.ResumeEdges(name, from, lim, c.edges)
}

// edges asks for one page of a list.
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
