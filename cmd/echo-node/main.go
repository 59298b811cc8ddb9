package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/echo-node/echo-node/node/safetext"
)

// Exit codes (CLI.md).
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitIncomplete = 3
)

// version is set by the build; see the Dockerfile and .ci/run.
var version = "" // -ldflags "-X main.version=..."

func main() {
	abortOnPanic()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	code := (&program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// program is what main runs. Its inputs and outputs are fields, so that tests can set them.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// globals are the flags of every command.
type globals struct {
	JSON    bool            `help:"Print JSON for machines instead of text."`
	Verbose bool            `short:"v" help:"Write more to the log."`
	Config  kong.ConfigFlag `placeholder:"FILE" help:"Read flags from a YAML file, whose keys are the long flag names. A flag or its environment variable ECHO_<FLAG> wins over the file." env:"-"`
}

type cli struct {
	globals

	Run      runCmd      `cmd:"" help:"Run one peer in the foreground, until interrupted."`
	Demo     demoCmd     `cmd:"" help:"Run a swarm in one process that crawls a small embedded world."`
	Seed     seedCmd     `cmd:"" help:"Give a running peer something to crawl."`
	Query    queryCmd    `cmd:"" help:"Search what the whole swarm has crawled."`
	Status   statusCmd   `cmd:"" help:"Show what a running peer is doing."`
	Peers    peersCmd    `cmd:"" help:"List the members of the swarm as a running peer sees them."`
	Owner    ownerCmd    `cmd:"" help:"Say which peer crawls a key."`
	Show     showCmd     `cmd:"" help:"Show what the swarm knows of a key."`
	Copies   copiesOfCmd `cmd:"" help:"List the copies of a text in the whole swarm."`
	Override overrideCmd `cmd:"" help:"Decide by hand whether an account belongs to the community."`
	Mistakes mistakesCmd `cmd:"" help:"Report where the community's judge contradicts a decision by hand, and the evidence for it."`
	Gaps     gapsCmd     `cmd:"" help:"List what is known to be missing: parts of accounts and lists that were skipped, cut, limited, unreachable or expired."`
	Export   exportCmd   `cmd:"" help:"Write the swarm's records as JSON lines, CSV or WARC; resumable."`
	Backup   backupCmd   `cmd:"" help:"Make a backup of a peer, running or not."`
	Restore  restoreCmd  `cmd:"" help:"Make a data directory from a backup, for a new peer with its records."`
	Repair   repairCmd   `cmd:"" help:"Remove damaged files from the store of a stopped peer, and save what can be read."`
	Focus    focusCmd    `cmd:"" help:"Judge your own texts: their language, places, times, copies, and whether an account belongs to a community."`
	Invite   inviteCmd   `cmd:"" help:"Print an invitation into a private swarm that a peer is a member of."`
	ID       idCmd       `cmd:"" name:"id" help:"Print the identity of a data directory."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	Quarantine quarantineCmd `cmd:"" help:"List the quarantined keys of a peer: two processes died while they judged such a key."`
	Release    releaseCmd    `cmd:"" help:"Take a key out of quarantine, so that it is fetched again."`
}

// cleaned returns p with a standard error that cannot control a terminal.
func (p *program) cleaned() *program {
	return &program{stdin: p.stdin, stdout: p.stdout, stderr: safetext.NewWriter(p.stderr)}
}

// run parses args, runs the command and returns the exit code. It cleans standard error,
// including logs, here in one place. The method print cleans what is printed.
func (p *program) run(ctx context.Context, args []string) (code int) {
	p = p.cleaned()
	var c cli
	exited := -1
	k, err := kong.New(&c,
		kong.Name("echo-node"),
		kong.Description("A peer-to-peer crawler: volunteers' machines share the web and social networks out among themselves, crawl them politely, and answer for each other.\n\nTry: echo-node demo --once\nFull documentation: README.md"),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.DefaultEnvars("ECHO"),
		kong.Configuration(loadConfig),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { exited = code; panic(exitNow{}) }),
		kong.Bind(&c.globals), kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{"version": versionText()},
	)
	if err != nil {
		fmt.Fprintln(p.stderr, "echo-node:", err)
		return exitFailed
	}
	defer func() { // kong's --help ends the process; here it ends only the parsing
		if r := recover(); r != nil {
			if _, ok := r.(exitNow); !ok {
				panic(r)
			}
			code = exited
		}
	}()
	kctx, err := k.Parse(args)
	if err != nil {
		if slices.Contains(args, "query") &&
			(strings.Contains(err.Error(), "unknown flag") || strings.Contains(err.Error(), "unexpected argument")) {
			err = fmt.Errorf("%w; put -- before the words: echo-node query -- vector -boost", err)
		}
		return p.fail(&usageError{err}, slices.Contains(args, "--json"))
	}
	if err := kctx.Run(); err != nil {
		return p.fail(err, c.JSON)
	}
	return exitDone
}

type exitNow struct{}

// usageError is a mistake of the user: exit 2.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usage(format string, a ...any) error { return &usageError{fmt.Errorf(format, a...)} }

// incompleteError is for work that was done but is not complete: exit 3.
type incompleteError struct{ error }

// fail prints err in the form for people or for machines, and returns the exit code.
func (p *program) fail(err error, asJSON bool) int {
	code := exitFailed
	var u *usageError
	var inc *incompleteError
	switch {
	case errors.As(err, &u):
		code = exitUsage
	case errors.As(err, &inc):
		code = exitIncomplete
	}
	if asJSON {
		b, jerr := json.Marshal(map[string]any{"error": err.Error(), "exit": code})
		if jerr == nil {
			fmt.Fprintln(p.stderr, string(safetext.JSON(b)))
			return code
		}
	}
	fmt.Fprintln(p.stderr, "echo-node:", err)
	if code == exitUsage {
		fmt.Fprintln(p.stderr, "Run with --help to see how it is used.")
	}
	return code
}

// logger returns a logger to stderr: text for people, JSON with --json.
func (p *program) logger(g *globals) *slog.Logger {
	level := slog.LevelInfo
	if g.Verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if g.JSON {
		return slog.New(slog.NewJSONHandler(safetext.NewJSONWriter(p.stderr), o))
	}
	return slog.New(slog.NewTextHandler(p.stderr, o))
}

// libraryLog returns the log handler for libp2p: only errors, unless -v is set.
func (p *program) libraryLog(g *globals) slog.Handler {
	if g.Verbose {
		return p.logger(g).Handler()
	}
	o := &slog.HandlerOptions{Level: slog.LevelError}
	if g.JSON {
		return slog.NewJSONHandler(safetext.NewJSONWriter(p.stderr), o)
	}
	return slog.NewTextHandler(p.stderr, o)
}

// print writes v as JSON with --json, otherwise as text. Text from strangers cannot control a
// terminal in either form: text is cleaned, JSON is escaped.
func (p *program) print(g *globals, v any, text func(w io.Writer)) error {
	if g.JSON {
		e := json.NewEncoder(safetext.NewJSONWriter(p.stdout))
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	text(safetext.NewWriter(p.stdout))
	return nil
}

type versionCmd struct{}

// Run prints the version, the Go version and the revision.
func (versionCmd) Run(p *program, g *globals) error {
	v := map[string]string{"version": versionText()}
	if bi, ok := debug.ReadBuildInfo(); ok {
		v["go"] = bi.GoVersion
		for _, s := range bi.Settings {
			if s.Key == "vcs.revision" {
				v["revision"] = s.Value
			}
		}
	}
	return p.print(g, v, func(w io.Writer) { fmt.Fprintf(w, "echo-node %s (%s)\n", v["version"], v["go"]) })
}

func versionText() string {
	if version != "" {
		return version
	}
	return "0.1.0-dev"
}
