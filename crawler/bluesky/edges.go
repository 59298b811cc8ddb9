package bluesky

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// edgePage is the number of accounts requested per page, which is AT Protocol's maximum.
const edgePage = 100

// Edges starts to read a list of p from an AppView. p should be recent, because the list is
// compared with its count. lists is the server's Server.Lists, "" = not probed.
func (c *Client) Edges(p Profile, side service.Side, lists service.Word, lim service.Limits) (*Edges, error) {
	claimed := p.Followers
	if side == service.Following {
		claimed = p.Following
	}
	return distrust(lists)(service.NewEdges(name, service.EdgeList{ID: p.ID, Acct: p.Acct, Side: side, Claimed: claimed,
		Local: true}, lim, c.edges))
}

// ResumeEdges continues from a Checkpoint.
func (c *Client) ResumeEdges(from service.Checkpoint, lists service.Word, lim service.Limits) (*Edges, error) {
	return distrust(lists)(service.ResumeEdges(name, from, lim, c.edges))
}

// distrust ends a list if the server is known to return another account's list.
func distrust(lists service.Word) func(*Edges, error) (*Edges, error) {
	return func(e *Edges, err error) (*Edges, error) {
		if err == nil && lists == service.NotTheirs {
			e.Distrust(lists)
		}
		return e, err
	}
}

// edges fetches one page of a list.
func (c *Client) edges(ctx context.Context, of service.EdgeList, cursor string) (service.Page[Profile], error) {
	page := service.Page[Profile]{Asked: edgePage}
	method, class := "app.bsky.graph.getFollowers", ClassFollowers
	if of.Side == service.Following {
		method, class = "app.bsky.graph.getFollows", ClassFollowing
	}
	q := url.Values{"actor": {of.ID}, "limit": {strconv.Itoa(edgePage)}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	var w struct {
		Cursor    text              `json:"cursor"`
		Subject   wireProfile       `json:"subject"`
		Followers list[wireProfile] `json:"followers"`
		Follows   list[wireProfile] `json:"follows"`
	}
	if err := c.read(ctx, string(of.Side), class, method, q, &w); err != nil {
		return page, err
	}
	all := w.Followers
	if of.Side == service.Following {
		all = w.Follows
	}
	if !all.Is {
		return page, c.s.Misshapen(string(of.Side), "")
	}
	if id := did(string(w.Subject.DID)); id != "" && id != of.ID {
		return page, c.s.Misshapen(string(of.Side), "the list of another: "+id)
	}
	page.Items, page.Bad = c.profiles(all)
	for _, p := range page.Items {
		page.IDs = append(page.IDs, p.ID)
	}
	page.Next = cursorOf(w.Cursor)
	page.Mute = page.Next == ""
	return page, nil
}

// Follow is a record that says that an account follows another.
type Follow struct {
	ID  string // the DID of the followed account
	URI string // of the record
	At  time.Time
}

// FollowRecords reads the accounts that an account follows from its repository at its PDS. This is
// the original data and needs no AppView, but has no profiles. claimed is the count in the profile,
// -1 = not known.
func (c *Client) FollowRecords(id string, claimed int64, lim service.Limits) (*service.Edges[Follow], error) {
	return service.NewEdges(name, service.EdgeList{ID: did(id), Side: service.Following, Claimed: claimed, Local: true},
		lim, c.follows)
}

// ResumeFollowRecords continues from a Checkpoint of FollowRecords.
func (c *Client) ResumeFollowRecords(from service.Checkpoint, lim service.Limits) (*service.Edges[Follow], error) {
	return service.ResumeEdges(name, from, lim, c.follows)
}

func (c *Client) follows(ctx context.Context, of service.EdgeList, cursor string) (service.Page[Follow], error) {
	page := service.Page[Follow]{Asked: postPage}
	w, err := c.page(ctx, "follow records", of.ID, Follows, cursor, false)
	if err != nil {
		return page, err
	}
	for _, r := range w.Records.All {
		u, err := ParseURI(string(r.URI))
		f, ok := followOf(u, r.Value)
		if err != nil || u.DID != of.ID || u.Collection != Follows || !ok {
			page.Bad++
			continue
		}
		page.Items, page.IDs = append(page.Items, f), append(page.IDs, f.ID)
	}
	page.Bad += w.Records.Bad
	page.Next = cursorOf(w.Cursor)
	page.Mute = page.Next == ""
	return page, nil
}

// followOf decodes the record of a follow.
func followOf(at URI, b []byte) (Follow, bool) {
	var w struct {
		Subject text  `json:"subject"`
		Created stamp `json:"createdAt"`
	}
	if !service.Object(b) || !service.Decoded(json.Unmarshal(b, &w)) || did(string(w.Subject)) == "" {
		return Follow{}, false
	}
	return Follow{string(w.Subject), at.String(), w.Created.Time}, true
}
