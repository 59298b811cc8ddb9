package engine

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is the file system below Pebble. When a write-ahead log file returns an error, Pebble
// panics with its locks held, or unlocks twice. This happens in the goroutine of the next writer,
// so no caller would get an answer. Therefore logFS hides the error from Pebble. The Engine records
// it (Engine.failed) and acknowledges nothing from then on. What Pebble still writes to its log is
// dropped.
//
// On disk, the log ends at or before the refused write, as if the machine had stopped there. No
// later log file is made, so the next Open reads this one as a log with an unfinished end. Tables
// and the manifest are written as before. They can contain writes that were never acknowledged,
// complete and in order.
type logFS struct {
	vfs.FS
	dir     string
	armed   atomic.Bool // false while Pebble opens, which reports errors itself
	failed  func() bool
	refused func(error)
	nowhere *vfs.MemFS // where log files go that are made after the refusal
}

// Create syncs the directory before it makes a marker. With a marker, Pebble says which file of a
// kind is in use. Pebble syncs the directory once, for the marker and for the file that the marker
// names. A file system may keep the first without the second. Then nothing can be opened after a
// crash.
func (l *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if l.PathDir(name) == l.dir && strings.HasPrefix(l.PathBase(name), "marker.") {
		if err := SyncDir(l.FS, l.dir); err != nil {
			return nil, err
		}
	}
	return l.make(name, func(fs vfs.FS) (vfs.File, error) { return fs.Create(name, category) })
}

// SyncDir makes files that were made, renamed or removed in dir durable.
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

// make makes a file. A log file that cannot be made, or comes after the refusal, goes to nowhere.
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

// try runs op, unless the log was refused before. It records an error of op and hides it from
// Pebble.
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
	err := f.File.Close() // also when the file refused a write: this frees its descriptor
	return f.try(func() error { return err })
}
