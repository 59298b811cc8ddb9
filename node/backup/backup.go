// Package backup copies the store of a peer into a directory, and back.
//
// A backup is a directory:
//
//	backup.json      Info; a directory without it is no backup, or an unfinished one
//	store/           the store as it was at one moment (Pebble's checkpoint)
//	charter.sealed   the swarm's charter with its founder's signature, if this peer has it
//
// A backup is written under a name that ends in ".part", synced, and renamed. So a directory with
// the final name is complete, even after a crash. Tables are hard links where the file system
// supports them. A backup on the same disk then costs little space, but is lost with that disk.
//
// A backup does not contain the identity and its passes, because a restored peer is a new peer. It
// does not contain the index, which is rebuilt, or tokens, which are not stored.
package backup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/engine"
)

const (
	version = 1
	// Name is the file that describes the backup.
	Name          = "backup.json"
	part          = ".part"
	prefix        = "echo-"
	timeForm      = "20060102T150405Z"
	sealedCharter = "charter.sealed" // the same name as in package dht

	// MinEvery is the least time between two scheduled backups.
	MinEvery = time.Minute
	maxInfo  = 64 << 10  // limit of backup.json in bytes
	spare    = 256 << 20 // bytes that a copy leaves free on its disk
)

// Info describes a backup.
type Info struct {
	V       int       `json:"v"`
	Made    time.Time `json:"made"`
	Peer    string    `json:"peer"` // the peer that made it
	Swarm   string    `json:"swarm"`
	Charter string    `json:"charter"` // digest of the charter
	Store   string    `json:"store"`   // id of the store
	Version string    `json:"version"` // version of the program
	Records int64     `json:"records"` // records in the store, about
}

// Make backs up s into dir, which must not exist, while s is in use. data is the data directory of
// s. Of info, only Peer and Version are used. Rows committed after the call may be missing.
func Make(disk vfs.FS, s *db.Store, dir, data string, info Info) error {
	if _, err := disk.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup to %s: %w", dir, cmp.Or(err, fs.ErrExist))
	}
	half := dir + part
	err := disk.RemoveAll(half) // left by an interrupted backup
	if err == nil {
		err = makeDir(disk, half)
	}
	if err == nil {
		err = room(disk, filepath.Join(data, "store"), half, s.Stats().DiskBytes)
	}
	if err == nil {
		err = fill(disk, s, half, data, info)
	}
	if err == nil {
		err = settle(disk, half, dir)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrFull) {
		err = fmt.Errorf("disk full: free space there, or keep fewer backups: %w", err)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backup to %s: %w", dir, err), disk.RemoveAll(half))
	}
	return nil
}

// room returns an error if the copy would fill the disk, on which the store may be too. Where
// tables can be linked, no copy is needed.
func room(disk vfs.FS, data, half string, size int64) error {
	probe := filepath.Join(half, "probe")
	all, err := disk.List(filepath.Join(data, "pebble"))
	if err != nil {
		return err
	}
	for _, name := range all {
		if strings.HasPrefix(name, "OPTIONS-") && disk.Link(filepath.Join(data, "pebble", name), probe) == nil {
			return disk.Remove(probe)
		}
	}
	u, err := disk.GetDiskUsage(half)
	if err != nil {
		return nil // the file system does not report its usage
	}
	if need := uint64(size) + spare; u.TotalBytes > 0 && u.AvailBytes < need {
		return fmt.Errorf("%d MiB are needed, %d MiB are free: %w", need>>20, u.AvailBytes>>20, syscall.ENOSPC)
	}
	return nil
}

// fill writes all parts of a backup into half.
func fill(disk vfs.FS, s *db.Store, half, data string, info Info) error {
	c := s.Charter()
	info.V, info.Made, info.Swarm, info.Charter, info.Store, info.Records = version,
		time.Now().UTC().Truncate(time.Second), c.Name, c.Digest(), s.ID(), s.Stats().Records
	if err := s.Backup(filepath.Join(half, "store")); err != nil {
		return err
	}
	if _, err := vfs.Clone(disk, disk, filepath.Join(data, sealedCharter), filepath.Join(half, sealedCharter),
		vfs.CloneSync); err != nil {
		return err
	}
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return writeSynced(disk, filepath.Join(half, Name), append(b, '\n'))
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

// settle syncs half and renames it to dir.
func settle(disk vfs.FS, half, dir string) error {
	if err := engine.SyncDir(disk, half); err != nil {
		return err
	}
	if err := disk.Rename(half, dir); err != nil {
		return err
	}
	return engine.SyncDir(disk, filepath.Dir(dir))
}

// makeDir makes dir and its missing parents, and syncs them, so that they survive a crash.
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

// Read returns the Info of the backup in dir.
func Read(disk vfs.FS, dir string) (Info, error) {
	var info Info
	f, err := disk.Open(filepath.Join(dir, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return info, fmt.Errorf("%s is no backup, or was cut short: it has no %s", dir, Name)
	}
	if err != nil {
		return info, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxInfo))
	if err = errors.Join(err, f.Close()); err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil {
		return info, fmt.Errorf("%s: %w", filepath.Join(dir, Name), err)
	}
	if info.V != version {
		return info, fmt.Errorf("%w: the backup %s has format %d, this program knows %d", store.ErrVersion, dir, info.V,
			version)
	}
	return info, nil
}

// Made is one complete backup.
type Made struct {
	Dir string
	At  time.Time
}

// List returns the complete backups in dir whose names contain their time (Under), the oldest
// first.
func List(disk vfs.FS, dir string) ([]Made, error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, err
	}
	var out []Made
	for _, name := range names {
		text, ours := strings.CutPrefix(name, prefix)
		made, err := time.Parse(timeForm, text)
		if !ours || err != nil {
			continue
		}
		if _, err := disk.Stat(filepath.Join(dir, name, Name)); err != nil {
			continue
		}
		out = append(out, Made{filepath.Join(dir, name), made})
	}
	slices.SortFunc(out, func(a, b Made) int { return a.At.Compare(b.At) })
	return out, nil
}

// Prune removes all backups except the newest keep, and unfinished ones. It removes backup.json
// first, so that a partly removed backup does not look complete.
func Prune(disk vfs.FS, dir string, keep int) error {
	all, err := List(disk, dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range all[:max(0, len(all)-keep)] {
		err := disk.Remove(filepath.Join(b.Dir, Name))
		if err == nil {
			err = disk.RemoveAll(b.Dir)
		}
		errs = append(errs, err)
	}
	names, err := disk.List(dir)
	errs = append(errs, err)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, part) {
			errs = append(errs, disk.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return errors.Join(errs...)
}

// Under returns the name of a backup made at a time in dir. List finds it there.
func Under(dir string, at time.Time) string {
	return filepath.Join(dir, prefix+at.UTC().Format(timeForm))
}

// Unpack copies the backup in from into the directory dir, which must be empty or not exist. renew
// turns the files in half into those of a new peer, before half is renamed to dir. After an error
// nothing is left.
func Unpack(disk vfs.FS, from, dir string, renew func(half string, info *Info) error) (Info, error) {
	info, err := Read(disk, from)
	if err != nil {
		return info, err
	}
	if names, err := disk.List(dir); err == nil && len(names) > 0 {
		return info, fmt.Errorf("restore to %s: it is not empty: give a new directory", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return info, fmt.Errorf("restore to %s: %w", dir, err)
	}
	half := strings.TrimRight(dir, `/\`) + part
	err = disk.RemoveAll(half)
	if err == nil {
		err = makeDir(disk, half)
	}
	if err == nil {
		_, err = vfs.Clone(disk, disk, filepath.Join(from, "store"), filepath.Join(half, "store"), vfs.CloneSync)
	}
	if err == nil {
		_, err = vfs.Clone(disk, disk, filepath.Join(from, sealedCharter), filepath.Join(half, sealedCharter),
			vfs.CloneSync)
	}
	if err == nil {
		err = renew(half, &info)
	}
	if err == nil {
		if err = disk.Remove(dir); errors.Is(err, fs.ErrNotExist) { // it is empty or does not exist
			err = nil
		}
	}
	if err == nil {
		err = settle(disk, half, dir)
	}
	if err != nil {
		return info, errors.Join(fmt.Errorf("restore %s to %s: %w", from, dir, err), disk.RemoveAll(half))
	}
	return info, nil
}
