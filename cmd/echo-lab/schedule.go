package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
)

// scheduleCmd replays change histories against revisit policies.
type scheduleCmd struct {
	History string    `help:"Histories to replay: a file of item TAB unix time TAB unix time …, plain or gzip, or synthetic:NAME (a, b, drift, burst, echo, table, paper)." default:"synthetic:a" placeholder:"FILE"`
	Policy  string    `help:"Policies to compare: all, or names parted by commas." default:"all"`
	Budget  []float64 `help:"Visits per item per 30 days, repeatable." default:"0.5,2,8"`
	Seeds   int       `help:"Worlds to average over; intervals are of 95 %." default:"20"`
	Items   int       `help:"Most items in one world." default:"300"`
	Days    int       `help:"Days of each run, the last of the histories." default:"730"`
	Warm    float64   `help:"Part of the run that is not measured." default:"0.2"`
	Page    int       `help:"Posts one visit shows: above 0 the items are timelines, judged by posts missed." default:"0"`
	JSON    bool      `help:"Write JSON." name:"json"`
	Out     string    `help:"Directory for results.csv, days.csv and the charts (SVG)." placeholder:"DIR"`
}

// Help returns the text for --help.
func (c *scheduleCmd) Help() string {
	return `Every policy has the same visits at the same times; oracle-* are told the truth and show the limit. In the populations echo and table a visit is a look-up,
which shows an account's last post and its counter alone. "echo-lab social" measures what TwitterEcho's call rates
bring with timeline calls as well.

Example: echo-lab schedule --history changes.tsv.gz --policy default,uniform --budget 2 --json`
}

// Run holds the contest: equal visits and equal start for every policy.
func (c *scheduleCmd) Run(ctx context.Context, o output) error {
	if err := c.validate(); err != nil {
		return err
	}
	world, err := c.world()
	if err != nil {
		return err
	}
	var reports []contest.Report
	for _, budget := range c.Budget {
		if err := ctx.Err(); err != nil {
			return err
		}
		runs, err := contest.Hold(contest.Contest{World: world, Policies: c.policies(), Budget: budget, Seeds: c.Seeds,
			Warm: c.Warm})
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(c.History), ".gz"), ".tsv")
		r := contest.Report{World: name, Budget: budget, Seeds: c.Seeds, Page: c.Page, Runs: runs}
		if reports = append(reports, r); !c.JSON {
			if err := contest.WriteTable(o.out, r); err != nil {
				return err
			}
		}
	}
	if c.Out != "" {
		if err := c.files(reports); err != nil {
			return err
		}
	}
	if c.JSON {
		return contest.WriteJSON(o.out, reports)
	}
	return nil
}

func (c *scheduleCmd) policies() []string {
	if c.Policy == "all" {
		return contest.Names()
	}
	return strings.Split(c.Policy, ",")
}

// validate returns all errors at once.
func (c *scheduleCmd) validate() error {
	var faults []error
	for _, p := range c.policies() {
		if names := append(contest.Names(), contest.Unlearned); !slices.Contains(names, p) {
			faults = append(faults, fmt.Errorf("no policy %q (there are %s)", p, strings.Join(names, ", ")))
		}
	}
	for _, b := range c.Budget {
		if !(b > 0 && b <= 1e5) {
			faults = append(faults, fmt.Errorf("budget %g is not between 0 and 100000", b))
		}
	}
	if len(c.Budget) == 0 || c.Seeds < 1 || c.Items < 1 || c.Days < 2 || c.Page < 0 || !(c.Warm >= 0 && c.Warm < 1) {
		faults = append(faults, fmt.Errorf("budgets %v, seeds %d, items %d, days %d, page %d, warm %g: out of range",
			c.Budget, c.Seeds, c.Items, c.Days, c.Page, c.Warm))
	}
	if len(faults) > 0 {
		return fmt.Errorf("schedule: %w: %w", errUsage, errors.Join(faults...))
	}
	return nil
}

// world returns the function that makes the world of each seed.
func (c *scheduleCmd) world() (func(uint64) (contest.World, error), error) {
	if name, ok := strings.CutPrefix(c.History, "synthetic"); ok {
		name = strings.TrimPrefix(name, ":")
		if name == "" {
			name = "a"
		}
		if !slices.Contains(contest.Populations(), name) {
			return nil, fmt.Errorf("schedule: %w: no population %q (there are %s)", errUsage, name,
				strings.Join(contest.Populations(), ", "))
		}
		return contest.Drawn(name, c.Items, c.Days), nil
	}
	things, err := readHistory(c.History)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	base, err := contest.Replay(filepath.Base(c.History), things, c.Days)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	if c.Page > 0 {
		base.Page, base.Timeline, base.Counted = c.Page, true, true
	}
	return contest.Sampled(base, c.Items), nil
}

// readHistory reads a file, plain or gzip by its first bytes.
func readHistory(path string) ([]contest.Thing, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if head, err := r.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return contest.ReadHistory(z)
	}
	return contest.ReadHistory(r)
}

// files writes the tables and charts into the directory.
func (c *scheduleCmd) files(reports []contest.Report) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	put := func(name string, write func(io.Writer) error) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.Out, name), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		return nil
	}
	faults := []error{
		put("results.csv", func(w io.Writer) error { return contest.WriteCSV(w, reports) }),
		put("days.csv", func(w io.Writer) error { return contest.WriteDays(w, reports) }),
	}
	for _, r := range reports {
		name := fmt.Sprintf("budget-%g", r.Budget)
		faults = append(faults,
			put("days-"+name+".svg", func(w io.Writer) error { return contest.ChartDays(w, r) }),
			put("pareto-"+name+".svg", func(w io.Writer) error { return contest.ChartPareto(w, r) }))
	}
	return errors.Join(faults...)
}
