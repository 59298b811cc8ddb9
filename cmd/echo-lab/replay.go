package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"

	"github.com/echo-node/echo-node/cmd/echo-lab/replay"
)

// replayCmd crawls a history with the real crawler.
type replayCmd struct {
	History string  `help:"As of schedule: a file of histories, or synthetic:NAME." default:"synthetic:a" placeholder:"FILE"`
	Budget  float64 `help:"Visits per item per 30 days." default:"8"`
	Items   int     `help:"Most items." default:"1000"`
	Days    int     `help:"Days replayed, the last of the histories." default:"30"`
	Speed   float64 `help:"How many times faster than it was." default:"20000"`
	Warm    float64 `help:"Part of the run that is not measured." default:"0.2"`
	Seed    uint64  `help:"Of the sample of items." default:"1"`
	Plays   int     `help:"Plays of the simulator that are averaged." default:"10"`
	Within  float64 `help:"Points (hundredths of freshness) that crawler and simulator may differ." default:"3"`
	Hints   string  `help:"What the sites' sitemaps say: none, undated, truthful, lying or betrayal." enum:"none,undated,truthful,lying,betrayal" default:"none"`
	Dir     string  `help:"Where the store is made; it is removed afterwards." default:"" placeholder:"DIR"`
	JSON    bool    `help:"Print JSON." name:"json"`
}

// Help returns the text for --help.
func (replayCmd) Help() string {
	return `The crawler itself crawls a web on loopback whose pages change as the histories say, 30 days in 130 s, and its freshness, by what the web
gave to it, is compared with the simulator's of the same world at the same budget. Exit 3 when they differ by more than --within.
The simulator knows no hints: with --hints give a --within that leaves room for what they bring.

Example: echo-lab replay --history changes.tsv.gz --json`
}

// Run crawls and compares.
func (c *replayCmd) Run(ctx context.Context, o output) error {
	s := scheduleCmd{History: c.History, Policy: "default", Budget: []float64{c.Budget}, Seeds: 1, Items: c.Items,
		Days: c.Days, Warm: c.Warm}
	if err := s.validate(); err != nil {
		return err
	}
	if !(c.Speed > 0 && c.Speed <= 1e6) || c.Plays < 2 || !(c.Within > 0) {
		return fmt.Errorf("replay: %w: speed %g, plays %d, within %g: out of range", errUsage, c.Speed, c.Plays,
			c.Within)
	}
	draw, err := s.world()
	if err != nil {
		return err
	}
	w, err := draw(c.Seed)
	if err != nil {
		return err
	}
	w.Name = filepath.Base(c.History)
	hints := replay.Hints(c.Hints)
	if c.Hints == "none" {
		hints = ""
	}
	r, err := replay.Run(ctx, replay.Options{World: w, Budget: c.Budget, Speed: c.Speed, Warm: c.Warm, Seeds: c.Plays,
		Dir: c.Dir, Talk: o.talk, Hints: hints})
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(o.out).Encode(r)
	} else {
		err = c.table(o, r)
	}
	if err == nil && math.Abs(r.Points) > c.Within {
		err = fmt.Errorf("replay: %w: the crawler's freshness is %+.2f points off the simulator's", errIncomplete,
			r.Points)
	}
	return err
}

func (c *replayCmd) table(o output, r replay.Result) error {
	_, err := fmt.Fprintf(o.out,
		"%s: %d items, %.0f days in %.0f s, %g visits per item per 30 days\n%-10s %10s %12s %8s %8s\n", r.World,
		r.Items, r.Days, r.Seconds, r.Budget,
		"", "freshness", "age (days)", "visits", "changed")
	for _, l := range []struct {
		name string
		replay.Side
	}{{"crawler", r.Crawler}, {"simulator", r.Simulator}, {"uniform", r.Uniform}} {
		if err == nil {
			_, err = fmt.Fprintf(o.out, "%-10s %10.4f %12.3f %8.0f %7.1f%%\n", l.name, l.Freshness, l.AgeDays, l.Visits,
				100*l.Changed)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(o.out,
			"difference %+.2f points; at the visits made %+.2f; %d items of which the store has another edition\n",
			r.Points, 100*(r.Crawler.Freshness-r.AtSpent), r.Stale)
	}
	return err
}
