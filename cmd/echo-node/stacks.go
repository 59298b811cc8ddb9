package main

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
	maxStacks     = 16 << 20 // bytes of one dump; the rest is cut, and said so
	maxStackFiles = 5        // dumps kept in a data directory, the newest
)

// dumpOnQuit has SIGQUIT write the stacks of all goroutines to w and, unless dir
// is "", to a file in dir, and the process go on; stop ends that. Other
// commands end on SIGQUIT, as Go programs do. Windows has no such signal.
func dumpOnQuit(w io.Writer, dir string, log *slog.Logger) (stop func()) {
	quit := make(chan os.Signal, 1) // more that come during a dump are one
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

// dumpStacks writes the file first: w may be a terminal that is stopped.
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

// stacks are those of all goroutines, at most limit bytes. The process stands
// still while they are taken.
func stacks(limit int) []byte {
	for size := 1 << 20; ; size *= 2 { // most processes fit the first time
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

// writeStacks makes a file named for now, whole or not at all under that name,
// and removes the oldest of more than maxStackFiles.
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
