//go:build unix

package main

import (
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
)

// closeFiles has all files that this process makes be its user's alone.
func closeFiles() { syscall.Umask(0o077) }

// abortOnPanic has a panic end the process by SIGABRT, which a shell calls 134: Go's own
// exit code for it, 2, means wrong usage here. There is no core file: it would hold tokens.
func abortOnPanic() {
	debug.SetTraceback("crash")
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // if it fails, the system's limit stays
}

// ownedByUs tells whether a file is of this process's user.
func ownedByUs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
