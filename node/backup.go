package node

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/backup"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

const backupRetry = time.Hour // the longest delay after a failed backup

// Backup backs up this peer to dir, which must not exist, while it keeps working. Rows committed
// after the call may be missing.
func (n *Node) Backup(dir string) error {
	return backup.Make(n.o.fileSystem(), n.store, dir, n.o.Dir, backup.Info{Peer: n.id, Version: n.o.Version})
}

// BackupOf backs up a peer that does not run. It returns store.ErrLocked if the peer runs.
func BackupOf(o Options, dir string) error {
	o = o.withDefaults()
	key, err := o.identity(false)
	if err != nil {
		return err
	}
	s, err := db.Open(filepath.Join(o.Dir, "store"), store.Options{FS: o.FS, Logger: o.Logger})
	if err != nil {
		return err
	}
	info := backup.Info{Peer: dht.PeerID(key), Version: o.Version}
	return errors.Join(backup.Make(o.fileSystem(), s, dir, o.Dir, info), s.Close())
}

// runBackups makes the scheduled backups. A failed backup is logged, counted and tried again. The
// earlier backups stay.
func (n *Node) runBackups(ctx context.Context) error {
	disk := n.o.fileSystem()
	wait := time.Duration(0)
	if all, err := backup.List(disk, n.o.BackupDir); err == nil && len(all) > 0 {
		last := all[len(all)-1].At
		n.counts.LastBackup.Store(last.Unix())
		for _, b := range all {
			if n.o.FS != nil {
				break // in memory: no file modes
			}
			if err := datadir.CloseBackup(b.Dir, n.log); err != nil {
				n.log.Error("close a backup", "dir", b.Dir, "err", err)
			}
		}
		wait = min(time.Until(last.Add(n.o.BackupEvery)), n.o.BackupEvery)
	}
	for call.Sleep(ctx, wait, nil) {
		dir, begun := backup.Under(n.o.BackupDir, time.Now()), time.Now()
		err := n.Backup(dir)
		if wait = n.o.BackupEvery; err != nil {
			n.counts.FailedBackups.Add(1)
			n.log.Error("no backup", "err", err)
			wait = min(wait, backupRetry)
			continue
		}
		n.counts.LastBackup.Store(begun.Unix())
		n.log.Info("backup made", "dir", dir, "took", time.Since(begun))
		if err := backup.Prune(disk, n.o.BackupDir, n.o.BackupKeep); err != nil {
			n.log.Error("old backups", "err", err)
		}
	}
	return ctx.Err()
}

func (o Options) fileSystem() vfs.FS {
	if o.FS == nil {
		return vfs.Default
	}
	return o.FS
}
