package datadir

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// Close removes all other users' permissions on a data directory. An older version or a
// person may have made it open. It closes the directory, the files in it, and its whole store.
// Other directories in it do not belong to this program, and the parent directory protects them.
// The identity is left out: opening refuses an identity that others could read, because they may
// have read it.
func Close(dir string, log *slog.Logger) error {
	c := closing{}
	err := c.one(dir)
	entries, rerr := os.ReadDir(dir)
	err = errors.Join(err, rerr)
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != identityName {
			err = errors.Join(err, c.one(filepath.Join(dir, e.Name())))
		}
	}
	err = errors.Join(err, c.tree(Store(dir)))
	c.say(dir, log)
	return err
}

// CloseBackup does the same for a backup. Its files may be hard links to the store's files.
func CloseBackup(dir string, log *slog.Logger) error {
	c := closing{}
	err := c.tree(dir)
	c.say(dir, log)
	return err
}

// closing counts what was closed.
type closing struct {
	closed int
	left   error // why something stays open
}

// one closes a file or a directory. Files of other users, or on a file system without modes, stay
// as they are.
func (c *closing) one(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows" {
		return nil
	}
	if err == nil {
		err = os.Chmod(name, info.Mode()&^0o077)
	}
	switch {
	case err == nil:
		c.closed++
	case errors.Is(err, fs.ErrPermission):
		c.left, err = err, nil
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return err
}

// tree closes a directory and everything in it. It closes the directory first, so that no other
// user gets at the files meanwhile. It does not follow links, which may lead elsewhere.
func (c *closing) tree(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() || d.Type().IsRegular():
			return c.one(name)
		}
		return nil
	})
}

// say logs what was closed and what was not.
func (c *closing) say(dir string, log *slog.Logger) {
	if c.closed > 0 {
		log.Warn("other users of this machine could read this directory: it is closed to them now", "dir", dir, "files",
			c.closed)
	}
	if c.left != nil {
		log.Warn("other users of this machine may read this directory, and it is not this user's to close", "dir", dir,
			"err", c.left)
	}
}
