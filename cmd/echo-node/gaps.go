package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/store"
)

type gapsCmd struct {
	client
	Site   string `help:"Only this site, for example mastodon:HOST or bluesky:."`
	Since  string `placeholder:"TIME" help:"Found since (RFC 3339, or 2026-01-31)."`
	Until  string `placeholder:"TIME" help:"Found before."`
	Limit  int    `default:"100" help:"Number of gaps, at most 1000."`
	Cursor string `help:"Continue after the last answer."`
	Local  bool   `help:"Only gaps in the slices of the peer that is asked."`
}

// Help returns the text below the usage.
func (gapsCmd) Help() string {
	return `Example:
  echo-node gaps --site mastodon:mastodon.example --since 2026-01-31

For all gaps use echo-node export --kind gap.
Exit 3: answered, but part of the swarm is missing; the answer names it.`
}

// Run prints the ledger of the whole swarm.
func (c *gapsCmd) Run(ctx context.Context, p *program, g *globals) error {
	q := api.GapQuery{Site: c.Site, Limit: c.Limit, Cursor: c.Cursor, Local: c.Local}
	var err error
	if q.Since, err = parseTime("--since", c.Since); err != nil {
		return err
	}
	if q.Until, err = parseTime("--until", c.Until); err != nil {
		return err
	}
	cl, err := c.dial()
	if err != nil {
		return err
	}
	a, err := cl.Gaps(ctx, q)
	if err != nil {
		return err
	}
	if err := p.print(g, a, func(w io.Writer) { printGaps(w, a) }); err != nil {
		return err
	}
	if len(a.Missing) > 0 {
		return &incompleteError{fmt.Errorf("%d peers did not answer", len(a.Missing))}
	}
	return nil
}

func printGaps(w io.Writer, a api.GapAnswer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tABOUT\tWHAT\tFROM\tTO\tREASON")
	for _, x := range a.Gaps {
		say(t, "%s\t%s\t%s\t%s\t%s\t%s\n", x.Key, x.About, x.What, x.From.Format(time.RFC3339), gapEnd(x),
			oneLine(x.Reason))
	}
	_ = t.Flush() // see printStatus
	for _, m := range a.Missing {
		say(w, "missing: %d slices of …%s: %s\n", m.Slices, tail(m.Peer), m.Reason)
	}
	if a.Cursor != "" {
		say(w, "more: --cursor '%s'\n", a.Cursor)
	}
}

func gapEnd(g store.Gap) string {
	switch {
	case g.To.IsZero():
		return "open"
	case !g.ReadAt.IsZero():
		return g.To.Format(time.RFC3339) + " (the rest read at " + g.ReadAt.Format(time.RFC3339) + ")"
	}
	return g.To.Format(time.RFC3339)
}

// mediaText says how many files of accounts a peer has.
func mediaText(s api.Status) string {
	return fmt.Sprintf("%d files, %.1f MiB", s.Media, float64(s.MediaBytes)/(1<<20))
}

// printMedia prints which of the files named in a post or a profile were fetched. For a file it
// prints what the file is.
func printMedia(w io.Writer, r *store.Record) {
	if r.Kind == store.KindMedia {
		say(w, "file   %s, %d bytes\n", oneLine(r.MediaType), r.Size)
	}
	for _, m := range r.Media {
		say(w, "media  %s %s %s\n", oneLine(m.Type), oneLine(m.URL), cmp.Or(oneLine(m.Digest), "not had"))
	}
}

// printSummary prints the part of `show` for accounts, lists and timelines.
func printSummary(w io.Writer, h api.AccountSummary) {
	more := map[bool]string{true: " at least"}
	say(w, "posts %s %d, %d of them deleted\n", more[h.More], h.Posts, h.Deleted)
	for _, l := range h.Lists {
		say(w, "list   %s:%s %d now, %d ever, read %d times", l.List, more[l.More], l.Now, l.Ever, l.Walks)
		if x := l.Last; x != nil && !x.Complete {
			say(w, "; the last reading is not whole: %s", oneLine(x.Why))
		}
		fmt.Fprintln(w)
	}
	for _, r := range h.Latest {
		at := r.FetchedAt
		if r.PublishedAt != nil {
			at = *r.PublishedAt
		}
		say(w, "post   %s %s\n       %s\n", at.Format(time.RFC3339), r.Post, oneLine(r.Text))
		if n := len(r.Edits); n > 0 {
			say(w, "       edited %d times\n", n)
		}
		printMedia(w, &r)
	}
	for _, x := range h.Gaps {
		say(w, "gap    %s from %s to %s %s\n", x.What, x.From.Format(time.RFC3339), gapEnd(x), oneLine(x.Reason))
	}
}
