package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"text/tabwriter"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-bench/rivals"
)

// crawlCmd compares echo-node with other crawlers.
type crawlCmd struct {
	Modes    []string      `name:"mode" help:"Of raw (fetch, links, store), indexed (a whole peer with its full-text index), polite (a whole peer, one request a second and site)." default:"raw,indexed,polite"`
	Rivals   []string      `help:"Of colly, wget2, scrapy; one that is not installed is skipped. NONE: echo-node alone." default:"colly,wget2,scrapy"`
	Sites    int           `help:"Sites of the web." default:"200"`
	Pages    int           `help:"Pages of a site." default:"2000"`
	Words    int           `help:"Words on a page." default:"1500"`
	For      time.Duration `help:"Time measured; 0: 40 s, in polite mode 120 s once all sites are in flight." default:"0s"`
	Warm     time.Duration `help:"Time before that, not measured; 0: 5 s." default:"0s"`
	Dir      string        `help:"Where the stores are made; they are removed afterwards." default:"" placeholder:"DIR"`
	Profiles string        `help:"Leave profiles of echo-node here." default:"" placeholder:"DIR"`
	JSON     bool          `help:"Print JSON."`
}

// Help returns the text for --help.
func (crawlCmd) Help() string {
	return `One crawler after the other crawls the same synthetic web on this machine, whose server counts: pages a second, repeated pages,
smallest gap. Memory is the most that the operating system saw. wget2 and Scrapy come from Debian's wget2 and python3-scrapy.

Example: echo-bench crawl --mode raw --rivals colly --for 60s`
}

// Run measures and prints.
func (c *crawlCmd) Run(ctx context.Context, o output) error {
	exe, err := executable()
	if err != nil {
		return fmt.Errorf("crawl: %w", err)
	}
	opts := rivals.Options{Program: exe, Rivals: c.Rivals, Sites: c.Sites, Pages: c.Pages, Words: c.Words, For: c.For,
		Warm: c.Warm, Dir: c.Dir, Profiles: c.Profiles, Talk: o.talk}
	if len(c.Rivals) == 1 && c.Rivals[0] == "NONE" {
		opts.Rivals = []string{}
	}
	for _, m := range c.Modes {
		opts.Modes = append(opts.Modes, rivals.Mode(m))
	}
	if err := opts.Check(); err != nil {
		return fmt.Errorf("crawl: %w: %w", errUsage, err)
	}
	rs, err := rivals.Run(ctx, opts)
	if err != nil {
		return fmt.Errorf("crawl: %w", err)
	}
	if c.JSON {
		return json.NewEncoder(o.out).Encode(rs)
	}
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "mode\tcrawler\tpages/s\tof Colly\trequests/s\tsites\ttwice\thurried\tmin gap ms\tpeak MiB\tCPU s\tseconds\tindex lag\t")
	for _, r := range rs {
		if r.Skipped != "" {
			fmt.Fprintf(w, "%s\t%s\tskipped: %s\n", r.Mode, r.Crawler, r.Skipped)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.3f\t%.1f\t%d\t%d\t%d\t%.1f\t%.0f\t%.1f\t%.1f\t%d\t\n", r.Mode, r.Crawler,
			r.PagesPerS, r.Ratio, r.RequestsPerS, r.Sites, r.Duplicates,
			r.Hurried, r.MinGapMS, r.PeakMiB, r.CPU, r.Seconds, r.IndexLag)
	}
	return w.Flush()
}

// crawlPeerCmd is echo-node in a measurement.
type crawlPeerCmd struct {
	Mode     string       `required:"" enum:"raw,indexed,polite"`
	Dir      string       `required:""`
	Seeds    string       `required:""`
	Allow    netip.Prefix `required:""`
	Profiles string       `default:""`
}

// Run crawls until it is told to stop.
func (c *crawlPeerCmd) Run(ctx context.Context, o output) error {
	return rivals.Peer(ctx, rivals.PeerOptions{Mode: rivals.Mode(c.Mode), Dir: c.Dir, Seeds: c.Seeds, Allow: c.Allow,
		Profiles: c.Profiles,
		Log:      slog.New(slog.NewTextHandler(o.talk, &slog.HandlerOptions{Level: slog.LevelInfo}))})
}

// crawlCollyCmd is Colly in a measurement.
type crawlCollyCmd struct {
	Seeds    string        `required:""`
	Parallel int           `required:""`
	Delay    time.Duration `default:"0s"`
}

// Run crawls until it is told to stop.
func (c *crawlCollyCmd) Run(ctx context.Context) error {
	return rivals.Colly(ctx, c.Seeds, c.Parallel, c.Delay)
}
