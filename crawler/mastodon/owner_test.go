package mastodon

import (
	"context"
	"fmt"
	"testing"

	"github.com/echo-node/echo-node/crawler/service"
)

// Two lists belong to two people if they differ by more than can change between two calls.
func TestApart(t *testing.T) {
	ids := func(from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprint(i))
		}
		return out
	}
	for _, tt := range []struct {
		a, b []string
		want bool
	}{
		{ids(0, 5), nil, true},
		{ids(0, 1), ids(0, 1), false},
		{ids(0, 1), ids(1, 2), true},
		{ids(0, 3), ids(0, 4), false}, // one more since the first call
		{ids(0, 3), ids(0, 6), true},
		{ids(0, 80), ids(2, 82), false},
		{ids(0, 80), ids(10, 90), true},
		{append(ids(0, 4), ids(0, 4)...), ids(0, 4), false},
	} {
		if got := apart(tt.a, tt.b); got != tt.want {
			t.Errorf("%d and %d: %t", len(tt.a), len(tt.b), got)
		}
	}
}

// Whose makes at most three calls. It makes none if all is known or there is no credential. It
// returns the verdict about a list.
func TestWhose(t *testing.T) {
	ctx := context.Background()
	token, err := service.NewCredential("ana", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		lies    lies
		of      int // index of the requested account; the token's owner is the first
		sole    bool
		app     bool // the token has no account
		none    bool // no token
		believe service.Word
		learns  service.Obeys
		calls   int
	}{
		"honest": {of: 1, learns: service.Obeyed, calls: 3},
		"the owner's, of all": {lies: lies{OwnLists: true}, of: -1, believe: service.NotTheirs,
			learns: service.Ignored, calls: 3},
		"the owner itself":          {lies: lies{OwnLists: true}, sole: true, calls: 1},
		"the owner, two tokens":     {lies: lies{OwnLists: true}, believe: service.Doubted, calls: 1},
		"the token of an app":       {lies: lies{OwnLists: true}, of: 1, app: true, calls: 1},
		"no token":                  {of: 1, none: true},
		"all are alike, and no say": {lies: lies{OwnLists: true}, of: -2, believe: service.Doubted, calls: 3},
	} {
		w := world{Seed: 3, People: 40, Quiet: true, Remote: -1}
		p := visit(t, w)
		users, truth := p.w.Users(), p.w.Truth().Accounts
		w.Tokens, w.Lies = map[string]string{"s3cret": user(users[0])}, tt.lies
		if tt.app {
			w.Tokens["s3cret"] = ""
		}
		p = visit(t, w, func(o *Options) {
			if !tt.none {
				o.Credential = token
			}
		})
		acct := users[max(tt.of, 0)]
		if tt.of < 0 { // an account that the owner follows, or does not follow
			acct = ""
			in := map[string]bool{}
			for _, f := range truth[users[0]].Following {
				in[f] = true
			}
			for _, u := range users[1:] {
				if in[u] == (tt.of == -1) {
					acct = u
				}
			}
		}
		who := p.lookup(acct)
		before := p.w.Report().Requests
		s, believe, err := p.c.Whose(ctx, Server{}, who, service.Following, tt.sole)
		if calls := p.w.Report().Requests - before; err != nil || believe != tt.believe || s.OfFollowing != tt.learns ||
			s.OfFollowers != "" || calls != tt.calls {
			t.Errorf("%s: %q, %q learned, %d calls, %v", name, believe, s.OfFollowing, calls, err)
		}
		if tt.learns == "" {
			continue
		}
		before = p.w.Report().Requests
		if _, again, err := p.c.Whose(ctx, s, who, service.Following, tt.sole); again != believe || err != nil ||
			p.w.Report().Requests != before || s.ListOf(service.Following) != believe {
			t.Errorf("%s, known: %q %v", name, again, err)
		}
		if back, err := DecodeServer(Server{V: serverVersion, OfFollowing: s.OfFollowing}.Encode()); err != nil ||
			back.OfFollowing != s.OfFollowing {
			t.Errorf("%s: %+v %v", name, back, err)
		}
	}
	p := visit(t, world{Seed: 3, People: 5, Tokens: map[string]string{"s3cret": "x"}},
		func(o *Options) { o.Credential = token })
	who := p.lookup(p.w.Users()[0])
	p.w.Lie(func(l *lies) { l.Down = 503 })
	if s, _, err := p.c.Whose(ctx, Server{}, who, service.Followers, true); !service.Again(err) || s.OfFollowers != "" {
		t.Errorf("down: %+v %v", s, err)
	}
}
