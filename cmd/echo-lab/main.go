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
	Social   socialCmd   `cmd:"" help:"What share of a community's posts a budget of API calls brings."`
	Schedule scheduleCmd `cmd:"" help:"Contest of revisit policies on change histories."`
	Replay   replayCmd   `cmd:"" help:"The crawler itself on a web that replays a history, beside the simulator."`

	Community  communityCmd  `cmd:"" help:"Who belongs to a community: echo-node's judge beside TwitterEcho's method."`
	Temporal   temporalCmd   `cmd:"" help:"How a crawl finds the pages that speak of a wanted time."`
	Duplicates duplicatesCmd `cmd:"" help:"How well copies of short texts are found, by kind of edit."`

	TrainLang trainLangCmd `cmd:"" help:"Train and measure the weights that tell languages."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process, for tests.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	bound := output{stdout, stderr}
	return tool.Run(ctx, "echo-lab", "Redoes the measurements of papers.", new(commands), bound, args, stdout, stderr)
}

// output says where a command writes: results to out, progress to talk.
type output struct{ out, talk io.Writer }
