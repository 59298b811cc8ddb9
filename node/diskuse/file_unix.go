//go:build unix

package diskuse

import (
	"io/fs"
	"syscall"
)

// fileID identifies a file, also if it has several names.
type fileID struct{ dev, inode uint64 }

// onDisk returns the space that a file takes, and whether it has several links.
func onDisk(info fs.FileInfo) (bytes int64, id fileID, shared bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	//nolint:unconvert // the types differ between systems
	return int64(s.Blocks) * 512, fileID{uint64(s.Dev), uint64(s.Ino)}, s.Nlink > 1
}
