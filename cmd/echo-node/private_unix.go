//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// closeFiles has all files that this process makes be its user's alone.
func closeFiles() { syscall.Umask(0o077) }

// ownedByUs tells whether a file is of this process's user.
func ownedByUs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
