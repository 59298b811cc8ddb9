package engine

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is the disk below Pebble. When a write-ahead log file refuses, Pebble
// panics with its locks held, or unlocks twice, in the goroutine of whoever
// writes next: no caller could be answered. So it is not told. The refusal is
// the store's (Engine.failed), which acknowledges nothing from then on, and what
// Pebble still writes to its log goes nowhere.
//
// On the disk the log ends at or before the refusal, as if the machine had
// stopped there: no later log file is made, so that the next Open reads it as
// one with an unfinished end. Tables and the manifest are written as ever; they
// can hold writes that nobody was answered, whole and in order.
type logFS struct {
	vfs.FS
	dir     string
	armed   atomic.Bool // not while Pebble opens, which reports errors itself
	failed  func() bool
	refused func(error)
	nowhere *vfs.MemFS // log files made after the refusal
}

// Create syncs the directory before a marker, Pebble's word for which file of a kind is the one in use, is made:
// Pebble syncs it once for the marker and for the file that it names, and a file system may keep the first
// without the second, after which nothing can be opened.
func (l *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if l.PathDir(name) == l.dir && strings.HasPrefix(l.PathBase(name), "marker.") {
		if err := SyncDir(l.FS, l.dir); err != nil {
			return nil, err
		}
	}
	return l.make(name, func(fs vfs.FS) (vfs.File, error) { return fs.Create(name, category) })
}

// SyncDir makes what was made, renamed and removed in dir outlast a crash.
func SyncDir(disk vfs.FS, dir string) error {
	d, err := disk.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (l *logFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.make(name, func(fs vfs.FS) (vfs.File, error) { return fs.ReuseForWrite(old, name, category) })
}

func (l *logFS) make(name string, make func(vfs.FS) (vfs.File, error)) (vfs.File, error) {
	if l.PathDir(name) != l.dir || !strings.HasSuffix(name, ".log") {
		return make(l.FS)
	}
	if !l.failed() {
		f, err := make(l.FS)
		if err == nil {
			return &logFile{File: f, fs: l}, nil
		}
		if !l.armed.Load() {
			return nil, err
		}
		l.refused(err)
	}
	return l.nowhere.Create(l.PathBase(name), vfs.WriteCategoryUnspecified)
}

// logFile is a write-ahead log file. Writes after the refusal are dropped.
type logFile struct {
	vfs.File
	fs *logFS
}

func (f *logFile) try(op func() error) error {
	if f.fs.failed() {
		return nil
	}
	err := op()
	if err == nil || !f.fs.armed.Load() {
		return err
	}
	f.fs.refused(err)
	return nil
}

func (f *logFile) Write(p []byte) (n int, err error) {
	n = len(p)
	err = f.try(func() error { n, err = f.File.Write(p); return err })
	if err == nil {
		n = len(p)
	}
	return n, err
}

func (f *logFile) Preallocate(offset, length int64) error {
	return f.try(func() error { return f.File.Preallocate(offset, length) })
}

func (f *logFile) Sync() error { return f.try(f.File.Sync) }

func (f *logFile) SyncData() error { return f.try(f.File.SyncData) }

func (f *logFile) SyncTo(length int64) (full bool, err error) {
	err = f.try(func() error { full, err = f.File.SyncTo(length); return err })
	return full, err
}

func (f *logFile) Close() error {
	err := f.File.Close() // also of a file that refused: its descriptor goes
	return f.try(func() error { return err })
}
