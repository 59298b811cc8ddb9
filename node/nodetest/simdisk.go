package nodetest

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is a vfs.MemFS that can crash. A sync of one of its files copies the
// whole of it, so that a log of some megabytes is copied for each commit: those
// of a log are put off until the log is closed or the disk crashes, and what is
// not synced then is kept apart until it is.
type disk struct {
	*vfs.MemFS
	mu   sync.Mutex // guards the logs and what is in them
	logs map[*logFile]bool
}

func newDisk(fs *vfs.MemFS) *disk { return &disk{MemFS: fs, logs: map[*logFile]bool{}} }

// CrashClone is vfs.MemFS's.
func (d *disk) CrashClone(cfg vfs.CrashCloneCfg) (*disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.logs {
		if err := l.settle(); err != nil {
			return nil, err
		}
	}
	return newDisk(d.MemFS.CrashClone(cfg)), nil
}

// Create is vfs.FS's.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.MemFS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &logFile{File: f, disk: d}
	d.logs[l] = true
	return l, nil
}

// logFile is a log being written, and by nobody read.
type logFile struct {
	vfs.File
	disk   *disk
	synced bool   // all of File is to be as if it were
	tail   []byte // written since
}

// Write is vfs.File's.
func (l *logFile) Write(p []byte) (int, error) {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	l.tail = append(l.tail, p...)
	return len(p), nil
}

// Sync is vfs.File's.
func (l *logFile) Sync() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	l.synced = true
	return l.flush()
}

// SyncData is vfs.File's.
func (l *logFile) SyncData() error { return l.Sync() }

// Close is vfs.File's.
func (l *logFile) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	delete(l.disk.logs, l)
	if err := l.settle(); err != nil {
		return err
	}
	return l.File.Close()
}

// settle makes File what it should be, synced as far as it should be.
func (l *logFile) settle() error {
	if l.synced {
		if err := l.File.Sync(); err != nil {
			return err
		}
		l.synced = false
	}
	return l.flush()
}

func (l *logFile) flush() error {
	_, err := l.File.Write(l.tail)
	l.tail = l.tail[:0]
	return err
}
