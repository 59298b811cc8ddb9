package node

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

const identityName = "identity.key"

// closeDirectory takes from all other users of the machine what they may do with a data
// directory: one of an older version, or made by hand, may be open to them. That is the
// directory itself, the files in it and all of its store; other directories in it are not
// this program's, and closed by the one above them. The identity is left out: opening
// refuses one that others could read, since they may have.
func closeDirectory(dir string, log *slog.Logger) error {
	c := closing{}
	err := c.one(dir)
	entries, rerr := os.ReadDir(dir)
	err = errors.Join(err, rerr)
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != identityName {
			err = errors.Join(err, c.one(filepath.Join(dir, e.Name())))
		}
	}
	err = errors.Join(err, c.tree(filepath.Join(dir, "store")))
	c.say(dir, log)
	return err
}

// closeBackup does the same for a backup. Its files may be those of the store.
func closeBackup(dir string, log *slog.Logger) error {
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

// one closes a file or a directory. What is not ours, or on a file system without modes,
// stays as it is.
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

// tree closes a directory and all in it, the directory first: then nobody else gets at
// what is in it meanwhile. Links are not followed, as they may lead out of it.
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
