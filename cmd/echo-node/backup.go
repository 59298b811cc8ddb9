package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

type backupCmd struct {
	Dir  string `arg:"" help:"The backup: a directory that does not exist yet."`
	Data string `default:"echo-data" placeholder:"DIR" help:"Data directory of the peer. The peer may be running."`
}

// Help returns the text below the usage.
func (backupCmd) Help() string {
	return `Example:
  echo-node backup /mnt/other/echo-1 --data a

A running peer makes the backup itself and goes on working. It writes on its own machine,
so run this command there (docker compose exec). For backups on a schedule use
echo-node run --backup-dir DIR. A backup has no tokens and not the peer's identity.`
}

// Run makes a backup of a data directory, or asks the peer that runs on it to make one.
func (c *backupCmd) Run(ctx context.Context, p *program, g *globals) error {
	closeFiles()
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
	From  []string `arg:"" optional:"" help:"The backup. With --trash: the slices to bring back (default: all)."`
	Data  string   `required:"" placeholder:"DIR" help:"The data directory to create. It must be empty or not exist. With --trash: the peer's data directory; the peer may be running."`
	Trash bool     `help:"Bring back slices that the peer dropped and still has in its trash (run --undelete)."`
	Alone bool     `help:"No other peer of the swarm is left, so the restored peer may take all slices. Without this flag, echo-node run needs --join."`
}

// Help returns the text below the usage.
func (restoreCmd) Help() string {
	return `Examples:
  echo-node restore backups/echo-20260102T030405Z --data new
  echo-node run --data new --join peers.txt
  echo-node restore backups/echo-20260102T030405Z --data new --alone
  echo-node restore --trash --data echo-data

The restored peer has a new identity, because nobody knows what the old one promised
after the backup. It sends its rows to the owners of their slices; the newer fetch of
each key wins. Do not use --alone while another peer of the swarm lives.

With --trash, the peer sends the slices in its trash to their present owners, now or
when it runs next. The owners take the rows that they do not have.`
}

// Run makes a data directory from a backup.
func (c *restoreCmd) Run(ctx context.Context, p *program, g *globals) error {
	closeFiles()
	if c.Trash {
		return c.trash(p, g)
	}
	if len(c.From) != 1 {
		return usage("give the directory of one backup")
	}
	info, err := datadir.Restore(ctx, datadir.Options{Dir: c.Data, Logger: p.logger(g)}, c.From[0], c.Alone)
	if err != nil {
		return err
	}
	return p.print(g, map[string]any{"data": c.Data, "backup": info}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d records of the swarm %s, as peer %s had them at %s\n", c.Data, info.Records, info.Swarm,
			info.Peer, info.Made.Format("2006-01-02 15:04:05 MST"))
	})
}

// trash requests that the peer restores slices that it dropped.
func (c *restoreCmd) trash(p *program, g *globals) error {
	if c.Alone {
		return usage("--alone is for a backup, not for --trash")
	}
	var of []partition.Slice
	for _, text := range c.From {
		s, err := partition.ParseSlice(text)
		if err != nil {
			return usage("%s: %v", text, err)
		}
		of = append(of, s)
	}
	wanted, err := node.WantBack(c.Data, of...)
	if err != nil {
		return err
	}
	type dropped struct {
		Slice string    `json:"slice"`
		At    time.Time `json:"dropped"`
		Bytes int64     `json:"bytes"`
	}
	out := make([]dropped, len(wanted))
	for i, x := range wanted {
		out[i] = dropped{x.Slice.String(), x.At, x.Bytes}
	}
	return p.print(g, out, func(w io.Writer) {
		for _, x := range out {
			fmt.Fprintf(w, "%s, dropped %s, %d bytes: to be given back\n", x.Slice, x.At.Format(time.RFC3339), x.Bytes)
		}
	})
}
