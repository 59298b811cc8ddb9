package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/node/safetext"
)

// focusCmd applies the judges of crawler/judge to the user's own data: one input per line on
// standard input, one JSON object per line on standard output, in order.
type focusCmd struct {
	Lang   langCmd   `cmd:"" help:"Find the language of a short text or of a person. Portugal and Brazil are told apart."`
	Place  placeCmd  `cmd:"" help:"Find the place that the location field of a profile means."`
	Who    whoCmd    `cmd:"" help:"Judge whether an account belongs to a community."`
	Period periodCmd `cmd:"" help:"Find the times that a text is about."`
	Copies copiesCmd `cmd:"" help:"Find copies among short texts."`
}

// maxLine is the largest size of one line of input, in bytes.
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

// jsonLines writes one object per line; the caller flushes.
func jsonLines(w io.Writer) (*bufio.Writer, *json.Encoder) {
	b := bufio.NewWriterSize(safetext.NewJSONWriter(w), 64<<10)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return b, e
}

type periodCmd struct {
	Ref string `placeholder:"2026-01-31" help:"When the texts were written. Without it, words such as yesterday or last year stay unresolved."`
}

// Help returns the text below the usage.
func (periodCmd) Help() string {
	return `Example:
  echo 'No verão de 2003 houve incêndios; ontem choveu.' | echo-node focus period --ref 2026-01-31

For each line of input, the output is {expressions:[{text, start, end, value, grain, kind}]}.
Both dates are inclusive, values are ISO 8601. Portuguese and English are read.`
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
	Paper bool `help:"Use only the paper's rule: a simhash within 3 bits, without verification."`
}

// Help returns the text below the usage.
func (copiesCmd) Help() string {
	return "Example:\n  printf '1\\tBom dia a todos os amigos\\n2\\tbom dia a todos os amigos!\\n' | echo-node focus copies\n\nInput: id TAB text, a line each, earlier texts first. Output: {group, id, representative, distance, reason} for each member of a group of two or more."
}

// Run groups texts.
func (c *copiesCmd) Run(p *program) error {
	g := duplicates.NewGrouper(duplicates.Options{Paper: c.Paper})
	if err := eachLine(p.stdin, func(n int, line string) error {
		id, text, ok := strings.Cut(line, "\t")
		if !ok || id == "" {
			return usage("standard input, line %d: want id TAB text", n)
		}
		g.Add(duplicates.Text{ID: id, Text: text, Time: int64(n)})
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
