package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/echo-node/echo-node/node/datadir"
)

type repairCmd struct {
	Data  string `default:"echo-data" placeholder:"DIR" help:"Data directory of a peer that is not running."`
	Alone bool   `help:"No other peer of the swarm is left. repair asks for this flag when the agreements with other peers are lost."`
}

// Help returns the text below the usage.
func (repairCmd) Help() string {
	return `Example:
  echo-node repair --data a

It reads every file of the peer's store. A damaged file moves to store/aside in the data
directory. What can be read of it is saved; what is lost is reported. When the peer runs
again, other peers send what they still have. Copy the directory first if you can.

Exit code 0: nothing was lost for good. 3: something was.`
}

// Run repairs a data directory.
func (c *repairCmd) Run(ctx context.Context, p *program, g *globals) error {
	closeFiles()
	done, err := datadir.Repair(ctx, datadir.Options{Dir: c.Data, Logger: p.logger(g)}, c.Alone)
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
