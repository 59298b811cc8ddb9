// Package tool is shared by the measuring programs echo-bench and echo-lab. It provides a
// command line with sub-commands, and the exit codes of echo-node.
package tool

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// Exit codes, as in echo-node.
const (
	Done       = 0
	Failed     = 1
	Usage      = 2
	Incomplete = 3
)

// ErrIncomplete is wrapped by an error for work that was done but is not complete.
var ErrIncomplete = errors.New("incomplete")

// ErrUsage is wrapped by an error for wrong usage.
var ErrUsage = errors.New("usage")

// Run parses args with kong into commands, a pointer to a struct of sub-commands, and runs the
// chosen one. Its Run method may take a context.Context and bound. Run returns the exit code
// and writes errors to stderr.
func Run(ctx context.Context, name, description string, commands, bound any, args []string,
	stdout, stderr io.Writer) (code int) {
	exited := false
	parser, err := kong.New(commands, kong.Name(name), kong.Description(description), kong.UsageOnError(),
		kong.DefaultEnvars("ECHO"), kong.Writers(stdout, stderr), kong.Exit(func(c int) { exited, code = true, c }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(bound))
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return Failed
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited: // --help
		return code
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return Usage
	}
	err = parsed.Run()
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrUsage):
		return Usage
	case errors.Is(err, ErrIncomplete):
		return Incomplete
	}
	return Failed
}
