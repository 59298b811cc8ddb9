package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/echo-node/echo-node/node"
)

type repairCmd struct {
	Data  string `default:"echo-data" placeholder:"DIR" help:"Data directory of a peer that does not run."`
	Alone bool   `help:"No other peer of the swarm is left. Only asked for when what was agreed with other peers is lost."`
}

// Help is shown under the usage.
func (repairCmd) Help() string {
	return `Example:
  echo-node repair --data a

It reads every table of the peer's store. A file that does not hold what was written to it is
put aside (store/aside in the data directory), what can be read of it is kept, and what is lost is
said. What other peers keep too they bring again when this one runs. Run it with a copy of
the directory at hand if you can.

Exit code 0: nothing was lost for good. 3: something was.`
}

// Run repairs a data directory.
func (c *repairCmd) Run(ctx context.Context, p *program, g *globals) error {
	closeFiles()
	done, err := node.Repair(ctx, node.Options{Dir: c.Data, Logger: p.logger(g)}, c.Alone)
	if err != nil {
		return err
	}
	err = p.print(g, done, func(w io.Writer) {
		if len(done.Files) == 0 {
			fmt.Fprintf(w, "%s: every table is whole\n", c.Data)
		}
		for _, f := range done.Files {
			fmt.Fprintln(w, "damaged and put aside:", f)
		}
		for _, l := range done.Lost {
			fmt.Fprintln(w, "lost:", l)
		}
		if done.Slices > 0 {
			fmt.Fprintf(w, "%d slices had rows there; other peers bring those of %d again\n", done.Slices, done.Fetched)
		}
		if done.Renewed {
			fmt.Fprintln(w, "what was agreed with other peers was lost: this is a new peer now, with a new identity")
		}
		fmt.Fprintf(w, "%d records are here\n", done.Records)
	})
	if err == nil && len(done.Lost) > 0 && done.Fetched < done.Slices {
		return &incompleteError{errors.New("some rows are lost: see above")}
	}
	return err
}
