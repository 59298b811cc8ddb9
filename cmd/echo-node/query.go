package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/api"
)

type queryCmd struct {
	client
	filter
	Words   []string      `arg:"" name:"words" help:"What to search for. A hit has all the words. \"a phrase\" is found as a whole. -word excludes hits with the word; write -- before all words then."`
	Limit   int           `default:"10" help:"Number of hits, at most 1000."`
	Cursor  string        `help:"Continue after the last answer."`
	Unfold  bool          `help:"Show each copy as a hit of its own, instead of below the best one."`
	Timeout time.Duration `placeholder:"TIME" help:"How long to wait for other peers, for example 500ms; at most 25s (default: the peer's own setting, 5s). The answer names peers that were too late as missing."`
}

// Help returns the text below the usage.
func (queryCmd) Help() string {
	return `Examples:
  echo-node query autocarro porto --lang pt --json
  echo-node query guerra --scope 1939..1945 --near Lisboa --radius 100
  echo-node query --limit 50 -- vector '"shared memory"' -boost

A word is found as a whole and by the parts that signs and capitals make: org finds
www.boost.org. The answer ends with notes on what of the query was not understood.
To see more than --limit hits (at most 1000), continue with --cursor, as often as needed.
Hits with the same or nearly the same text are one hit: the best, with the others below it.
Exit 3: answered, but part of the swarm is missing; the answer names it.`
}

// Run queries the whole swarm through one peer.
func (c *queryCmd) Run(ctx context.Context, p *program, g *globals) error {
	q := api.Query{Q: strings.Join(c.Words, " "), Kind: c.Kind, Lang: c.Lang, Site: c.Site, Facets: c.facets(),
		Limit: c.Limit, Cursor: c.Cursor, Unfold: c.Unfold, Timeout: c.Timeout}
	var err error
	if q.Since, q.Until, err = c.times(); err != nil {
		return err
	}
	cl, err := c.dial()
	if err != nil {
		return err
	}
	a, err := cl.Query(ctx, q)
	if err != nil {
		return err
	}
	if err := p.print(g, a, func(w io.Writer) { printAnswer(w, a) }); err != nil {
		return err
	}
	if a.Coverage.SlicesAnswered < a.Coverage.SlicesTotal {
		return &incompleteError{fmt.Errorf("%d of %d slices answered", a.Coverage.SlicesAnswered,
			a.Coverage.SlicesTotal)}
	}
	return nil
}

func printAnswer(w io.Writer, a api.Answer) {
	for i, h := range a.Hits {
		say(w, "%2d. %s\n    %s\n", i+1, oneLine(h.Title), address(h.Key, h.Post))
		if s := oneLine(h.Snippet); s != "" {
			say(w, "    %s\n", s)
		}
		say(w, "    %.3f  %s  fetched %s by …%s\n", h.Score, h.Lang, h.FetchedAt.Format(time.DateTime), tail(h.Peer))
		if said := strings.TrimSpace(strings.Join([]string{oneLine(h.Place), h.Period, h.Verdict}, "  ")); said != "" {
			say(w, "    %s\n", said)
		}
		for _, c := range h.Copies {
			say(w, "    = %s (%s)\n", address(c.Key, c.Post), c.Reason)
		}
	}
	say(w, "%d of about %d hits; %d of %d slices answered in %.0f ms\n", len(a.Hits), a.Total,
		a.Coverage.SlicesAnswered, a.Coverage.SlicesTotal, a.TookMS)
	for _, m := range a.Coverage.Missing {
		say(w, "missing: %d slices of …%s: %s\n", m.Slices, tail(m.Peer), m.Reason)
	}
	for _, note := range a.Notes {
		say(w, "note: %s\n", oneLine(note))
	}
	if a.Cursor != "" {
		say(w, "more: --cursor %s\n", a.Cursor)
	}
}
