package mastodon

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/echo-node/echo-node/crawler/service"
)

// edgePage is how many accounts a page is asked for: Mastodon's most.
const edgePage = 80

// Edges begins with the list of p, as its server showed it a moment ago: its count
// is what the list is held against. lists is what is known of them: of one that is NotTheirs or Doubted (Whose) nothing
// is asked for; "" = nothing.
func (c *Client) Edges(p Profile, side service.Side, lists service.Word, lim service.Limits) (*Edges, error) {
	claimed := p.Followers
	if side == service.Following {
		claimed = p.Following
	}
	return distrust(lists)(service.NewEdges(name, service.EdgeList{
		ID: p.ID, Acct: p.Acct, Side: side, Claimed: claimed, Local: p.Local, Hides: p.HidesLists == service.Yes,
	}, lim, c.edges))
}

// ResumeEdges goes on where a Checkpoint was taken.
func (c *Client) ResumeEdges(from service.Checkpoint, lists service.Word, lim service.Limits) (*Edges, error) {
	return distrust(lists)(service.ResumeEdges(name, from, lim, c.edges))
}

// distrust has no list believed that is, or may be, the asker's own.
func distrust(lists service.Word) func(*Edges, error) (*Edges, error) {
	return func(e *Edges, err error) (*Edges, error) {
		if err == nil && (lists == service.NotTheirs || lists == service.Doubted) {
			e.Distrust(lists)
		}
		return e, err
	}
}

// edges asks for one page of a list.
func (c *Client) edges(ctx context.Context, of service.EdgeList, cursor string) (service.Page[Profile], error) {
	page := service.Page[Profile]{Asked: edgePage}
	class := ClassFollowers
	if of.Side == service.Following {
		class = ClassFollowing
	}
	query, err := url.ParseQuery(cursor)
	if err != nil {
		return page, fmt.Errorf("mastodon: edges: cursor: %w", err)
	}
	query.Set("limit", strconv.Itoa(edgePage))
	a, err := c.get(ctx, ask{string(of.Side), class, "/api/v1/accounts/" + url.PathEscape(of.ID) +
		"/" + string(of.Side), query})
	if err != nil {
		return page, err
	}
	all, bad, ok := c.profiles(a.body)
	if !ok {
		return page, misshapen(string(of.Side))
	}
	for _, p := range all {
		page.IDs = append(page.IDs, p.ID)
	}
	page.Items, page.Bad, page.Next, page.Mute = all, bad, a.next, !a.link
	return page, nil
}
