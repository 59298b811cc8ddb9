package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-bench/churn"
)

// replicasCmd measures the cost of replicas.
type replicasCmd struct {
	Peers    int           `help:"Peers, each a process." default:"3"`
	Replicas int           `help:"Replicas of a slice, held against 1." default:"3"`
	Rounds   int           `help:"Crawls of each kind, in turn." default:"3"`
	Sites    int           `help:"Sites of the world." default:"400"`
	Pages    int           `help:"Number of articles on each site." default:"10"`
	Limit    time.Duration `help:"Most time for one crawl." default:"5m"`
	Seed     uint64        `help:"Of the world." default:"1"`
	Least    float64       `help:"Exit 3 when the ratio is below this." default:"0"`
	JSON     bool          `help:"Print JSON."`
}

// Help returns the example for --help.
func (replicasCmd) Help() string { return "Example: echo-bench replicas --least 0.6 --json" }

// Run crawls a test web without politeness, alternating between one replica and many.
func (c *replicasCmd) Run(ctx context.Context, o output) error {
	program, err := peerProgram()
	if err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	opts := churn.RatioOptions{Program: program, Peers: c.Peers, Replicas: c.Replicas, Rounds: c.Rounds, Sites: c.Sites,
		Pages: c.Pages, Limit: c.Limit, Seed: c.Seed, Talk: o.talk}
	if err := opts.Check(); err != nil {
		return fmt.Errorf("replicas: %w: %w", errUsage, err)
	}
	r, err := churn.Ratio(ctx, opts)
	if err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	if c.JSON {
		err = json.NewEncoder(o.out).Encode(r)
	} else {
		_, err = fmt.Fprintf(o.out,
			"with %d replicas against 1: pages a second %.2f, pages for a second of processor time %.2f\n", c.Replicas,
			r.Ratio, r.RatioCPU)
	}
	if err == nil && r.Ratio < c.Least {
		err = errIncomplete
	}
	if err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	return nil
}
