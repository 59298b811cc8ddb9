package main

import (
	"context"
	"fmt"
	"io"
	"os/user"

	"github.com/echo-node/echo-node/node/api"
)

type releaseCmd struct {
	keyed
	By string `placeholder:"NAME" help:"Who decides (default: your user name)."`
}

// Help returns the text below the usage.
func (releaseCmd) Help() string {
	return `Example:
  echo-node quarantine
  echo-node release https://example.org/feed.xml

A key is quarantined when two processes died while they judged it, at any peers.
Release it after the fault is mended. It is fetched again at once. If two more
processes die, it is quarantined again.`
}

// Run releases the key.
func (c *releaseCmd) Run(ctx context.Context, p *program, g *globals) error {
	if c.By == "" {
		u, err := user.Current()
		if err != nil || u.Username == "" {
			return usage("--by: say who you are")
		}
		c.By = u.Username
	}
	cl, k, err := c.dialKey()
	if err != nil {
		return err
	}
	said, err := cl.Release(ctx, api.Releasing{Key: string(k), By: c.By})
	if err != nil {
		return err
	}
	return p.print(g, said, func(w io.Writer) { fmt.Fprintf(w, "%s: due now\n", oneLine(said.Key)) })
}

type quarantineCmd struct{ client }

// Run lists the keys of a peer's slices that are in quarantine.
func (c *quarantineCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, err := c.dial()
	if err != nil {
		return err
	}
	q, err := cl.Quarantine(ctx)
	if err != nil {
		return err
	}
	return p.print(g, q, func(w io.Writer) {
		for _, k := range q.Keys {
			fmt.Fprintf(w, "%s  %s\n", oneLine(string(k.Key)), oneLine(k.Reason))
		}
		if q.More {
			fmt.Fprintf(w, "and more: status counts them\n")
		}
	})
}
