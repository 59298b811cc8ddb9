package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/temporal"
	"github.com/echo-node/echo-node/crawler/judge/period"
)

// temporalCmd crawls a synthetic web for pages about a time.
type temporalCmd struct {
	Scope  []string `help:"Wanted times, parted by commas; the paper has figures for these two." default:"1939..1945,2001"`
	Pages  int      `help:"Pages of the web." default:"100000"`
	Budget int      `help:"Pages that each crawl fetches." default:"5000"`
	Starts int      `help:"Pages of the wanted time that each crawl begins with." default:"10"`
	Seed   uint64   `help:"Seed of everything drawn." default:"1"`
	Out    string   `help:"Directory for a table (CSV) and a chart (SVG) of each scope." placeholder:"DIR"`
	JSON   bool     `help:"Print JSON." name:"json"`

	Mark    string `help:"Crawl nothing; mark the times in --texts: harem or timex3." enum:"harem,timex3," default:""`
	Texts   string `help:"File for --mark, a text a line." default:"/dev/stdin" placeholder:"FILE"`
	Written string `help:"For --mark, when they were written: a date, a byline or a URL." placeholder:"TEXT"`
}

// Help returns the text for --help.
func (temporalCmd) Help() string {
	return `How many of the pages that a crawl fetches speak of a wanted time? Each order of crawling begins
with the same pages of the same synthetic Portuguese web, in which the truth about every page is known. The
paper is Pereira, "Descarga Temporal de Páginas Web" (Universidade do Minho, 2013). Its figures are of crawls of
pt.wikipedia.org, and only those that its text on figures 8.1 and 8.2 tells.

  breadth-first  the paper's general crawler: every link, oldest first
  random         every link, any
  paper          the paper's temporal crawler: links in passages with all dates in scope, the most seen first
  paper-frozen   the same, ordered by what was known when a link was first seen
  echo-node      every link, ordered as a crawl with --scope does, by what is known when it is first seen
  learned        the evidence of echo-node, asked again whenever a link is seen, with weights that learn
  oracle         what is relevant first: it is told the truth

Precision is the share of relevant pages among those fetched, lift the precision over that of breadth-first.
Recall is of all relevant pages; the paper knows only those that one of its two crawls found, which is pooled
recall. The last line is of phrases written by hand, the paper's figure of pages of the web: they do not
measure the same.

With --mark, a reader of the marks of HAREM or TimeML, such as a scorer that others wrote, can judge the tagger.

Exit 3 when at 5000 pages, with a scope of the paper, paper or learned lift precision less than the paper did,
or when the tagger resolves a smaller share than the paper's.

Examples:
  echo-lab temporal                                          less than a minute
  echo-lab temporal --scope 1974-04..1975-11 --json
  echo-lab temporal --mark timex3 --texts news.txt --written 2013-01-21`
}

// Run measures and prints, or marks texts.
func (c *temporalCmd) Run(ctx context.Context, o output) error {
	if c.Mark != "" {
		return c.mark(o.out)
	}
	r, err := temporal.Measure(ctx, temporal.Options{
		Pages: c.Pages, Budget: c.Budget, Starts: c.Starts, Seed: c.Seed, Scopes: c.Scope, Talk: o.talk,
	})
	switch {
	case errors.Is(err, temporal.ErrOptions):
		return fmt.Errorf("%w: %w", errUsage, err)
	case err != nil:
		return err
	}
	if c.Out != "" {
		if err := c.files(r); err != nil {
			return err
		}
	}
	if c.JSON {
		err = json.NewEncoder(o.out).Encode(r)
	} else {
		err = temporalTable(o.out, r)
	}
	if faults := r.Faults(); err == nil && len(faults) > 0 {
		err = fmt.Errorf("temporal: %w: %w", errIncomplete, errors.Join(faults...))
	}
	return err
}

// temporalTable prints a table for each scope.
func temporalTable(w io.Writer, r *temporal.Report) error {
	t := &table{w: w}
	t.line("a web of %d pages, seed %d; crawls of %d pages from %d; all in percent but the lift\n",
		r.Pages, r.Seed, r.Budget, r.Starts)
	for _, s := range r.Scopes {
		paper := s.Paper
		if paper == nil {
			paper = &temporal.Figures{Name: "none"}
		}
		t.line("%s: %d pages are relevant, %.1f; the paper's crawl: %s", s.Scope, s.Relevant, 100*s.Base, paper.Name)
		row := func(name, general, temporalText string, cell func(temporal.Side) string) {
			var b strings.Builder
			for _, c := range s.Crawls {
				fmt.Fprintf(&b, " %13s", cell(c))
			}
			t.line("%s", strings.TrimRight(fmt.Sprintf("%-15s %9s %9s |%s", name, general, temporalText, b.String()),
				" "))
		}
		row("", "paper's", "paper's", func(temporal.Side) string { return "" })
		row("precision at", "general", "temporal", func(c temporal.Side) string { return string(c.Order) })
		for i, p := range s.Crawls[0].Points {
			general, temporalText := "", ""
			for _, q := range paper.Points {
				if q.Pages == p.Pages {
					general, temporalText = q.General, q.Temporal
				}
			}
			row(fmt.Sprint(p.Pages), general, temporalText,
				func(c temporal.Side) string { return percent(c.Points[i].Precision) })
		}
		lift := ""
		if paper.Lift > 0 {
			lift = fmt.Sprintf("%.1f", paper.Lift)
		}
		row("lift", "", lift, func(c temporal.Side) string { return fmt.Sprintf("%.2f", c.Lift) })
		row("mean precision", "", "", func(c temporal.Side) string { return percent(c.Area) })
		row("recall", "", "", func(c temporal.Side) string { return percent(c.Recall) })
		row("pooled recall", paper.Recall, "", func(c temporal.Side) string { return percent(c.Pooled) })
		for _, c := range s.Crawls {
			if c.Order == temporal.EchoNode && r.Budget == temporal.PaperBudget && c.Lift < paper.Lift {
				t.line("echo-node is below the paper's lift: a link keeps the place that it had when it was first seen")
			}
		}
		t.line("")
	}
	g := r.Tagger
	t.line("the tagger: %d of %d phrases right; resolved %s (paper %s, of other texts); a false time in %d of %d lines",
		g.Right, g.Phrases, percent(g.ResolvedShare()), percent(r.PaperResolved), g.False, g.Lines)
	return t.err
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

// files writes the curves of each scope into the directory.
func (c *temporalCmd) files(r *temporal.Report) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	for _, s := range r.Scopes {
		title := fmt.Sprintf("%s: precision, base rate %.3f", s.Scope, s.Base)
		for name, text := range map[string]string{
			".csv": temporal.CSV(s.Curves, r.Budget, s.Relevant),
			".svg": temporal.SVG(title, s.Curves, r.Budget),
		} {
			if err := os.WriteFile(filepath.Join(c.Out, "temporal-"+s.Scope+name), []byte(text), 0o644); err != nil {
				return fmt.Errorf("temporal: %w", err)
			}
		}
	}
	return nil
}

// mark prints texts with their times marked.
func (c *temporalCmd) mark(out io.Writer) error {
	var written time.Time
	if c.Written != "" {
		e := temporal.DateEvidence{Byline: []string{c.Written}, URL: c.Written}
		found, ok := temporal.FindDocDate(e, time.Now())
		if !ok {
			return fmt.Errorf("temporal: %w: --written %q has no day from 1990 on", errUsage, c.Written)
		}
		written = found.Date
	}
	f, err := os.Open(c.Texts)
	if err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	defer f.Close()
	marks := temporal.HAREM
	if c.Mark == "timex3" {
		marks = temporal.TIMEX3
	}
	texts := bufio.NewScanner(f)
	texts.Buffer(nil, 1<<20)
	for texts.Scan() {
		text := texts.Text()
		if _, err := fmt.Fprintln(out, marks(text, period.Tag(text, written))); err != nil {
			return err
		}
	}
	if err := texts.Err(); err != nil {
		return fmt.Errorf("temporal: %s: %w", c.Texts, err)
	}
	return nil
}
