package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// reportCmd asks a running world.
type reportCmd struct {
	Admin string `help:"The world's --admin address." default:"127.0.0.1:7790" placeholder:"ADDR"`
	JSON  bool   `help:"Print JSON."`
	Whole bool   `help:"Exit 3 unless every expected page was fetched, once, and nothing that must not be."`
	Twice int64  `help:"With --whole, accept so many repeated fetches: what was in flight when a peer was killed." default:"0"`
}

// Help is the example under --help.
func (reportCmd) Help() string { return "Example: echo-bench report --whole --json" }

// Run prints what the world's server saw.
func (c *reportCmd) Run(ctx context.Context, o output) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Admin+"/report", nil)
	if err != nil {
		return fmt.Errorf("report: --admin: %w: %w", errUsage, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer resp.Body.Close()
	var a Answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("report: %s answered %s: %v", c.Admin, resp.Status, err)
	}
	if c.JSON {
		err = json.NewEncoder(o.out).Encode(a)
	} else {
		_, err = fmt.Fprintf(o.out, "expected %d  missing %d  extra %d  duplicates %d  robots_violations %d  forbidden %d  stray %d  maze %d  hurried %d  min_gap %v  requests %d\n",
			a.Expected, a.Missing, a.Extra, a.Report.Duplicates, a.Report.RobotsViolations, a.Report.Forbidden, a.Report.Stray, a.Report.Maze, a.Report.Hurried,
			a.Report.MinGap.Round(time.Microsecond), a.Report.Requests)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if c.Whole && a.wrong(c.Twice) {
		return fmt.Errorf("report: the crawl is %w", errIncomplete)
	}
	return nil
}

// wrong is true when the crawl is not exactly what was expected, but for so
// many repeated fetches.
func (a Answer) wrong(twice int64) bool {
	return a.Missing+a.Extra != 0 || a.Report.Duplicates > twice || a.Report.RobotsViolations+a.Report.Forbidden+a.Report.Hurried != 0
}
