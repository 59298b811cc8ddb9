// Package diag writes what a running process says about itself: the stacks of all goroutines on
// SIGQUIT, and what libraries write to the standard logger.
package diag

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Limits of what SIGQUIT writes.
const (
	maxStacks     = 16 << 20 // bytes of one dump; the rest is cut, with a note
	maxStackFiles = 5        // dumps kept in a data directory, the newest ones
)

// DumpOnQuit makes SIGQUIT write the stacks of all goroutines to w and, unless dir is "", to a
// file in dir. The process continues. stop ends this. Other commands end on SIGQUIT, like all
// Go programs. Windows has no such signal.
func DumpOnQuit(w io.Writer, dir string, log *slog.Logger) (stop func()) {
	quit := make(chan os.Signal, 1) // several signals during a dump count as one
	ended := make(chan struct{})
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		defer close(ended)
		for range quit {
			dumpStacks(w, dir, time.Now(), log)
		}
	}()
	return func() {
		signal.Stop(quit)
		close(quit)
		<-ended
	}
}

// dumpStacks writes the file first, because w may be a terminal that is stopped.
func dumpStacks(w io.Writer, dir string, now time.Time, log *slog.Logger) {
	all := stacks(maxStacks)
	if dir != "" {
		name, err := writeStacks(dir, now, all)
		if err != nil {
			log.Error("stacks", "err", err)
		} else {
			log.Info("stacks of all goroutines", "file", name)
		}
	}
	if _, err := w.Write(all); err != nil {
		log.Error("stacks", "err", err)
	}
}

// stacks returns those of all goroutines, at most limit bytes. The process stands still while
// they are collected.
func stacks(limit int) []byte {
	for size := 1 << 20; ; size *= 2 { // for most processes the first size is enough
		size = min(size, limit)
		b := make([]byte, size)
		n := runtime.Stack(b, true)
		if n < size {
			return b[:n]
		}
		if size == limit {
			return append(b, fmt.Sprintf("\n(cut after %d bytes; %d goroutines)\n", limit, runtime.NumGoroutine())...)
		}
	}
}

// writeStacks makes a file named after now. Under that name the file is complete or does not
// exist. It removes the oldest of more than maxStackFiles.
func writeStacks(dir string, now time.Time, all []byte) (string, error) {
	name := filepath.Join(dir, "stacks-"+now.UTC().Format("20060102T150405.000Z")+".txt")
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, all, 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, name); err != nil {
		return "", err
	}
	old, err := filepath.Glob(filepath.Join(dir, "stacks-*Z.txt"))
	if err != nil {
		return "", err
	}
	slices.Sort(old) // by time
	for _, f := range old[:max(0, len(old)-maxStackFiles)] {
		if err := os.Remove(f); err != nil {
			return "", err
		}
	}
	return name, nil
}
