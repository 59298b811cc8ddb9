package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/echo-node/echo-node/cmd/echo-lab/social"
)

// socialCmd measures how many of a community's posts request budgets can fetch.
type socialCmd struct {
	Accounts int       `help:"Accounts of the community; 60 % of them do not post any more." default:"60000"`
	Seeds    int       `help:"Communities to average over; from two on with intervals of 95 %." default:"1"`
	Times    []float64 `help:"Budgets of the default policy, in times B." default:"0.125,0.25,0.5,1,2,4"`
	Peers    []int     `help:"Numbers of peers, each with --share of B, that share the accounts; 0 = not." default:"1,2,4,8"`
	Share    float64   `help:"Of B, for each of --peers." default:"0.125"`
	Aim      float64   `help:"What the six classes have with B: TwitterEcho's share of posts." default:"0.752"`
	Within   float64   `help:"How near to --aim B must bring them." default:"0.01"`
	Budget   float64   `help:"B, calls a day, as an earlier run found it; 0 = find it." default:"0"`
	JSON     bool      `help:"Print JSON." name:"json"`
}

// Help returns the text for --help.
func (socialCmd) Help() string {
	return `How much of what a community posts can be had with so many API calls? Two policies of who is asked next play in one simulated
community, shaped as the table of the dissertation on TwitterEcho: 33 days, calls at even gaps. A call is either a look-up of 100 accounts (of each the
last post and the counter of posts) or the newest 200 posts of one account.

  six-classes  TwitterEcho's: look-ups only
  default      echo-node's (cmd/echo-lab/poll): a look-up where another post is expected, a timeline call for who has posts that
               look-ups did not show, whichever is worth more

First B is found, the calls a day with which the six classes have 75.2 % of the posts, as TwitterEcho had; then the default plays with
B, and with --times B. The limit is what no policy could exceed, not even one that knows the future. With --peers the accounts are
shared by their Keys among peers that have a budget each. A row is of accounts whose mean gap between posts is up to that; the delay
is from a post to when it was had.

Exit 3 when a row of the default at B is not above the paper's, the default misses more than half of what the six classes miss at B,
the server counted a call over the limit, or no budget brings the six classes to --aim.

Examples:
  echo-lab social                                  some minutes on two cores
  echo-lab social --accounts 6000 --seeds 5        smaller, with intervals
  echo-lab social --times 1 --peers 0 --json`
}

// Run measures and prints.
func (c *socialCmd) Run(ctx context.Context, o output) error {
	peers := c.Peers
	if len(peers) == 1 && peers[0] == 0 {
		peers = nil
	}
	r, err := social.Measure(ctx, social.Options{Accounts: c.Accounts, Seeds: c.Seeds, Aim: c.Aim, Within: c.Within,
		Budget: c.Budget, Times: c.Times,
		Peers: peers, Share: c.Share, Talk: o.talk})
	switch {
	case errors.Is(err, social.ErrOptions):
		return fmt.Errorf("%w: %w", errUsage, err)
	case errors.Is(err, social.ErrNoBudget):
		return fmt.Errorf("%w: %w", errIncomplete, err)
	case err != nil:
		return err
	case c.JSON:
		err = json.NewEncoder(o.out).Encode(r)
	default:
		err = socialTable(o.out, r)
	}
	if faults := r.Faults(); err == nil && len(faults) > 0 {
		err = fmt.Errorf("social: %w: %w", errIncomplete, errors.Join(faults...))
	}
	return err
}

// socialTable prints the table by rows, then by budgets and by peers.
func socialTable(w io.Writer, r *social.Report) error {
	t := &table{w: w}
	t.line("%d accounts, %d seed(s); B is %.0f calls a day\n", r.Accounts, r.Seeds, r.Baseline.Budget)
	t.line("%-11s %8s %11s | %8s %6s | %11s %6s | %8s %6s", "gap up to", "accounts", "posts each", "paper", "mean",
		"six classes", "mean", "default", "mean")
	for i, p := range social.Paper() {
		six, ours := r.Baseline.Rows[i], r.Rows[i]
		t.line("%-11s %8.0f %5.1f/%5.1f | %7.1f%% %6.1f | %10.1f%% %6.1f | %7.1f%% %6.1f", p.Gap, six.Accounts,
			six.Posts/max(six.Accounts, 1),
			float64(p.Posted)/float64(p.Users), p.Coverage, p.Mean, 100*six.Coverage, 100*six.Mean, 100*ours.Coverage,
			100*ours.Mean)
	}
	t.line("%-11s %8s %11s | %7.1f%% %6.1f | %10.1f%% %6.1f | %7.1f%% %6.1f   limit %.3f%%\n", "all", "", "here/paper",
		75.2, 80.2, 100*r.Baseline.Coverage, 100*r.Baseline.Mean,
		100*r.Coverage, 100*r.Mean, 100*r.Limit)
	half := ""
	if r.MissedHalf > 0 {
		half = fmt.Sprintf(" ± %.4f", r.MissedHalf)
	}
	t.line("at B the default missed %.4f%s of the posts that the six classes missed (at most %g)\n", r.Missed, half,
		social.MostMissed)
	t.line("%-12s %5s %7s %11s %9s %9s %9s %9s %8s %8s %5s %6s", "policy", "peers", "times B", "calls a day",
		"timelines", "posts", "mean", "limit", "delay h", "p90", "over", "used")
	for _, group := range [][]social.Result{{r.Baseline}, r.Budgets, r.Shared} {
		for _, x := range group {
			half := ""
			if x.Half > 0 {
				half = fmt.Sprintf(" ±%.2f", 100*x.Half)
			}
			t.line("%-12s %5d %7.4g %11.0f %8.1f%% %8.2f%%%s %8.2f%% %8.3f%% %8s %8s %5d %5.1f%%", x.Policy, x.Peers,
				x.Times, x.Budget, 100*x.Timelines/max(x.Calls, 1), 100*x.Coverage, half,
				100*x.Mean, 100*x.Limit, delay(x.Median), delay(x.P90), x.OverLimit, 100*x.Used)
		}
		t.line("")
	}
	return t.err
}

// delay formats a time in hours.
func delay(hours float64) string {
	if hours < 0 {
		return "never"
	}
	return strconv.FormatFloat(hours, 'f', 2, 64)
}

// table writes lines until one fails.
type table struct {
	w   io.Writer
	err error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}
