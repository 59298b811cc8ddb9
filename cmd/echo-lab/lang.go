package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/echo-node/echo-node/cmd/echo-lab/langmodel"
)

// trainLangCmd trains the weights of crawler/judge/lang.
type trainLangCmd struct {
	Data       string `help:"Texts: train/LANG.REGISTER.tsv.gz (lang TAB text), their sources in .src.gz beside, ambiguous_pt.tsv.gz." required:"" placeholder:"DIR"`
	Catalogues string `help:"GNU message catalogues, for the languages that count as other." default:"/usr/share/locale" placeholder:"DIR"`
	Extra      string `help:"More texts in the form of --data, only to test on." placeholder:"DIR"`
	Out        string `help:"File to write the weights to." placeholder:"FILE"`
	OutPaper   string `help:"File to write the parameters of TwitterEcho's method to." placeholder:"FILE"`
	Seed       uint64 `help:"Seed of everything drawn." default:"1"`
	Bits       uint32 `help:"The table has 2^BITS slots of 8 bytes." default:"18"`
	Epochs     int    `help:"How often the texts are gone through." default:"4"`
	Evaluate   bool   `help:"Print how good it is on sources never trained on, beside the paper's method and whatlanggo."`
	JSON       bool   `help:"Print the evaluation as JSON." name:"json"`
}

// Help returns the text for --help.
func (c *trainLangCmd) Help() string {
	return `Sources are dealt into five folds. Each text is judged by a model that saw nothing of its source.
It takes about eight minutes on one core; two parts are trained beside each other.

Example:
  echo-lab train-lang --data lang --evaluate --out crawler/judge/lang/weights.bin \
    --out-paper cmd/echo-lab/twitterecho/fitted.json`
}

// Run trains and measures.
func (c *trainLangCmd) Run(ctx context.Context, o output) error {
	if c.Bits < 10 || c.Bits > 19 || c.Epochs < 1 || c.Out == "" && c.OutPaper == "" && !c.Evaluate {
		return fmt.Errorf("train-lang: %w: --bits is 10 to 19, --epochs at least 1, and --out or --evaluate is needed"+
			" (or --out-paper)", errUsage)
	}
	samples, err := langmodel.Load(c.Data)
	if err != nil {
		return fmt.Errorf("train-lang: %w", err)
	}
	others, err := langmodel.Catalogues(c.Catalogues)
	if err != nil {
		return fmt.Errorf("train-lang: %w", err)
	}
	var extra []langmodel.Sample
	if c.Extra != "" {
		if extra, err = langmodel.Load(c.Extra); err != nil {
			return fmt.Errorf("train-lang: %w", err)
		}
	}
	opts := langmodel.Default()
	opts.Seed, opts.Bits, opts.Epochs = c.Seed, c.Bits, c.Epochs
	res, err := langmodel.Train(ctx, append(samples, others...), extra, opts, c.Evaluate, o.talk)
	if err != nil {
		return fmt.Errorf("train-lang: %w", err)
	}
	if err := errors.Join(writeTo(c.Out, res.Weights), writeTo(c.OutPaper, res.Paper.Encode())); err != nil {
		return fmt.Errorf("train-lang: %w", err)
	}
	switch {
	case res.Report == nil:
		return nil
	case c.JSON:
		e := json.NewEncoder(o.out)
		e.SetIndent("", "  ")
		return e.Encode(res.Report)
	}
	return res.Report.Write(o.out)
}

// writeTo writes a file. It does nothing if the file has no name.
func writeTo(file string, b []byte) error {
	if file == "" {
		return nil
	}
	return os.WriteFile(file, b, 0o644)
}
