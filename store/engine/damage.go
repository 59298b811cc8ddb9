package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// damages records the damaged files of a store.
type damages struct {
	first atomic.Pointer[store.DamageError]
	mu    sync.Mutex // guards the list on disk
}

// Damaged returns the first damage that was found, or nil. The caller should then close the store
// and mend it (db.Mend). Every answer of a damaged store is right or an error, but compactions of
// the damaged file fail again and again.
func (s *Engine) Damaged() error {
	if d := s.damages.first.Load(); d != nil {
		return d
	}
	return nil
}

// Found records that file is damaged; "" means that the file is unknown. Pebble may call it while
// it holds locks.
func (s *Engine) Found(file string, why error) *store.DamageError {
	s.damages.mu.Lock()
	defer s.damages.mu.Unlock()
	d := &store.DamageError{Dir: s.Dir, File: file, Why: why}
	if first := s.damages.first.Load(); first != nil && (file == "" || first.File != "") {
		return first // one is enough to close the store: mending finds the others
	}
	s.damages.first.Store(d)
	if file != "" {
		h, err := ReadHurt(s.Options.FS, s.Dir)
		if err == nil && !slices.Contains(h.Files, file) {
			h.Files = append(h.Files, file)
			err = WriteHurt(s.Options.FS, s.Dir, h)
		}
		if err != nil {
			s.Options.Logger.Error("store: the list of damaged files", "err", err)
		}
	}
	s.Options.Logger.Error("store: a file is damaged", "err", d)
	if s.Options.Damaged != nil {
		s.Options.Damaged(d)
	}
	return d
}

// Inside returns the name of one of Pebble's files, relative to the store's directory.
func Inside(path string) string {
	return filepath.ToSlash(filepath.Join("pebble", filepath.Base(path)))
}

// listener returns the listener through which Pebble reports damage. Without it, Pebble would end
// the process.
func (s *Engine) listener() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(i pebble.DataCorruptionInfo) { s.Found(Inside(i.Path), i.Details) },
		BackgroundError: func(err error) {
			if pebble.IsCorruptionError(err) {
				s.Found("", err)
				return
			}
			s.Options.Logger.Error("store: in the background", "err", err)
		},
	}
}

// Explain returns err, or the damage that caused it.
func (s *Engine) Explain(err error) error {
	if err == nil || errors.Is(err, store.ErrDamaged) {
		return err
	}
	if d := s.damages.first.Load(); d != nil {
		return d
	}
	if pebble.IsCorruptionError(err) {
		return &store.DamageError{Dir: s.Dir, Why: err}
	}
	return err
}

// Hurt is what is known about damage, as stored on disk: the files to check, and the slices that
// lost rows when the damage was repaired. While this file exists, the store is not opened
// (ErrDamaged), because such a slice would be taken for complete.
type Hurt struct {
	Files  []string          `json:"files,omitempty"` // damaged, relative to the store's directory
	Slices []partition.Slice `json:"slices,omitempty"`
	// Meta says that values of the node (Meta in package db) were lost too.
	Meta bool `json:"meta,omitempty"`
	// Done says that no damaged file is left. Slices are still incomplete.
	Done bool `json:"done,omitempty"`
}

// refuse returns the error that says why a store is not opened.
func (h Hurt) refuse(dir string) error {
	d := &store.DamageError{Dir: dir, Why: errors.New("what was found damaged when it was open last was not mended")}
	if len(h.Files) > 0 {
		d.File = h.Files[0]
	}
	if h.Done {
		d.Why = errors.New("mending it was cut short")
	}
	return d
}

func (h Hurt) empty() bool { return len(h.Files) == 0 && len(h.Slices) == 0 && !h.Meta }

const (
	hurtName = "damaged.json"
	maxHurt  = 4 << 20 // of the file, in bytes
)

// ReadHurt reads the Hurt of the store in dir. It is empty when there is no such file.
func ReadHurt(disk vfs.FS, dir string) (h Hurt, err error) {
	b, err := readSmall(disk, disk.PathJoin(dir, hurtName), maxHurt)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("store: %w", err)
	}
	if err := json.Unmarshal(b, &h); err != nil { // the list is damaged: all files are checked
		return Hurt{Files: []string{hurtName}}, nil
	}
	return h, nil
}

// WriteHurt makes h durable. For an empty h, it removes the file.
func WriteHurt(disk vfs.FS, dir string, h Hurt) error {
	name := disk.PathJoin(dir, hurtName)
	if h.empty() {
		if err := disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return SyncDir(disk, dir)
	}
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return replaceSynced(disk, dir, hurtName, b)
}

// replaceSynced makes b the content of dir/name, durable. After a crash, the file has either the
// old or the new content.
func replaceSynced(disk vfs.FS, dir, name string, b []byte) error {
	part := disk.PathJoin(dir, name+".part")
	f, err := disk.Create(part, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = disk.Rename(part, disk.PathJoin(dir, name))
	}
	if err != nil {
		return err
	}
	return SyncDir(disk, dir)
}

func readSmall(disk vfs.FS, name string, most int64) ([]byte, error) {
	f, err := disk.Open(name, vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return b, err
}
