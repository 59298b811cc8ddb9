package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/cmd/echo-lab/twitterecho"
)

// communityCmd compares two methods to decide which accounts belong to a community.
type communityCmd struct {
	Community []string `help:"Which communities: portugal, brazil." default:"portugal,brazil" enum:"portugal,brazil"`
	People    int      `help:"People of one population." default:"2000"`
	Seed      uint64   `help:"Of the first population. With seed 1 the weights of our judge were chosen." default:"301"`
	Seeds     int      `help:"Populations; the next one has the next seed." default:"2"`
	JSON      bool     `help:"Print JSON." name:"json"`
}

// Help returns the text for --help.
func (communityCmd) Help() string {
	return `Two methods judge the same simulated people. It is known who belongs to the community: 40 % are members at
home, 8 % are members abroad. The others are people from the rival country, strangers and machines.

  echo-node      our judge (crawler/judge/community). It starts with the profiles and asks for posts and neighbours of the
                 undecided, until it has nothing left to ask.
  TwitterEcho    the method of the dissertation. It compares the profile with lists. The language of all posts
                 decides the undecided.
  dissertation   what the dissertation reports of its own method on real Portuguese users. It checked 500 users of
                 "in", 800 of "out" and 500 undecided ones by hand, so it has no recall.

  precision in     of those who are judged in, the part that belongs
  recall in        of those who belong, the part that is judged in
  precision out    of those who are judged out, the part that does not belong
  recall out       of those who do not belong, the part that is judged out
  undecided        the part of all people without a verdict
  of them members  the part of these that belongs
  calls            requests for posts (20 in one) and neighbours (2 for one person)

The people are simulated and real ones differ, so compare rows 1 and 2 with each other. Row 3 is only beside them.
Exit 3 when our judge is behind TwitterEcho's method in a precision or a recall.

Examples:
  echo-lab community                                  some seconds
  echo-lab community --community portugal --seeds 10  more people
  echo-lab community --json`
}

// Run compares and prints.
func (c *communityCmd) Run(ctx context.Context, o output) error {
	var reports []*twitterecho.Report
	var faults []error
	for _, name := range c.Community {
		r, err := twitterecho.Compare(ctx, twitterecho.Options{Community: name, People: c.People, Seed: c.Seed,
			Seeds: c.Seeds})
		switch {
		case errors.Is(err, twitterecho.ErrOptions):
			return fmt.Errorf("%w: %w", errUsage, err)
		case err != nil:
			return err
		}
		reports, faults = append(reports, r), append(faults, r.Faults()...)
	}
	if err := c.print(o.out, reports); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("community: %w: %w", errIncomplete, errors.Join(faults...))
	}
	return nil
}

func (c *communityCmd) print(w io.Writer, reports []*twitterecho.Report) error {
	if c.JSON {
		return json.NewEncoder(w).Encode(reports)
	}
	t := &table{w: w}
	for _, r := range reports {
		communityTable(t, r)
	}
	return t.err
}

// communityTable prints a report: a row for each method, then the people that it judged
// wrongly.
func communityTable(t *table, r *twitterecho.Report) {
	t.line("%s: %d people, %d of them members (seeds %s)", r.Community, r.People, r.Members, seedsText(r.Seeds))
	t.line("%-12s %12s %9s %13s %10s %9s %15s %6s", "", "precision in", "recall in", "precision out", "recall out",
		"undecided", "of them members", "calls")
	sides := []struct {
		name string
		twitterecho.Side
	}{{twitterecho.Ours, r.Ours}, {twitterecho.Theirs, r.Theirs}}
	for _, s := range sides {
		_, _, members := s.Precision()
		t.line("%-12s %11.1f%% %8.1f%% %12.1f%% %9.1f%% %8.1f%% %14.1f%% %6d", s.name, 100*s.PrecisionIn,
			100*s.RecallIn, 100*s.PrecisionOut, 100*s.RecallOut, 100*float64(s.Undecided)/float64(r.People),
			100*members, s.Calls)
	}
	profiles := fmt.Sprintf("TwitterEcho's method decides %.1f%% by the profile alone", 100*r.ByProfile)
	if p := r.Printed; p != nil {
		in, out, members := p.Precision()
		t.line("%-12s %11.1f%% %9s %12.1f%% %10s %9s %14.1f%% %6s", "dissertation", 100*in, "-", 100*out, "-", "-",
			100*members, "-")
		profiles += fmt.Sprintf(", the dissertation reports %.0f%%", 100*p.ByProfile)
	}
	t.line("%s", profiles)
	for _, s := range sides {
		t.line("wrong, %s: %s", s.name, classesText(s.Wrong))
	}
	t.line("")
}

func seedsText(seeds []uint64) string {
	if len(seeds) == 1 {
		return fmt.Sprint(seeds[0])
	}
	return fmt.Sprintf("%d to %d", seeds[0], seeds[len(seeds)-1])
}

// classesText lists counts by class, in the order of the classes' names.
func classesText(counts map[string]int) string {
	var out []string
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %d", class, counts[class]))
	}
	if len(out) == 0 {
		return "nobody"
	}
	return strings.Join(out, ", ")
}
