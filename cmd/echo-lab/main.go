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

// run is main without the process: what a test calls.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var cmds commands
	exited := false
	parser, err := kong.New(&cmds, kong.Name("echo-lab"), kong.Description("Redoes the measurements of papers."),
		kong.UsageOnError(),
		kong.DefaultEnvars("ECHO"), kong.Writers(stdout, stderr), kong.Exit(func(c int) { exited, code = true, c }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(output{stdout, stderr}))
	if err != nil {
		fmt.Fprintln(stderr, "echo-lab:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited: // --help
		return code
	case err != nil:
		fmt.Fprintln(stderr, "echo-lab:", err)
		return exitUsage
	}
	err = parsed.Run()
	if err != nil {
		fmt.Fprintln(stderr, "echo-lab:", err)
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
