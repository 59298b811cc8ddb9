package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/engine"
)

// A backup is a directory:
//
//	backup.json      BackupInfo; what has none is no backup, or half of one
//	store/           the store as it was at one moment (Pebble's checkpoint)
//	charter.sealed   the swarm's charter with its founder's signature, where this peer has it
//
// It is made under a name that ends in ".part", synced, and renamed: under its own
// name it is whole, whatever crashes. Tables are hard links where the file system
// has them, so that a backup beside the data costs little and does not outlive
// the disk. Not in it: the identity and its passes (see Restore), the index,
// which is made anew, tokens, which are not kept.
const (
	backupVersion = 1
	backupName    = "backup.json"
	backupPart    = ".part"
	backupPrefix  = "echo-"
	backupTime    = "20060102T150405Z"
	sealedCharter = "charter.sealed" // as package dht names it

	minBackupEvery = time.Minute
	backupRetry    = time.Hour // after one that failed, at most
	maxBackupInfo  = 64 << 10  // bytes of backup.json
	backupSpare    = 256 << 20 // bytes that a copy leaves free on its disk
)

// BackupInfo says what a backup is of.
type BackupInfo struct {
	V       int       `json:"v"`
	Made    time.Time `json:"made"`
	Peer    string    `json:"peer"` // whose store it was
	Swarm   string    `json:"swarm"`
	Charter string    `json:"charter"` // digest
	Store   string    `json:"store"`   // its id
	Version string    `json:"version"` // of the program
	Records int64     `json:"records"` // about
}

// backups are what is told of them.
type backups struct {
	last   atomic.Int64 // Unix seconds of the newest, 0 = none
	failed atomic.Int64
}

// Backup makes a backup of this peer in dir, which must not exist, while it
// works on. What is committed after the call may be missing.
func (n *Node) Backup(dir string) error {
	return backup(n.o.fileSystem(), n.store, dir, n.o.Dir, BackupInfo{Peer: n.id, Version: n.o.Version})
}

// BackupOf makes a backup of a peer that does not run: store.ErrLocked when it does.
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
	return errors.Join(backup(o.fileSystem(), s, dir, o.Dir, BackupInfo{Peer: dht.PeerID(key), Version: o.Version}),
		s.Close())
}

func backup(disk vfs.FS, s *db.Store, dir, data string, info BackupInfo) error {
	if _, err := disk.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup to %s: %w", dir, cmp.Or(err, fs.ErrExist))
	}
	part := dir + backupPart
	err := disk.RemoveAll(part) // of one that was cut short
	if err == nil {
		err = makeDir(disk, part)
	}
	if err == nil {
		err = room(disk, filepath.Join(data, "store"), part, s.Stats().DiskBytes)
	}
	if err == nil {
		err = fill(disk, s, part, data, info)
	}
	if err == nil {
		err = settle(disk, part, dir)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrFull) {
		err = fmt.Errorf("disk full: free space there, or keep fewer backups: %w", err)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backup to %s: %w", dir, err), disk.RemoveAll(part))
	}
	return nil
}

// room refuses a copy that would fill the disk, on which the store may be too.
// Where tables can be linked there is no copy.
func room(disk vfs.FS, data, part string, size int64) error {
	probe := filepath.Join(part, "probe")
	all, err := disk.List(filepath.Join(data, "pebble"))
	if err != nil {
		return err
	}
	for _, name := range all {
		if strings.HasPrefix(name, "OPTIONS-") && disk.Link(filepath.Join(data, "pebble", name), probe) == nil {
			return disk.Remove(probe)
		}
	}
	u, err := disk.GetDiskUsage(part)
	if err != nil {
		return nil // a file system that cannot tell
	}
	if need := uint64(size) + backupSpare; u.TotalBytes > 0 && u.AvailBytes < need {
		return fmt.Errorf("%d MiB are needed, %d MiB are free: %w", need>>20, u.AvailBytes>>20, syscall.ENOSPC)
	}
	return nil
}

// fill makes all of a backup in part.
func fill(disk vfs.FS, s *db.Store, part, data string, info BackupInfo) error {
	c := s.Charter()
	info.V, info.Made, info.Swarm, info.Charter, info.Store, info.Records = backupVersion,
		time.Now().UTC().Truncate(time.Second), c.Name, c.Digest(), s.ID(), s.Stats().Records
	if err := s.Backup(filepath.Join(part, "store")); err != nil {
		return err
	}
	if _, err := vfs.Clone(disk, disk, filepath.Join(data, sealedCharter), filepath.Join(part, sealedCharter),
		vfs.CloneSync); err != nil {
		return err
	}
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return writeSynced(disk, filepath.Join(part, backupName), append(b, '\n'))
}

func writeSynced(disk vfs.FS, name string, b []byte) error {
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// settle gives part its name once all of it is on the disk.
func settle(disk vfs.FS, part, dir string) error {
	if err := engine.SyncDir(disk, part); err != nil {
		return err
	}
	if err := disk.Rename(part, dir); err != nil {
		return err
	}
	return engine.SyncDir(disk, filepath.Dir(dir))
}

// makeDir makes dir and what is missing above it, so that they outlast a crash.
func makeDir(disk vfs.FS, dir string) error {
	if _, err := disk.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if above == dir {
		return nil
	}
	err := makeDir(disk, above)
	if err == nil {
		err = disk.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = engine.SyncDir(disk, above)
	}
	return err
}

// ReadBackup says what the backup in dir is of.
func ReadBackup(disk vfs.FS, dir string) (BackupInfo, error) {
	var info BackupInfo
	f, err := disk.Open(filepath.Join(dir, backupName))
	if errors.Is(err, fs.ErrNotExist) {
		return info, fmt.Errorf("%s is no backup, or was cut short: it has no %s", dir, backupName)
	}
	if err != nil {
		return info, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxBackupInfo))
	if err = errors.Join(err, f.Close()); err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil {
		return info, fmt.Errorf("%s: %w", filepath.Join(dir, backupName), err)
	}
	if info.V != backupVersion {
		return info, fmt.Errorf("%w: the backup %s has format %d, this program knows %d", store.ErrVersion, dir, info.V,
			backupVersion)
	}
	return info, nil
}

// runBackups makes the scheduled backups. One that fails is said, counted and tried
// again; the ones before it stay.
func (n *Node) runBackups(ctx context.Context) error {
	disk := n.o.fileSystem()
	wait := time.Duration(0)
	if all, err := listBackups(disk, n.o.BackupDir); err == nil && len(all) > 0 {
		last := all[len(all)-1].made
		n.backups.last.Store(last.Unix())
		for _, b := range all {
			if n.o.FS != nil {
				break // in memory
			}
			if err := closeBackup(b.dir, n.log); err != nil {
				n.log.Error("close a backup", "dir", b.dir, "err", err)
			}
		}
		wait = min(time.Until(last.Add(n.o.BackupEvery)), n.o.BackupEvery)
	}
	for call.Sleep(ctx, wait, nil) {
		dir, begun := filepath.Join(n.o.BackupDir, backupPrefix+time.Now().UTC().Format(backupTime)), time.Now()
		err := n.Backup(dir)
		if wait = n.o.BackupEvery; err != nil {
			n.backups.failed.Add(1)
			n.log.Error("no backup", "err", err)
			wait = min(wait, backupRetry)
			continue
		}
		n.backups.last.Store(begun.Unix())
		n.log.Info("backup made", "dir", dir, "took", time.Since(begun))
		if err := pruneBackups(disk, n.o.BackupDir, n.o.BackupKeep); err != nil {
			n.log.Error("old backups", "err", err)
		}
	}
	return ctx.Err()
}

type madeBackup struct {
	dir  string
	made time.Time
}

// listBackups are the whole backups that runBackups made in dir, the oldest first.
func listBackups(disk vfs.FS, dir string) ([]madeBackup, error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, err
	}
	var out []madeBackup
	for _, name := range names {
		text, ours := strings.CutPrefix(name, backupPrefix)
		made, err := time.Parse(backupTime, text)
		if !ours || err != nil {
			continue
		}
		if _, err := disk.Stat(filepath.Join(dir, name, backupName)); err != nil {
			continue
		}
		out = append(out, madeBackup{filepath.Join(dir, name), made})
	}
	slices.SortFunc(out, func(a, b madeBackup) int { return a.made.Compare(b.made) })
	return out, nil
}

// pruneBackups removes all but the newest keep, and what was cut short. One that is
// removed loses its backup.json first, so that half of it is not taken for a whole.
func pruneBackups(disk vfs.FS, dir string, keep int) error {
	all, err := listBackups(disk, dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range all[:max(0, len(all)-keep)] {
		err := disk.Remove(filepath.Join(b.dir, backupName))
		if err == nil {
			err = disk.RemoveAll(b.dir)
		}
		errs = append(errs, err)
	}
	names, err := disk.List(dir)
	errs = append(errs, err)
	for _, name := range names {
		if strings.HasPrefix(name, backupPrefix) && strings.HasSuffix(name, backupPart) {
			errs = append(errs, disk.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return errors.Join(errs...)
}

func (o Options) fileSystem() vfs.FS {
	if o.FS == nil {
		return vfs.Default
	}
	return o.FS
}
