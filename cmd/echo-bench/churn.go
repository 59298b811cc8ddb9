package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-bench/churn"
)

// churnCmd measures a swarm under churn.
type churnCmd struct {
	Peers     int           `help:"Peers at the start, each a process." default:"8"`
	Partition string        `help:"How the crawl space is cut: hash or geo." default:"hash" enum:"hash,geo"`
	Replicas  int           `help:"Replicas of a slice." default:"3"`
	KillEvery time.Duration `help:"Kill a peer (kill -9) this often; 0 = never." default:"10s"`
	Random    bool          `help:"Kill at a random moment of each --kill-every."`
	Restart   time.Duration `name:"restart-after" help:"A killed peer comes back after this." default:"5s"`
	Cut       time.Duration `help:"Cut one half from the other for this long, once; 0 = never." default:"20s"`
	Join      int           `help:"Peers that join during the churn." default:"1"`
	Duration  time.Duration `help:"Of the churn; then all is healed and the crawl may end." default:"120s"`
	Settle    time.Duration `help:"Most time for that end; default: --duration and a minute."`
	Delay     time.Duration `help:"Least time between two requests to a site." default:"1s"`
	Sites     int           `help:"Sites of the world; default 5 for each peer."`
	Pages     int           `help:"Articles a site; default as many as the crawl needs to last about --duration."`
	Seed      uint64        `help:"Of the world, the victims and the halves." default:"1"`
	Alone     bool          `help:"Without the baseline."`
	Keep      string        `help:"Keep data and logs in this new directory." placeholder:"DIR"`
	Verbose   bool          `short:"v" help:"The peers log more, in the directory of --keep."`
	JSON      bool          `help:"Print JSON."`
}

// Help returns the example for --help.
func (churnCmd) Help() string {
	return "Example: echo-bench churn --peers 8 --partition geo --json\nOne peer, killed a hundred times: echo-bench churn --peers 1 --replicas 1 --kill-every 2500ms --random --restart-after 200ms --cut 0 --join 0 --duration 251s --delay 200ms --alone\n\nExit 3 when links, records or pages were lost or a site was hurried by the swarm."
}

// Run runs the churn and prints events as they happen.
func (c *churnCmd) Run(ctx context.Context, o output) error {
	none := func(d time.Duration) time.Duration {
		if d == 0 {
			return -1
		}
		return d
	}
	opts := churn.Options{Peers: c.Peers, Partition: c.Partition, Replicas: c.Replicas, KillEvery: none(c.KillEvery),
		Random: c.Random, Restart: c.Restart, Cut: none(c.Cut),
		Joins: c.Join, Duration: c.Duration, Settle: c.Settle, Delay: c.Delay, Sites: c.Sites, Pages: c.Pages,
		Seed: c.Seed, Alone: c.Alone, Dir: c.Keep, Verbose: c.Verbose, Talk: o.talk}
	if c.Join == 0 {
		opts.Joins = -1
	}
	program, err := peerProgram()
	if err != nil {
		return fmt.Errorf("churn: %w", err)
	}
	opts.Program = program
	if err := opts.Check(); err != nil {
		return fmt.Errorf("churn: %w: %w", errUsage, err)
	}
	r, err := churn.Run(ctx, opts)
	if err != nil {
		return fmt.Errorf("churn: %w", err)
	}
	if c.JSON {
		err = json.NewEncoder(o.out).Encode(r)
	} else {
		err = r.Table(o.out)
	}
	if err == nil && (r.LinksLost+r.RecordsLost+r.Pages-r.Expected != 0 || r.Violations > 0) {
		err = errIncomplete
	}
	if err != nil {
		return fmt.Errorf("churn: %w", err)
	}
	return nil
}

// churnPeerCmd is one process of a churn; churn starts it.
type churnPeerCmd struct {
	Spec string `required:"" help:"What it is, in JSON."`
}

// Run runs a peer until its input ends.
func (c *churnPeerCmd) Run(ctx context.Context, o output) error {
	return churn.RunPeer(ctx, c.Spec, os.Stdin, o.out, o.talk)
}

// peerProgram returns the command line of churnPeerCmd in this program.
func peerProgram() ([]string, error) {
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	return []string{exe, "churn-peer"}, nil
}
