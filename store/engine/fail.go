package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/store"
)

// failure is the reason why the store no longer writes.
type failure struct{ err error }

// Fatalf must not return, because Pebble's state is undefined after it. Everything acknowledged is
// in the write-ahead log, and the next Open reads it back.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("store: %s: %s", l.s.Dir, fmt.Sprintf(format, args...))
	for _, a := range args {
		if e, ok := a.(error); ok {
			err = fmt.Errorf("store: %s: %s: %w", l.s.Dir, strings.TrimSuffix(format, ": %v"), e)
		}
	}
	l.s.stuck.Store(true)
	fatal(l.s.Options, l.s.fail(err))
}

// fatal calls o.Fatal, or panics when it is not set.
func fatal(o store.Options, err error) {
	if o.Fatal != nil {
		o.Fatal(err)
	}
	panic(err)
}

// fail records the first error after which nothing is written any more, and returns it.
func (s *Engine) fail(err error) error {
	s.failed.CompareAndSwap(nil, &failure{err: blame(s.Dir, err)})
	return s.failed.Load().err
}

// blame adds advice for the user to an error that means a full disk.
func blame(dir string, err error) error {
	if err == nil || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrFull) {
		return err
	}
	return fmt.Errorf("%w: %s: free space on its disk, then start again; all that was acknowledged is kept: %w",
		store.ErrFull, dir, err)
}

// space keeps the last part of the disk free, so that Pebble can always finish its work. Writes are
// refused with ErrFull before the disk is full.
type space struct {
	fs   vfs.FS
	dir  string
	mu   sync.Mutex
	next time.Time
	full error
}

const (
	reserveBytes   = 64 << 20        // kept free on a large disk
	reserveShare   = 20              // or this fraction, a twentieth, of a small disk
	spaceEvery     = 2 * time.Second // how often the disk is checked
	spaceEveryFull = 200 * time.Millisecond
)

// check returns nil while there is enough space, else ErrFull.
func (sp *space) check() error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	now := time.Now()
	if now.Before(sp.next) {
		return sp.full
	}
	sp.next, sp.full = now.Add(spaceEvery), nil
	u, err := sp.fs.GetDiskUsage(sp.dir)
	if err != nil || u.TotalBytes == 0 {
		return nil // the file system does not know; Pebble will notice a full disk
	}
	if least := min(reserveBytes, u.TotalBytes/reserveShare); u.AvailBytes < least {
		sp.next = now.Add(spaceEveryFull)
		sp.full = fmt.Errorf("%w: %s: %d MiB left of %d MiB, %d MiB are kept free: free space on it; nothing acknowledged was lost",
			store.ErrFull, sp.dir, u.AvailBytes>>20, u.TotalBytes>>20, least>>20)
	}
	return sp.full
}
