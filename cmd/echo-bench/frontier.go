package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"text/tabwriter"

	"github.com/echo-node/echo-node/cmd/echo-bench/scale"
)

// frontierCmd measures the cost of a large frontier.
type frontierCmd struct {
	URLs   int    `name:"urls" help:"Known URLs." default:"10000000"`
	Sites  []int  `help:"Sites that they are spread over: one measurement each." default:"1000,10000,200000"`
	Pops   int    `help:"URLs that are taken from the frontier and committed." default:"200000"`
	Memory int    `help:"Most resident memory, in MiB; exit 3 when a crawl takes more." default:"512"`
	Dir    string `help:"Where the stores are made; they are removed afterwards." default:"" placeholder:"DIR"`
	JSON   bool   `help:"Print JSON."`
}

// Help returns the text for --help.
func (frontierCmd) Help() string {
	return `Fills a store with URLs in one process, then opens it in another and crawls it with a source that answers at once:
how long until every site is in the frontier, URLs a second, processor time a URL, and resident memory as the system saw it.
Ten million URLs need about 3 GB of disk and some minutes a measurement.

Example: echo-bench frontier --urls 1000000 --sites 1000,200000 --json`
}

// Run measures each number of sites in turn.
func (c *frontierCmd) Run(ctx context.Context, o output) error {
	exe, err := executable()
	if err != nil {
		return fmt.Errorf("frontier: %w", err)
	}
	var results []scale.Result
	over := false
	for _, sites := range c.Sites {
		opts := scale.Options{URLs: c.URLs, Sites: sites, Pops: c.Pops}
		if err := opts.Check(); err != nil {
			return fmt.Errorf("frontier: %w: %w", errUsage, err)
		}
		r, err := c.measure(ctx, o, exe, opts)
		if err != nil {
			return fmt.Errorf("frontier: %d sites: %w", sites, err)
		}
		fmt.Fprintf(o.talk, "%d sites: crawled\n", sites)
		results = append(results, r)
		over = over || r.CrawlMiB > float64(c.Memory)
	}
	if err := c.print(o, results); err != nil {
		return fmt.Errorf("frontier: %w", err)
	}
	if over {
		return fmt.Errorf("frontier: %w: more than %d MiB", errIncomplete, c.Memory)
	}
	return nil
}

func (c *frontierCmd) measure(ctx context.Context, o output, exe string, opts scale.Options) (r scale.Result,
	err error) {
	if opts.Dir, err = os.MkdirTemp(c.Dir, "echo-frontier"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(opts.Dir)) }()
	for _, phase := range []string{"fill", "crawl"} {
		fmt.Fprintf(o.talk, "%d URLs on %d sites: %s\n", opts.URLs, opts.Sites, phase)
		cmd := exec.CommandContext(ctx, exe, "frontier-phase", phase, "--dir", opts.Dir, "--urls",
			strconv.Itoa(opts.URLs),
			"--sites", strconv.Itoa(opts.Sites), "--pops", strconv.Itoa(opts.Pops))
		cmd.Stderr = o.talk
		out, err := cmd.Output()
		if err != nil {
			return r, fmt.Errorf("%s: %w", phase, err)
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return r, fmt.Errorf("%s: %w", phase, err)
		}
	}
	return r, nil
}

func (c *frontierCmd) print(o output, results []scale.Result) error {
	if c.JSON {
		return json.NewEncoder(o.out).Encode(results)
	}
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "sites\tURLs\tfilled URLs/s\tdisk MiB\topen s\tall sites s\tfirst pop s\tpops/s\tCPU us/pop\tpop us\tcrawl MiB\tfill MiB\t")
	for _, r := range results {
		fmt.Fprintf(w, "%d\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f\t%.1f\t%.2f\t%.0f\t%.0f\t\n", r.Sites, r.URLs,
			r.FillRate, r.DiskMiB, r.Open, r.Loaded,
			r.First, r.PopRate, r.PopCPU, r.PopAlone, r.CrawlMiB, r.FillMiB)
	}
	return w.Flush()
}

// frontierPhaseCmd is one process of a measurement.
type frontierPhaseCmd struct {
	Phase string `arg:"" enum:"fill,crawl"`
	Dir   string `required:""`
	URLs  int    `name:"urls" required:""`
	Sites int    `required:""`
	Pops  int    `required:""`
}

// Run prints the phase's part of a Result as JSON.
func (c *frontierPhaseCmd) Run(ctx context.Context, o output) error {
	opts := scale.Options{Dir: c.Dir, URLs: c.URLs, Sites: c.Sites, Pops: c.Pops}
	run := scale.Fill
	if c.Phase == "crawl" {
		run = scale.Crawl
	}
	r, err := run(ctx, opts)
	if err != nil {
		return err
	}
	return json.NewEncoder(o.out).Encode(r)
}
