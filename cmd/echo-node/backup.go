package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/store"
)

type backupCmd struct {
	Dir  string `arg:"" help:"The backup: a directory that does not exist yet."`
	Data string `default:"echo-data" placeholder:"DIR" help:"Data directory of the peer, which may run."`
}

// Help is shown under the usage.
func (backupCmd) Help() string {
	return `Example:
  echo-node backup /mnt/other/echo-1 --data a

A peer that runs makes it itself, while it works on, and writes where it runs: ask on
the same machine (docker compose exec). On a schedule: echo-node run --backup-dir DIR.
Tokens and the peer's identity are not in a backup.`
}

// Run makes a backup of a data directory, or has the peer that runs on it make one.
func (c *backupCmd) Run(ctx context.Context, p *program, g *globals) error {
	err := node.BackupOf(node.Options{Dir: c.Data, Logger: p.logger(g), Version: versionText()}, c.Dir)
	if errors.Is(err, store.ErrLocked) {
		locked := err
		if err = askBackup(ctx, c.Data, c.Dir); errors.Is(err, errNoControl) {
			err = fmt.Errorf("%w; %w; is it about to start or to end, or another program?", locked, err)
		}
	}
	if err != nil {
		return err
	}
	return p.print(g, map[string]string{"backup": c.Dir}, func(w io.Writer) { fmt.Fprintln(w, c.Dir) })
}

type restoreCmd struct {
	From  string `arg:"" help:"The backup."`
	Data  string `required:"" placeholder:"DIR" help:"The data directory to make; it must be empty or not exist."`
	Alone bool   `help:"No other peer of the swarm is left: the restored one may take all slices. Without it, echo-node run wants --join."`
}

// Help is shown under the usage.
func (restoreCmd) Help() string {
	return `Examples:
  echo-node restore backups/echo-20260102T030405Z --data new
  echo-node run --data new --join peers.txt
  echo-node restore backups/echo-20260102T030405Z --data new --alone

The restored peer has a new identity: what the old one promised since the backup
is not known any more. It gives its rows to the owners of their slices, where the
newer fetch of each key wins. Do not use --alone while another peer lives.`
}

// Run makes a data directory of a backup.
func (c *restoreCmd) Run(ctx context.Context, p *program, g *globals) error {
	info, err := node.Restore(ctx, node.Options{Dir: c.Data, Logger: p.logger(g)}, c.From, c.Alone)
	if err != nil {
		return err
	}
	return p.print(g, map[string]any{"data": c.Data, "backup": info}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d records of the swarm %s, as peer %s had them at %s\n", c.Data, info.Records, info.Swarm, info.Peer, info.Made.Format("2006-01-02 15:04:05 MST"))
	})
}
