package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/echo-node/echo-node/cmd/echo-lab/duplicates"
)

// duplicatesCmd measures how well copies of short texts are found.
type duplicatesCmd struct {
	PerClass int      `help:"Texts of each kind of edit." default:"1000"`
	Words    int      `help:"Words of a text." default:"15"`
	Texts    int      `help:"Texts of each language for the paper's shares of copies." default:"10000"`
	Seed     uint64   `help:"Seed of the texts and edits." default:"21"`
	Data     string   `help:"Real sentences as of train-lang: train/LANG.REGISTER.tsv.gz." placeholder:"DIR"`
	Register []string `help:"Registers of --data." default:"news,social,web"`
	JSON     bool     `help:"Print JSON." name:"json"`
}

// Help returns the text for --help.
func (duplicatesCmd) Help() string {
	return `Which short texts are copies of which? Copies of known kinds are planted among texts of invented words, each
beside a text of the same topic that has a third of its words replaced. The paper is Xu, Sha, Li, Shan and Wang,
"Duplicate messages in Twitter" (Computer Engineering and Applications 50(21), 2014). It gives no figures by
kind of edit, so its method is measured on the same texts:

  echo-node  what a peer does: simhash within 3 bits, and more candidates by min-hash, all compared word by word
  paper      simhash of the set of words, within 3 bits
  counts     simhash where repeated words count, which the paper argues against; of the planted pairs only

Found is the share of the planted copies that were put beside their originals: the recall. A text with a negation
or with another number is no copy; of these nothing should be found. Wrong are all texts of a kind that were put
into a group where they do not belong, and precision is the share of the others.

Then come the paper's method at other distances; the paper's shares of copies, planted and looked for; its example
of a repeated word; and with --data one-word edits of real sentences. There "other" are pairs that were not
planted: mistakes, or sentences that were nearly equal before. Catalogues and manuals are full of those, so
registers ui and docs say little.

Exit 3 when with --words 15 less than every copy of the first four kinds, or 95 % of the one-word edits, or
anything of the last two kinds is found; when precision is below 98 %, or a share of copies more than 0.2 points
off; or when in real sentences recall is below 95 % or precision below 98 %.

Examples:
  echo-lab duplicates                        some seconds
  echo-lab duplicates --words 8 --json
  echo-lab duplicates --data lang`
}

// Run measures and prints.
func (c *duplicatesCmd) Run(ctx context.Context, o output) error {
	r, err := duplicates.Measure(ctx, duplicates.Options{
		PerClass: c.PerClass, Words: c.Words, Texts: c.Texts, Seed: c.Seed,
		Data: c.Data, Register: c.Register, Talk: o.talk,
	})
	switch {
	case errors.Is(err, duplicates.ErrOptions):
		return fmt.Errorf("%w: %w", errUsage, err)
	case err != nil:
		return err
	}
	if c.JSON {
		err = json.NewEncoder(o.out).Encode(r)
	} else {
		err = duplicatesTable(o.out, r)
	}
	if faults := r.Faults(); err == nil && len(faults) > 0 {
		err = fmt.Errorf("duplicates: %w: %w", errIncomplete, errors.Join(faults...))
	}
	return err
}

// duplicatesTable prints tables of kinds, of distances, of shares and of real sentences.
func duplicatesTable(w io.Writer, r *duplicates.Report) error {
	t := &table{w: w}
	t.line("%d texts of %d words of each kind, seed %d; in percent\n", r.PerClass, r.Words, r.Seed)
	t.line("%-17s | %-24s | %-24s | %s", "", "echo-node", "paper", "counts")
	t.line("%-17s | %6s %6s %10s | %6s %6s %10s | %6s",
		"edit", "found", "wrong", "precision", "found", "wrong", "precision", "found")
	for _, x := range r.Classes {
		side := func(s duplicates.Score) string {
			precision := percent(s.Precision())
			if x.Other {
				precision = "no copy"
			}
			return fmt.Sprintf("%6s %6d %10s", percent(s.Found), s.Wrong, precision)
		}
		t.line("%-17s | %s | %s | %6s", x.Name, side(x.Ours), side(x.Paper), percent(x.Counts))
	}
	all := func(s duplicates.Score) string {
		return fmt.Sprintf("%6s %6d %10s", percent(s.Found), s.Wrong, percent(s.Precision()))
	}
	t.line("%-17s | %s | %s |\n", "all copies", all(r.All.Ours), all(r.All.Paper))
	t.line("the paper's method by distance in bits; the paper found precision best at 3, and does not say how good")
	for _, x := range r.Distance {
		t.line("%4d bits: precision %5s, recall %5s", x.Bits, percent(x.Precision), percent(x.Recall))
	}
	t.line("\nshare of copies, as the paper found it and as it is found here where it was planted by marks alone")
	for _, x := range r.Rates {
		t.line("%s: paper %.2f, echo-node %.2f, the paper's method %.2f",
			x.Language, 100*x.Planted, 100*x.Ours, 100*x.Paper)
	}
	t.line("\nthe paper's example, a word three times or once: %d bits apart by sets, %d by counts",
		r.Example.Sets, r.Example.Counts)
	if len(r.Real) == 0 {
		return t.err
	}
	t.line("\n%-18s %9s %7s %7s %6s %10s", "real sentences", "sentences", "planted", "recall", "other", "precision")
	for _, x := range r.Real {
		t.line("%-18s %9d %7d %7s %6d %10s",
			x.Name, x.Sentences, x.Planted, percent(x.Recall), x.Wrong, percent(x.Precision()))
	}
	return t.err
}
