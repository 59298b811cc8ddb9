package mastodon

import (
	"context"
	"slices"

	"github.com/echo-node/echo-node/crawler/service"
)

// Some servers return the list of the token's owner for every account. Two lists are of two people
// if more than maxAlike accounts, and more than a tenth of the longer list, are in only one of
// them. Small differences appear because people follow and are followed between two calls.
const (
	maxAlike  = 1
	alikePart = 10
)

// Whose finds out whether the list of p on that side is p's own, or that of the owner of the
// client's credential. If s does not already say so, it makes three calls, which must all carry the
// same credential.
//
// Whose returns s with what it learned. believe is the verdict about this list: service.NotTheirs,
// Doubted = unknown, "" = the list is p's own. sole says that there is no other credential. Then a
// list of the owner is correct in any case. The error is a Fault that may pass, or the Fault of a
// list.
func (c *Client) Whose(ctx context.Context, s Server, p Profile, side service.Side, sole bool) (now Server,
	believe service.Word, err error) {
	known := s.whose(side)
	switch {
	case !c.o.Credential.Set() || *known == service.Obeyed:
		return s, "", nil
	case *known == service.Ignored || side == service.Following && s.Lists == service.NotTheirs:
		return s, service.NotTheirs, nil
	}
	a, err := c.get(ctx, ask{"own account", ClassAccount, "/api/v1/accounts/verify_credentials", nil})
	if err != nil && !service.Again(err) && service.WordOf(err) != "" {
		return s, "", nil // an application's token has no account and no list
	}
	if err != nil {
		return s, "", err
	}
	me, err := c.oneProfile("own account", a)
	if err != nil {
		return s, "", err
	}
	if me.ID == p.ID {
		if sole {
			return s, "", nil
		}
		return s, service.Doubted, nil
	}
	theirs, err := c.edges(ctx, service.EdgeList{ID: p.ID, Acct: p.Acct, Side: side}, "")
	switch {
	case service.Again(err):
		return s, "", err
	case err != nil, len(theirs.IDs) == 0: // no list at all; reading the list gives the reason
		return s, "", nil
	}
	own, err := c.edges(ctx, service.EdgeList{ID: me.ID, Acct: me.Acct, Side: side}, "")
	switch {
	case service.Again(err):
		return s, "", err
	case err != nil:
		return s, service.Doubted, nil
	}
	switch apart, itself := apart(theirs.IDs, own.IDs), slices.Contains(theirs.IDs, p.ID); {
	case apart:
		*known = service.Obeyed
		return s, "", nil
	case itself: // nobody follows themselves
		*known = service.Ignored
		return s, service.NotTheirs, nil
	}
	return s, service.Doubted, nil // two people may follow the same accounts
}

// ListOf returns the verdict of Whose without a call. It is used when a list is resumed.
func (s Server) ListOf(side service.Side) service.Word {
	if *s.whose(side) == service.Ignored || side == service.Following && s.Lists == service.NotTheirs {
		return service.NotTheirs
	}
	return ""
}

// whose returns the field of s for the lists of that side.
func (s *Server) whose(side service.Side) *service.Obeys {
	if side == service.Following {
		return &s.OfFollowing
	}
	return &s.OfFollowers
}

// apart reports whether two lists belong to two people.
func apart(a, b []string) bool {
	in := map[string]bool{}
	for _, id := range b {
		in[id] = true
	}
	both, distinct := 0, map[string]bool{}
	for _, id := range a {
		if distinct[id] {
			continue
		}
		distinct[id] = true
		if in[id] {
			both++
		}
	}
	only := len(distinct) + len(in) - 2*both
	return len(in) == 0 || only > maxAlike && only*alikePart > max(len(distinct), len(in))
}
