package twitter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/echo-node/echo-node/crawler/service"
)

// BatchSize is the most users or posts in one request of Users, UsersByName or PostsByID, which is
// X's maximum.
const BatchSize = 100

// Users returns the profiles of at most BatchSize ids with one request. absent are the others with
// the reason. If the API left a user out silently, Gone needs a second check.
func (c *Client) Users(ctx context.Context, ids []string) (found []Profile, absent []Absence, err error) {
	for _, id := range ids {
		if number(text(id)) == "" {
			return nil, nil, fmt.Errorf("twitter: users: %q is no id", service.Clip(id, 100))
		}
	}
	return c.users(ctx, "users", "/2/users", "ids", ids, func(p Profile) string { return p.ID })
}

// UsersByName returns the profiles of at most BatchSize names, like Users.
func (c *Client) UsersByName(ctx context.Context, names []string) (found []Profile, absent []Absence, err error) {
	asked := make([]string, len(names))
	for i, n := range names {
		if asked[i] = strings.ToLower(userName(n)); asked[i] == "" {
			return nil, nil, fmt.Errorf("twitter: users by name: %q is no name", service.Clip(n, 100))
		}
	}
	return c.users(ctx, "users by name", "/2/users/by", "usernames", asked,
		func(p Profile) string { return strings.ToLower(p.Acct) })
}

func (c *Client) users(ctx context.Context, op, path, param string, ids []string,
	id func(Profile) string) (found []Profile, absent []Absence, err error) {
	if len(ids) == 0 || len(ids) > BatchSize {
		return nil, nil, fmt.Errorf("twitter: %s: %d, want 1 to %d", op, len(ids), BatchSize)
	}
	e, err := c.get(ctx, op, ClassUsers, path, url.Values{param: {strings.Join(ids, ",")}}, false)
	if err != nil {
		return nil, nil, err
	}
	all, _, ok := c.profiles(e)
	if !ok {
		return nil, nil, c.s.Misshapen(op, "")
	}
	found, missing := service.Sorted(ids, all, id)
	return found, absences(missing, e), nil
}

// absences returns the missing ones with the reasons in errors[].
func absences(missing []string, e envelope) (out []Absence) {
	why := map[string]Absence{}
	for _, w := range e.Errors.All {
		a := w.absence()
		why[strings.ToLower(a.ID)] = a
	}
	for _, id := range missing {
		a, ok := why[strings.ToLower(id)]
		if !ok {
			a.Word = service.Gone
		}
		a.ID = id
		out = append(out, a)
	}
	return out
}

// profiles decodes the users of a response; ok is false if its data is not a list. No data is an
// empty list.
func (c *Client) profiles(e envelope) (all []Profile, bad int, ok bool) {
	var l list[wireUser]
	if len(e.Data) == 0 {
		return nil, 0, true
	}
	if json.Unmarshal(e.Data, &l) != nil || !l.Is {
		return nil, 0, false
	}
	all, bad = service.Each(l, func(w wireUser, raw json.RawMessage) (Profile, bool) { return c.profile(w, raw) })
	return all, bad, true
}

// User returns the profile of one user by its id. A Fault that is Gone or Closed has the API's
// message in Said: suspended users are Gone.
func (c *Client) User(ctx context.Context, id string) (Profile, error) {
	if number(text(id)) == "" {
		return Profile{}, fmt.Errorf("twitter: user: %q is no id", service.Clip(id, 100))
	}
	e, err := c.get(ctx, "user", ClassUsers, "/2/users/"+id, nil, false)
	if err == nil {
		e, err = c.one("user", e)
	}
	if err != nil {
		return Profile{}, err
	}
	var w wireUser
	if service.Object(e.Data) && service.Decoded(json.Unmarshal(e.Data, &w)) {
		if p, ok := c.profile(w, e.Data); ok && p.ID == id {
			return p, nil
		}
	}
	return Profile{}, c.s.Misshapen("user", "")
}

// PostsByID returns at most BatchSize posts with one request, like Users.
func (c *Client) PostsByID(ctx context.Context, ids []string) (found []Post, absent []Absence, err error) {
	if len(ids) == 0 || len(ids) > BatchSize {
		return nil, nil, fmt.Errorf("twitter: posts: %d, want 1 to %d", len(ids), BatchSize)
	}
	for _, id := range ids {
		if number(text(id)) == "" {
			return nil, nil, fmt.Errorf("twitter: posts: %q is no id", service.Clip(id, 100))
		}
	}
	e, err := c.get(ctx, "posts", ClassPost, "/2/tweets", url.Values{"ids": {strings.Join(ids, ",")}}, true)
	if err != nil {
		return nil, nil, err
	}
	all, _, ok := c.posts(e)
	if !ok {
		return nil, nil, c.s.Misshapen("posts", "")
	}
	found, missing := service.Sorted(ids, all, func(p Post) string { return p.ID })
	return found, absences(missing, e), nil
}

// posts decodes the posts of a response, as profiles does for users.
func (c *Client) posts(e envelope) (all []Post, bad int, ok bool) {
	var l list[json.RawMessage]
	if len(e.Data) == 0 {
		return nil, 0, true
	}
	if json.Unmarshal(e.Data, &l) != nil || !l.Is {
		return nil, 0, false
	}
	by := c.around(e)
	all, bad = service.Each(l, func(b, _ json.RawMessage) (Post, bool) { return c.post(b, by, false) })
	return all, bad, true
}
