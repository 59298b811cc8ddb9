//go:build !unix

package node

import (
	"errors"
	"io/fs"
)

// fileID names a file, whatever its links are called.
type fileID struct{ dev, inode uint64 }

// onDisk is what a file takes on the disk, and whether it has several links.
func onDisk(info fs.FileInfo) (bytes int64, id fileID, shared bool) {
	return info.Size(), id, false
}

// ignoreGone: files come and go while a directory is walked.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
