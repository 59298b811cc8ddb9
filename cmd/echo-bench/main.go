package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/echo-node/echo-node/cmd/tool"
)

// Exit codes, as in echo-node.
const (
	exitDone       = tool.Done
	exitFailed     = tool.Failed
	exitUsage      = tool.Usage
	exitIncomplete = tool.Incomplete
)

// Errors that the errors of commands wrap.
var (
	errIncomplete = tool.ErrIncomplete
	errUsage      = tool.ErrUsage
)

type commands struct {
	World  worldCmd  `cmd:"" help:"Serve a synthetic web with known truth."`
	Report reportCmd `cmd:"" help:"Ask a running world what its server saw."`
	People peopleCmd `cmd:"" help:"Serve a simulated Mastodon and a simulated Bluesky to follow people of."`

	Churn     churnCmd     `cmd:"" help:"A swarm under kills, a cut and a join, beside a naive crawler."`
	Replicas  replicasCmd  `cmd:"" help:"What replicas cost: pages a second with many replicas against one."`
	ChurnPeer churnPeerCmd `cmd:"" hidden:"" help:"One process of a churn."`

	Crawl      crawlCmd      `cmd:"" help:"Pages a second, memory and manners, beside other crawlers on the same web."`
	CrawlPeer  crawlPeerCmd  `cmd:"" hidden:"" help:"echo-node in it."`
	CrawlColly crawlCollyCmd `cmd:"" hidden:"" help:"Colly in it."`

	Frontier      frontierCmd      `cmd:"" help:"A frontier of millions of URLs: memory, start, and what a pop costs."`
	FrontierPhase frontierPhaseCmd `cmd:"" hidden:"" help:"One process of it."`

	Zones zonesCmd `cmd:"" help:"What zones cost in a large swarm, simulated."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// executable returns the program that runs as the processes of a measurement.
var executable = os.Executable

// run is main without the process, for tests.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	bound := output{stdout, stderr}
	return tool.Run(ctx, "echo-bench", "Measures echo-node.", new(commands), bound, args, stdout, stderr)
}

// output says where a command writes: results to out, progress to talk.
type output struct{ out, talk io.Writer }
