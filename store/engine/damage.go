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

// damages is what a Store knows of its damaged files.
type damages struct {
	first atomic.Pointer[store.DamageError]
	mu    sync.Mutex // guards the list on disk
}

// Damaged is the first damage that was met, nil while there is none. A Store that has
// one should be closed and mended (Mend): what it answers is right or an error, but
// compactions of the file fail again and again.
func (s *Engine) Damaged() error {
	if d := s.damages.first.Load(); d != nil {
		return d
	}
	return nil
}

// Found notes that file, "" if it is not known which, is damaged. Pebble may call it
// with locks held.
func (s *Engine) Found(file string, why error) *store.DamageError {
	s.damages.mu.Lock()
	defer s.damages.mu.Unlock()
	d := &store.DamageError{Dir: s.Dir, File: file, Why: why}
	if first := s.damages.first.Load(); first != nil && (file == "" || first.File != "") {
		return first // one is enough to end: the others are found when the store is mended
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

// Inside is the name of a file of Pebble's in the store's directory.
func Inside(path string) string {
	return filepath.ToSlash(filepath.Join("pebble", filepath.Base(path)))
}

// listener hears of damage from Pebble, which would end the process by itself.
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

// Explain is err, or the damage that caused it.
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

// Hurt is what is known of damage, on disk: which files are to be looked at, and
// which slices lost rows by what was done about it. While there is one the store is not
// opened (ErrDamaged), as a slice would be taken for whole.
type Hurt struct {
	Files  []string          `json:"files,omitempty"` // damaged, inside the store's directory
	Slices []partition.Slice `json:"slices,omitempty"`
	Meta   bool              `json:"meta,omitempty"` // values of the node were lost too (Meta)
	Done   bool              `json:"done,omitempty"` // no damaged file is left; Slices are to be made whole
}

// refuse says why a store is not opened.
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
	maxHurt  = 4 << 20 // bytes of it
)

func ReadHurt(disk vfs.FS, dir string) (h Hurt, err error) {
	b, err := readSmall(disk, disk.PathJoin(dir, hurtName), maxHurt)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("store: %w", err)
	}
	if err := json.Unmarshal(b, &h); err != nil { // it is damaged itself: all files are looked at
		return Hurt{Files: []string{hurtName}}, nil
	}
	return h, nil
}

// WriteHurt makes h durable; an empty one is no file.
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

// replaceSynced makes b the content of dir/name, whole or not at all.
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
