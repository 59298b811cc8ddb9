package bluesky

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// BatchSize is the most accounts or posts in one request of Profiles or PostsByURI, which is AT
// Protocol's maximum.
const BatchSize = 25

// actor returns s as a DID or a handle, "" if it is neither.
func actor(s string) string {
	if id := did(s); id != "" {
		return id
	}
	return handle(s)
}

// Profile returns the profile of an account by its DID or handle. A Fault that is Gone has the
// known reason in Code: AccountTakedown, AccountDeactivated.
func (c *Client) Profile(ctx context.Context, of string) (Profile, error) {
	who := actor(of)
	if who == "" {
		return Profile{}, fmt.Errorf("bluesky: profile: %q is neither a DID nor a handle", service.Clip(of, 100))
	}
	b, err := c.query(ctx, "profile", ClassAccount, "app.bsky.actor.getProfile", url.Values{"actor": {who}})
	if err != nil {
		return Profile{}, err
	}
	var w wireProfile
	if service.Object(b) && service.Decoded(json.Unmarshal(b, &w)) {
		if p, ok := c.profile(w, b); ok {
			if p.ID != who && p.Acct != who {
				return Profile{}, c.s.Misshapen("profile", "another account: "+p.ID)
			}
			return p, nil
		}
	}
	return Profile{}, c.s.Misshapen("profile", "")
}

// Profiles returns the profiles of at most BatchSize DIDs or handles with one request. absent are
// the ones without a profile; only Profile can say whether they are gone.
func (c *Client) Profiles(ctx context.Context, of []string) (found []Profile, absent []string, err error) {
	if len(of) == 0 || len(of) > BatchSize {
		return nil, nil, fmt.Errorf("bluesky: profiles: %d accounts, want 1 to %d", len(of), BatchSize)
	}
	asked := make([]string, len(of))
	for i, a := range of {
		if asked[i] = actor(a); asked[i] == "" {
			return nil, nil, fmt.Errorf("bluesky: profiles: %q is neither a DID nor a handle", service.Clip(a, 100))
		}
	}
	var w struct {
		Profiles list[wireProfile] `json:"profiles"`
	}
	if err := c.read(ctx, "profiles", ClassAccount, "app.bsky.actor.getProfiles", url.Values{"actors": asked},
		&w); err != nil {
		return nil, nil, err
	}
	if !w.Profiles.Is {
		return nil, nil, c.s.Misshapen("profiles", "")
	}
	all, _ := c.profiles(w.Profiles)
	handles := map[string]string{}
	for _, p := range all {
		if p.Acct != "" {
			handles[p.Acct] = p.ID
		}
	}
	ids := make([]string, len(asked))
	for i, a := range asked {
		if ids[i] = a; !strings.HasPrefix(a, "did:") && handles[a] != "" {
			ids[i] = handles[a]
		}
	}
	found, absent = service.Sorted(ids, all, func(p Profile) string { return p.ID })
	return found, absent, nil
}

// PostsByURI returns at most BatchSize posts with one request, like Profiles.
func (c *Client) PostsByURI(ctx context.Context, uris []string) (found []Post, absent []string, err error) {
	if len(uris) == 0 || len(uris) > BatchSize {
		return nil, nil, fmt.Errorf("bluesky: posts: %d addresses, want 1 to %d", len(uris), BatchSize)
	}
	for _, u := range uris {
		if _, err := ParseURI(u); err != nil {
			return nil, nil, err
		}
	}
	var w struct {
		Posts list[json.RawMessage] `json:"posts"`
	}
	if err := c.read(ctx, "posts", ClassPost, "app.bsky.feed.getPosts", url.Values{"uris": uris}, &w); err != nil {
		return nil, nil, err
	}
	if !w.Posts.Is {
		return nil, nil, c.s.Misshapen("posts", "")
	}
	all, _ := service.Each(w.Posts, func(b, _ json.RawMessage) (Post, bool) { return c.post(b) })
	found, absent = service.Sorted(uris, all, func(p Post) string { return p.ID })
	return found, absent, nil
}

// Record returns the original record of a post or a repost from its author's PDS. If a Fault is
// Gone and its Code is RecordNotFound, the record was deleted. Other codes mean that the account is
// missing. The CID shows whether the record has changed.
func (c *Client) Record(ctx context.Context, at string) (Post, error) {
	u, err := ParseURI(at)
	if err != nil {
		return Post{}, err
	}
	var w struct {
		URI   text            `json:"uri"`
		CID   text            `json:"cid"`
		Value json.RawMessage `json:"value"`
	}
	if err := c.read(ctx, "record", ClassRecords, "com.atproto.repo.getRecord",
		url.Values{"repo": {u.DID}, "collection": {u.Collection}, "rkey": {u.Key}}, &w); err != nil {
		return Post{}, err
	}
	if string(w.URI) != at {
		return Post{}, c.s.Misshapen("record", "another one: "+string(w.URI))
	}
	p, ok := c.record(u, w.CID, w.Value)
	if !ok {
		return Post{}, c.s.Misshapen("record", "")
	}
	return p, nil
}

// Repo is the state of an account's repository at its PDS.
type Repo struct {
	Active bool
	Status string // reason: takendown, suspended, deleted, deactivated, desynchronized, throttled
	Rev    string // changes with each write or delete: the same value means no change
}

// Repo returns the state of an account's repository. It is a cheap check for changes.
func (c *Client) Repo(ctx context.Context, id string) (Repo, error) {
	if did(id) == "" {
		return Repo{}, fmt.Errorf("bluesky: repo: %q is no DID", service.Clip(id, 100))
	}
	var w struct {
		DID    text         `json:"did"`
		Active service.Flag `json:"active"`
		Status text         `json:"status"`
		Rev    text         `json:"rev"`
	}
	if err := c.read(ctx, "repo", ClassRepo, "com.atproto.sync.getRepoStatus", url.Values{"did": {id}},
		&w); err != nil {
		return Repo{}, err
	}
	if string(w.DID) != id || w.Active.Said == service.Unsaid {
		return Repo{}, c.s.Misshapen("repo", "")
	}
	return Repo{w.Active.Said == service.Yes, service.Line(string(w.Status), 40), service.Ident(w.Rev)}, nil
}

// SearchActors returns at most 100 accounts for q.
func (c *Client) SearchActors(ctx context.Context, q string) ([]Profile, error) {
	var w struct {
		Actors list[wireProfile] `json:"actors"`
	}
	if err := c.read(ctx, "search", ClassSearch, "app.bsky.actor.searchActors", url.Values{"q": {q}, "limit": {"100"}},
		&w); err != nil {
		return nil, err
	}
	if !w.Actors.Is {
		return nil, c.s.Misshapen("search", "")
	}
	all, _ := c.profiles(w.Actors)
	return all, nil
}

// sorts returns the time that orders a post in a feed: when it was created, or indexed if that is
// earlier.
func sorts(p Post) time.Time {
	if p.Created.IsZero() || !p.Indexed.IsZero() && p.Indexed.Before(p.Created) {
		return p.Indexed
	}
	return p.Created
}
