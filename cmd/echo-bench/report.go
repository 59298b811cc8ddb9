package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// reportCmd reads the report of a running test web.
type reportCmd struct {
	Admin    string        `help:"The world's --admin address." default:"127.0.0.1:7790" placeholder:"ADDR"`
	JSON     bool          `help:"Print JSON."`
	Whole    bool          `help:"Exit 3 unless every expected page was fetched, once, and nothing that must not be."`
	Twice    int64         `help:"With --whole, accept so many repeated fetches, whatever their cause." default:"0"`
	Killed   time.Time     `help:"With --whole, when a peer was killed (RFC 3339): accept one repeated fetch of each site, of a page that was in flight then." placeholder:"TIME"`
	Since    time.Time     `help:"Also say how long the longest pause after this time was (RFC 3339), in which no site was asked; 0 is less than half a second." placeholder:"TIME"`
	InFlight time.Duration `help:"How long before --killed a page may have been fetched first." default:"3s"`
}

// Help returns the example for --help.
func (reportCmd) Help() string { return "Example: echo-bench report --whole --json" }

// Run prints what the test web's server saw.
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
			a.Expected, a.Missing, a.Extra, a.Report.Duplicates, a.Report.RobotsViolations, a.Report.Forbidden,
			a.Report.Stray, a.Report.Maze, a.Report.Hurried,
			a.Report.MinGap.Round(time.Microsecond), a.Report.Requests)
	}
	if err == nil && !c.Since.IsZero() && !c.JSON {
		_, err = fmt.Fprintf(o.out, "longest_pause_ms %d\n", a.pause(c.Since).Milliseconds())
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if n := a.Report.Duplicates - a.inFlight(c.Killed, c.InFlight); c.Whole && a.wrong(n > c.Twice) {
		return fmt.Errorf("report: the crawl is %w: %d fetches repeated without cause", errIncomplete, max(n, 0))
	}
	return nil
}

// wrong reports whether the crawl differs from what was expected.
func (a Answer) wrong(twice bool) bool {
	return twice || a.Missing+a.Extra != 0 || a.Report.RobotsViolations+a.Report.Forbidden+a.Report.Hurried != 0
}

// pause returns the longest time after since in which no site got a request.
func (a Answer) pause(since time.Time) (longest time.Duration) {
	for _, p := range a.Report.Pauses {
		if p.From.Before(since) {
			p.From = since
		}
		longest = max(longest, p.To.Sub(p.From))
	}
	return longest
}

// inFlight counts the repeated fetches that a kill explains. A peer fetched the page just
// before it was killed, and could not tell the others. A peer has one page of a site in flight,
// so one page of each site counts.
func (a Answer) inFlight(killed time.Time, atMost time.Duration) int64 {
	sites := map[string]bool{}
	for _, r := range a.Report.Repeats {
		u, err := url.Parse(r.URL)
		if err == nil && r.Before.After(killed.Add(-atMost)) && r.Before.Before(killed.Add(late)) &&
			r.Again.After(killed) {
			sites[u.Host] = true
		}
	}
	return int64(len(sites))
}

// late is how long after a kill the test web may still receive a request that the killed peer
// had sent.
const late = 500 * time.Millisecond
