package mastodon

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/echo-node/echo-node/crawler/service"
)

// edgePage is the number of accounts requested per page, which is Mastodon's maximum.
const edgePage = 80

// Edges starts to read a list of p. p should be recent, because the list is compared with its
// count. lists is what is known about the server's lists (see Whose); "" = nothing. If it is
// NotTheirs or Doubted, the list ends without a request.
func (c *Client) Edges(p Profile, side service.Side, lists service.Word, lim service.Limits) (*Edges, error) {
	claimed := p.Followers
	if side == service.Following {
		claimed = p.Following
	}
	return distrust(lists)(service.NewEdges(name, service.EdgeList{
		ID: p.ID, Acct: p.Acct, Side: side, Claimed: claimed, Local: p.Local, Hides: p.HidesLists == service.Yes,
	}, lim, c.edges))
}

// ResumeEdges continues from a Checkpoint.
func (c *Client) ResumeEdges(from service.Checkpoint, lists service.Word, lim service.Limits) (*Edges, error) {
	return distrust(lists)(service.ResumeEdges(name, from, lim, c.edges))
}

// distrust ends a list that is, or may be, the list of the credential's owner.
func distrust(lists service.Word) func(*Edges, error) (*Edges, error) {
	return func(e *Edges, err error) (*Edges, error) {
		if err == nil && (lists == service.NotTheirs || lists == service.Doubted) {
			e.Distrust(lists)
		}
		return e, err
	}
}

// edges fetches one page of a list.
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
