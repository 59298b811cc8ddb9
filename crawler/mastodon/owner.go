package mastodon

import (
	"context"
	"slices"

	"github.com/echo-node/echo-node/crawler/service"
)

// Some servers give the list of the token's owner, whoever is asked for. What a list must be to be taken for another
// one than the owner's: more than one account, and more than a tenth of the longer, are in one of them only. People
// follow, and are followed, between two calls.
const (
	maxAlike  = 1
	alikePart = 10
)

// Whose finds out whether the list of p on that side is that of p, or of whom the client's credential belongs to, as
// far as s does not say it: in three calls, which must all carry the same credential. It gives s with what it learned;
// believe is what is to be made of this list: service.NotTheirs, Doubted = nobody knows, "" = it is of p. sole says
// that there is no other credential, so that a list of the owner is of the owner whatever the server does. An error is
// a Fault that may pass, or that of a list.
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
		return s, "", nil // the token of an application, which has no account and no list
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
	case err != nil, len(theirs.IDs) == 0: // nothing of anybody; its reading says why
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
	case itself: // nobody follows himself
		*known = service.Ignored
		return s, service.NotTheirs, nil
	}
	return s, service.Doubted, nil // two people may follow the same
}

// ListOf is Whose without a call: what is to be made of a list that is gone on with.
func (s Server) ListOf(side service.Side) service.Word {
	if *s.whose(side) == service.Ignored || side == service.Following && s.Lists == service.NotTheirs {
		return service.NotTheirs
	}
	return ""
}

// whose is where s says what the server does with whose list on that side is asked for.
func (s *Server) whose(side service.Side) *service.Obeys {
	if side == service.Following {
		return &s.OfFollowing
	}
	return &s.OfFollowers
}

// apart says whether two lists are of two people.
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
