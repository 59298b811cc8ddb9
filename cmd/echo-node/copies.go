package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

type copiesOfCmd struct {
	keyed
	Post string `placeholder:"URI" help:"The address of one post of this account."`
}

// Help returns the text below the usage.
func (copiesOfCmd) Help() string {
	return `Examples:
  echo-node copies https://example.org/news/42
  echo-node copies mastodon:ana@m.example --post https://m.example/users/ana/statuses/7 --json

The list has texts that are the same or nearly the same, from all peers. The first is the
representative: the one published first, or the one with the shortest address when no time is known.
Each other text has the reason (exact, official, simhash, edit) and its distance from the
representative, in bits (simhash) or words (edit).
Exit 3: answered, but part of the swarm is missing; the answer names it.`
}

// Run lists the group of a text.
func (c *copiesOfCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, k, err := c.dialKey()
	if err != nil {
		return err
	}
	a, err := cl.Copies(ctx, k, c.Post)
	if err != nil {
		return err
	}
	if err := p.print(g, a, func(w io.Writer) { printCopies(w, a) }); err != nil {
		return err
	}
	if a.Coverage.SlicesAnswered < a.Coverage.SlicesTotal {
		return &incompleteError{fmt.Errorf("%d of %d slices answered", a.Coverage.SlicesAnswered,
			a.Coverage.SlicesTotal)}
	}
	return nil
}

func printCopies(w io.Writer, a api.CopyGroup) {
	if a.Canonical != "" {
		say(w, "it declares itself a copy of %s\n", a.Canonical)
	}
	switch {
	case a.Why != "":
		say(w, "not compared: %s\n", oneLine(a.Why))
	case len(a.Members) == 0:
		fmt.Fprintln(w, "no copies")
	default:
		say(w, "group %s of %d\n", a.Group, len(a.Members))
	}
	for _, m := range a.Members {
		say(w, "%-14s %3d  %s  %s\n    fetched %s by …%s\n", m.Reason, m.Distance, address(m.Key, m.Post),
			oneLine(m.Title), m.FetchedAt.Format(time.DateTime), tail(m.Peer))
	}
	if a.More {
		fmt.Fprintln(w, "a limit was met: there may be more")
	}
	for _, m := range a.Coverage.Missing {
		say(w, "missing: %d slices of …%s: %s\n", m.Slices, tail(m.Peer), m.Reason)
	}
}

// address returns the place where a person finds a record, or a post of it.
func address(k partition.Key, post string) string {
	switch {
	case post != "":
		return oneLine(post)
	case k.URL() != "":
		return k.URL()
	}
	return string(k)
}

// shown is what the swarm knows of a key, and which texts say the same.
type shown struct {
	api.Shown
	// nil: the text is not compared with others, or see NoGroup
	Group   *api.CopyGroup `json:"group,omitempty"`
	NoGroup string         `json:"no_group,omitempty"` // why the group is not known
}

// printGroup prints in one line how many texts say the same, and which one represents them.
func printGroup(w io.Writer, s shown) {
	switch {
	case s.NoGroup != "":
		say(w, "group  not known: %s\n", oneLine(s.NoGroup))
	case s.Group == nil || s.Group.Why != "":
	case len(s.Group.Members) == 0:
		fmt.Fprintln(w, "group  no other text says the same")
	default:
		m := s.Group.Members[0]
		say(w, "group  %s: %d texts, the representative is %s\n", s.Group.Group, len(s.Group.Members),
			address(m.Key, m.Post))
	}
}
