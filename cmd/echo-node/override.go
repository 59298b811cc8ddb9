package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os/user"
	"slices"

	"github.com/echo-node/echo-node/node/api"
)

type overrideCmd struct {
	client
	Key     string `arg:"" help:"An account: mastodon:user@host, or a URL of one."`
	Verdict string `arg:"" enum:"in,out,undecided,judge" help:"in, out or undecided; judge takes an earlier decision back."`
	By      string `placeholder:"NAME" help:"Who decides (default: your user name). The name is stored and shown."`
	Why     string `placeholder:"TEXT" help:"The reason, for people to read."`
}

// Help returns the text below the usage.
func (overrideCmd) Help() string {
	return `Examples:
  echo-node override mastodon:ana@m.pt in --by rui --why "born in Viseu"
  echo-node override mastodon:ana@m.pt judge --by rui

A decision by hand wins over every judge. All replicas of the account's slice keep the
decisions in order, and echo-node show prints them. An account that the swarm does not
know yet is added. The account is visited again at once.`
}

// Run sends the verdict.
func (c *overrideCmd) Run(ctx context.Context, p *program, g *globals) error {
	if c.By == "" {
		u, err := user.Current()
		if err != nil || u.Username == "" {
			return usage("--by: say who you are")
		}
		c.By = u.Username
	}
	verdict := c.Verdict
	if verdict == "judge" {
		verdict = ""
	}
	cl, err := c.dial()
	if err != nil {
		return err
	}
	said, err := cl.Overrule(ctx, api.Overruling{Key: c.Key, Verdict: verdict, By: c.By, Why: c.Why})
	if err != nil {
		return err
	}
	return p.print(g, said, func(w io.Writer) {
		if said.Verdict == "" {
			say(w, "%s: as the judge says\n", said.Key)
			return
		}
		say(w, "%s: %s\n", said.Key, said.Verdict)
	})
}

type mistakesCmd struct{ client }

// Run prints the report.
func (c *mistakesCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, err := c.dial()
	if err != nil {
		return err
	}
	m, err := cl.Mistakes(ctx)
	if err != nil {
		return err
	}
	if err := p.print(g, m, func(w io.Writer) { printMistakes(w, m) }); err != nil {
		return err
	}
	if len(m.Missing) > 0 {
		return &incompleteError{fmt.Errorf("%d peers did not answer", len(m.Missing))}
	}
	return nil
}

func printMistakes(w io.Writer, m api.Mistakes) {
	say(w, "%d overrides, %d of them of judged accounts: the judge agrees with %d, is undecided on %d, contradicts %d\n",
		m.Overrides, m.Judged, m.Agreed, m.Undecided, len(m.Mistakes))
	for _, x := range m.Mistakes {
		say(w, "%s: %s by %s (%s), the judge: %s (%.2f)\n", oneLine(string(x.Override.Key)), x.Override.Verdict,
			oneLine(x.Override.By), oneLine(x.Override.Why), x.Judged.Verdict, x.Judged.Score)
		for _, e := range x.Evidence {
			say(w, "  %s\n", oneLine(e.String()))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		say(w, "%s spoke for the contrary with %.2f\n", oneLine(kind), m.Kinds[kind])
	}
}
