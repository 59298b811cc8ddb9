package nodetest

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is a vfs.MemFS that can crash. In a MemFS, the sync of a file copies the whole file, so
// a log of some megabytes would be copied for each commit. disk postpones the syncs of a log
// until the log is closed or the disk crashes. Until then it keeps apart what is not synced.
type disk struct {
	*vfs.MemFS
	mu   sync.Mutex // guards the logs and their content
	logs map[*logFile]bool
}

func newDisk(fs *vfs.MemFS) *disk { return &disk{MemFS: fs, logs: map[*logFile]bool{}} }

// CrashClone is like that of vfs.MemFS.
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

// Create implements vfs.FS.
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

// logFile is a log that is being written and that no code reads.
type logFile struct {
	vfs.File
	disk   *disk
	synced bool   // everything in File must look synced
	tail   []byte // written since then
}

// Write implements vfs.File.
func (l *logFile) Write(p []byte) (int, error) {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	l.tail = append(l.tail, p...)
	return len(p), nil
}

// Sync implements vfs.File.
func (l *logFile) Sync() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	l.synced = true
	return l.flush()
}

// SyncData implements vfs.File.
func (l *logFile) SyncData() error { return l.Sync() }

// Close implements vfs.File.
func (l *logFile) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	delete(l.disk.logs, l)
	if err := l.settle(); err != nil {
		return err
	}
	return l.File.Close()
}

// settle writes and syncs File as far as it must be.
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
