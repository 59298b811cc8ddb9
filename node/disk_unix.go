//go:build unix

package node

import (
	"errors"
	"io/fs"
	"syscall"
)

// fileID names a file, whatever its links are called.
type fileID struct{ dev, inode uint64 }

// onDisk is what a file takes on the disk, and whether it has several links.
func onDisk(info fs.FileInfo) (bytes int64, id fileID, shared bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	//nolint:unconvert // the types differ between systems
	return int64(s.Blocks) * 512, fileID{uint64(s.Dev), uint64(s.Ino)}, s.Nlink > 1
}

// ignoreGone: files come and go while a directory is walked.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
