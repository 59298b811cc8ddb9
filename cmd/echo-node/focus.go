package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/echo-node/echo-node/crawler/focus/copies"
	"github.com/echo-node/echo-node/crawler/focus/period"
	"github.com/echo-node/echo-node/node/safetext"
)

// focusCmd is the judges of crawler/focus on one's own data: one input a line
// on standard input, one JSON object a line on standard output, in order.
type focusCmd struct {
	Lang   langCmd   `cmd:"" help:"Which language a short text, or a person, writes in; Portugal and Brazil told apart."`
	Place  placeCmd  `cmd:"" help:"Where a free-text profile location is."`
	Who    whoCmd    `cmd:"" help:"Whether an account belongs to a community."`
	Period periodCmd `cmd:"" help:"Which times a text speaks of."`
	Copies copiesCmd `cmd:"" help:"Which short texts are copies of which."`
}

// maxLine caps one line of input.
const maxLine = 1 << 20

// eachLine calls fn with every line of r and its number from 1.
func eachLine(r io.Reader, fn func(n int, line string) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for sc.Scan() {
		n++
		if err := fn(n, sc.Text()); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("standard input, line %d: %w", n+1, err)
	}
	return nil
}

// jsonLines writes objects a line each; the caller flushes.
func jsonLines(w io.Writer) (*bufio.Writer, *json.Encoder) {
	b := bufio.NewWriterSize(safetext.NewJSONWriter(w), 64<<10)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return b, e
}

type periodCmd struct {
	Ref string `placeholder:"2026-01-31" help:"When the texts were written; without it what points from there (yesterday, last year) stays unresolved."`
}

// Help is shown under the usage.
func (periodCmd) Help() string {
	return "Example:\n  echo 'No verão de 2003 houve incêndios; ontem choveu.' | echo-node focus period --ref 2026-01-31\n\nA line of input gives {expressions:[{text, start, end, value, grain, kind}]}; dates are inclusive, values ISO 8601. Portuguese and English."
}

// periodLine is the output for one text (CLI.md).
type periodLine struct {
	Expressions []period.Expression `json:"expressions"`
}

// Run tags texts.
func (c *periodCmd) Run(p *program) error {
	ref, err := parseTime("--ref", c.Ref)
	if err != nil {
		return err
	}
	w, enc := jsonLines(p.stdout)
	if err := eachLine(p.stdin, func(_ int, line string) error {
		out := periodLine{Expressions: period.Tag(line, ref)}
		if out.Expressions == nil {
			out.Expressions = []period.Expression{}
		}
		return enc.Encode(out)
	}); err != nil {
		return err
	}
	return w.Flush()
}

type copiesCmd struct {
	Paper bool `help:"Only the rules of the paper: simhash within 3 bits, nothing verified."`
}

// Help is shown under the usage.
func (copiesCmd) Help() string {
	return "Example:\n  printf '1\\tBom dia a todos os amigos\\n2\\tbom dia a todos os amigos!\\n' | echo-node focus copies\n\nInput: id TAB text, a line each, earlier texts first. Output: {group, id, representative, distance, reason} for each member of a group of two or more."
}

// Run groups texts.
func (c *copiesCmd) Run(p *program) error {
	g := copies.NewGrouper(copies.Options{Paper: c.Paper})
	if err := eachLine(p.stdin, func(n int, line string) error {
		id, text, ok := strings.Cut(line, "\t")
		if !ok || id == "" {
			return usage("standard input, line %d: want id TAB text", n)
		}
		g.Add(copies.Text{ID: id, Text: text, Time: int64(n)})
		return nil
	}); err != nil {
		return err
	}
	w, enc := jsonLines(p.stdout)
	for _, group := range g.Groups() {
		for _, m := range group {
			if err := enc.Encode(m); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
