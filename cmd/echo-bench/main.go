package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes, as in echo-node.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitIncomplete = 3
)

// errIncomplete is wrapped by what was done but is not whole.
var errIncomplete = errors.New("incomplete")

// errUsage is wrapped by what the caller should have said otherwise.
var errUsage = errors.New("usage")

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

// executable is the program that the parts of a measurement are processes of.
var executable = os.Executable

// run is main without the process: what a test calls.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var cmds commands
	exited := false
	parser, err := kong.New(&cmds, kong.Name("echo-bench"), kong.Description("Measures echo-node."),
		kong.UsageOnError(),
		kong.DefaultEnvars("ECHO"), kong.Writers(stdout, stderr), kong.Exit(func(c int) { exited, code = true, c }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(output{stdout, stderr}))
	if err != nil {
		fmt.Fprintln(stderr, "echo-bench:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited: // --help
		return code
	case err != nil:
		fmt.Fprintln(stderr, "echo-bench:", err)
		return exitUsage
	}
	err = parsed.Run()
	if err != nil {
		fmt.Fprintln(stderr, "echo-bench:", err)
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errIncomplete):
		return exitIncomplete
	}
	return exitFailed
}

// output is where a command writes: results and talk.
type output struct{ out, talk io.Writer }
