package mastodon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// BatchSize is the most ids in one request of Accounts or PostsByID. Mastodon documents no maximum;
// a query of 40 ids stays under 2 KiB.
const BatchSize = 40

// Lookup returns the profile of an account by its name, user or user@host.
func (c *Client) Lookup(ctx context.Context, acct string) (Profile, error) {
	called := text(acct)
	want, local := c.acct(called, "")
	if want == "" {
		return Profile{}, fmt.Errorf("mastodon: lookup: %q is no account", service.Clip(acct, 100))
	}
	if local { // a server knows its own accounts without the host
		acct, _, _ = strings.Cut(want, "@")
	} else {
		acct = want
	}
	a, err := c.get(ctx, ask{"lookup", ClassAccount, "/api/v1/accounts/lookup", url.Values{"acct": {acct}}})
	if err != nil {
		return Profile{}, err
	}
	p, err := c.oneProfile("lookup", a)
	if err != nil {
		return Profile{}, err
	}
	if asked, _, _ := strings.Cut(want, "@"); !strings.EqualFold(asked, user(p.Acct)) {
		return Profile{}, &service.Fault{Service: name, Op: "lookup", Word: service.Misshapen, FromAPI: true, Retry: -1,
			Said: "another account: " + p.Acct}
	}
	return p, nil
}

func user(acct string) string {
	user, _, _ := strings.Cut(acct, "@")
	return user
}

// Account returns the profile of an account by its id at this server.
func (c *Client) Account(ctx context.Context, id string) (Profile, error) {
	a, err := c.get(ctx, ask{"account", ClassAccount, "/api/v1/accounts/" + url.PathEscape(id), nil})
	if err != nil {
		return Profile{}, err
	}
	p, err := c.oneProfile("account", a)
	if err == nil && p.ID != id {
		return Profile{}, &service.Fault{Service: name, Op: "account", Word: service.Misshapen, FromAPI: true,
			Retry: -1, Said: "another id: " + p.ID}
	}
	return p, err
}

func (c *Client) oneProfile(op string, a answer) (Profile, error) {
	var w wireAccount
	if service.Object(a.body) && service.Decoded(json.Unmarshal(a.body, &w)) {
		if p, ok := c.profile(w, a.body); ok {
			return p, nil
		}
	}
	return Profile{}, misshapen(op)
}

// Accounts returns the profiles of at most BatchSize ids with one request. If the server cannot do
// this (Server.Batch), the Fault is Unsupported. absent are the ids without a profile; only Account
// can say whether they are gone.
func (c *Client) Accounts(ctx context.Context, ids []string) (found []Profile, absent []string, err error) {
	a, err := c.batch(ctx, "accounts", ClassAccount, "/api/v1/accounts", ids)
	if err != nil {
		return nil, nil, err
	}
	all, _, ok := c.profiles(a.body)
	if !ok {
		return nil, nil, misshapen("accounts")
	}
	found, absent = service.Sorted(ids, all, func(p Profile) string { return p.ID })
	return found, absent, nil
}

// PostsByID returns at most BatchSize posts with one request, like Accounts.
func (c *Client) PostsByID(ctx context.Context, ids []string) (found []Post, absent []string, err error) {
	a, err := c.batch(ctx, "posts by id", ClassPost, "/api/v1/statuses", ids)
	if err != nil {
		return nil, nil, err
	}
	all, _, ok := c.posts(a.body)
	if !ok {
		return nil, nil, misshapen("posts by id")
	}
	found, absent = service.Sorted(ids, all, func(p Post) string { return p.ID })
	return found, absent, nil
}

func (c *Client) batch(ctx context.Context, op string, class service.Class, path string, ids []string) (answer, error) {
	if len(ids) == 0 || len(ids) > BatchSize {
		return answer{}, fmt.Errorf("mastodon: %s: %d ids, want 1 to %d", op, len(ids), BatchSize)
	}
	a, err := c.get(ctx, ask{op, class, path, url.Values{"id[]": ids}})
	// a missing endpoint, not a missing account or post
	if f, ok := err.(*service.Fault); ok && f.Word == service.Gone {
		f.Word = service.Unsupported
	}
	return a, err
}

// Post returns a post by its id. A Fault that is Gone says that the post is deleted, or not visible
// to this client. If it is FromAPI, the API itself says so. Post.Edited shows later changes. The
// response may have another id with the same URI: at snac an edit changes the id.
func (c *Client) Post(ctx context.Context, id string) (Post, error) {
	a, err := c.get(ctx, ask{"post", ClassPost, "/api/v1/statuses/" + url.PathEscape(id), nil})
	if err != nil {
		return Post{}, err
	}
	p, ok := c.post(a.body, false, authors{})
	if !ok {
		return Post{}, misshapen("post")
	}
	return p, nil
}

// Version is the content of a post at a time.
type Version struct {
	At      time.Time
	Text    string
	Warning string
	Media   int
}

// History returns the versions of a post, oldest first. A post without edits has one version.
func (c *Client) History(ctx context.Context, id string) ([]Version, error) {
	a, err := c.get(ctx, ask{"history", ClassPost, "/api/v1/statuses/" + url.PathEscape(id) + "/history", nil})
	if err != nil {
		return nil, err
	}
	var l list[wirePost]
	if json.Unmarshal(a.body, &l) != nil || !l.Is {
		return nil, misshapen("history")
	}
	var out []Version
	for _, w := range l.All {
		said, _ := c.plain(string(w.Content), c.base+"/")
		warning, _ := c.plain(string(w.Warning), c.base+"/")
		out = append(out, Version{w.Created.Time, said, warning, len(w.Media.All)})
	}
	return out, nil
}

// Found is the result of a search.
type Found struct {
	Profiles []Profile
	Tags     []string
	Posts    []Post
}

// The kinds of Search. Posts need a person's credential and a server with a full-text index;
// otherwise the list is empty.
const (
	SearchProfiles = "accounts"
	SearchTags     = "hashtags"
	SearchPosts    = "statuses"
)

// Search requests at most 40 results of one kind, starting at offset.
func (c *Client) Search(ctx context.Context, kind, q string, offset int) (Found, error) {
	query := url.Values{"q": {q}, "type": {kind}, "limit": {"40"}}
	if offset > 0 {
		query.Set("offset", strconv.Itoa(offset))
	}
	a, err := c.get(ctx, ask{"search", ClassSearch, "/api/v2/search", query})
	if f, ok := err.(*service.Fault); ok && f.Word == service.Gone {
		f.Word = service.Unsupported
	}
	if err != nil {
		return Found{}, err
	}
	var w struct {
		Accounts json.RawMessage `json:"accounts"`
		Posts    json.RawMessage `json:"statuses"`
		Tags     list[wireTag]   `json:"hashtags"`
	}
	if !service.Object(a.body) || !service.Decoded(json.Unmarshal(a.body, &w)) {
		return Found{}, misshapen("search")
	}
	var f Found
	f.Profiles, _, _ = c.profiles(orEmpty(w.Accounts))
	f.Posts, _, _ = c.posts(orEmpty(w.Posts))
	for _, t := range w.Tags.All {
		if tag := strings.ToLower(strings.TrimPrefix(service.Line(string(t.Name), service.MaxName), "#")); tag != "" {
			f.Tags = append(f.Tags, tag)
		}
	}
	return f, nil
}

func orEmpty(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("[]")
	}
	return b
}
