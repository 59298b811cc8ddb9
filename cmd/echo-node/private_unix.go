//go:build unix

package main

import (
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
)

// closeFiles makes all files that this process creates accessible only to its user.
func closeFiles() { syscall.Umask(0o077) }

// abortOnPanic makes a panic end the process by SIGABRT, which a shell reports as 134. Go's own
// exit code for a panic, 2, means wrong usage here. There is no core file, because it would
// contain tokens.
func abortOnPanic() {
	debug.SetTraceback("crash")
	// if it fails, the system's limit stays
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

// ownedByUs reports whether a file belongs to this process's user.
func ownedByUs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
