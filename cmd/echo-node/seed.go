package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/api"
)

type seedCmd struct {
	client
	Keys   []string      `arg:"" optional:"" name:"key" help:"Keys or URLs."`
	Seeds  string        `placeholder:"FILE" help:"File with more keys or URLs, one a line. A line that is not a key is reported with its number; the others are taken."`
	Strict bool          `help:"Take nothing when a line of --seeds is not a key."`
	Again  bool          `help:"Fetch keys now that are already known, whatever was planned."`
	Wait   time.Duration `default:"30s" help:"Keep trying for this long when a key's owner does not answer yet."`
}

// Help returns the text below the usage.
func (seedCmd) Help() string {
	return "Example:\n  echo-node seed https://example.org/ --api 127.0.0.1:7700\n  echo-node seed --again mastodon:alice@example.social"
}

// Run seeds keys. The exit code is 3 when a key has no final answer, and 1 when one was
// refused.
func (c *seedCmd) Run(ctx context.Context, p *program, g *globals) error {
	keys, bad, err := readSeeds(c.Keys, c.Seeds, c.Strict)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return usage("nothing to seed: give keys, URLs or --seeds FILE")
	}
	cl, err := c.dial()
	if err != nil {
		return err
	}
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = string(k)
	}
	answers, err := c.seed(ctx, cl, texts)
	if err != nil {
		return err
	}
	for _, b := range bad {
		answers = append(answers,
			api.SeedAnswer{Key: b.text, Answer: "refused", Reason: fmt.Sprintf("line %d: %v", b.line, b.err)})
	}
	if err := p.print(g, answers, func(w io.Writer) {
		for _, a := range answers {
			fmt.Fprintln(w, strings.TrimSpace(a.Answer+"\t"+oneLine(a.Key)+"\t"+oneLine(a.Reason)))
		}
	}); err != nil {
		return err
	}
	var busy, refused int
	for _, a := range answers {
		switch a.Answer {
		case "busy":
			busy++
		case "refused":
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d seeds refused", refused, len(answers))
	}
	if busy > 0 {
		return &incompleteError{fmt.Errorf("%d of %d seeds have no owner that answers yet; seed them again", busy,
			len(answers))}
	}
	return nil
}

// seed sends keys as seeds. Until Wait is over, it repeats those without a final answer.
func (c *seedCmd) seed(ctx context.Context, cl *api.Client, keys []string) ([]api.SeedAnswer, error) {
	answers := make([]api.SeedAnswer, len(keys))
	open := make([]int, len(keys))
	for i := range open {
		open[i] = i
	}
	for deadline := time.Now().Add(c.Wait); ; {
		batch := make([]string, len(open))
		for j, i := range open {
			batch[j] = keys[i]
		}
		give := cl.Seed
		if c.Again {
			give = cl.SeedAgain
		}
		got, err := give(ctx, batch)
		if err != nil {
			return nil, err
		}
		if len(got) != len(batch) {
			return nil, fmt.Errorf("seed: %d answers to %d keys", len(got), len(batch))
		}
		var still []int
		for j, i := range open {
			if answers[i] = got[j]; got[j].Answer == "busy" {
				still = append(still, i)
			}
		}
		if open = still; len(open) == 0 || time.Now().After(deadline) {
			return answers, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
