// Package trash keeps copies of dropped slices in files, until they are too old or too large in
// total.
package trash

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
)

// Trash keeps complete copies of slices that a peer dropped, for a limited time and up to a number
// of bytes; the oldest go first. So a peer that lies about the replicas of a slice cannot destroy
// the copies. Each copy is a file with the rows that SliceRows returned when the copy was dropped.
// It does not contain what was deleted before.
//
// A copy is durable in the trash before its slice is dropped. A crash between the two leaves both,
// and the same copy is not stored twice. A file is complete, or has a name that is never read.
type Trash struct {
	fs  vfs.FS
	dir string
	o   Options

	mu  sync.Mutex
	all []Trashed // in order of age
}

// Options limit a Trash.
type Options struct {
	Keep     time.Duration // how long a copy stays
	MaxBytes int64         // of all copies together
}

// Trashed is one copy in the trash.
type Trashed struct {
	Slice  partition.Slice
	At     time.Time // when it was dropped
	Bytes  int64
	Wanted bool // marked for restoring: age and size do not remove it
	Name   string
}

// File names in the trash: SLICE-SECONDS-SUM, then one of these.
const (
	trashCopy   = ".rows"
	trashWanted = ".wanted" // the same, marked for restoring
	trashPart   = ".part"   // being written
)

const (
	trashVersion = 1
	trashMagic   = "echo-node trash"
	trashPage    = 1 << 20 // bytes of rows read and restored at a time
)

// ErrFull means that a copy is larger than Options.MaxBytes, or that the trash keeps nothing. The
// slice is dropped without a copy.
var ErrFull = errors.New("store: the copy is larger than the trash may be")

type trashHead struct {
	Magic string          `json:"magic"`
	V     int             `json:"v"`
	Slice partition.Slice `json:"slice"`
	Why   string          `json:"why"`
}

// Open reads the trash in dir, which need not exist.
func Open(disk vfs.FS, dir string, o Options) (*Trash, error) {
	t := &Trash{fs: disk, dir: dir, o: o}
	return t, t.Reread()
}

// Reread reads the directory again, because another process may have marked a copy for restoring.
func (t *Trash) Reread() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	names, err := t.fs.List(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		t.all = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: trash: %w", err)
	}
	t.all = nil
	for _, name := range names {
		x, ok := parseTrashed(name)
		if !ok {
			continue
		}
		info, err := t.fs.Stat(filepath.Join(t.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // renamed in the meantime
		}
		if err != nil {
			return fmt.Errorf("store: trash: %w", err)
		}
		x.Bytes = info.Size()
		t.all = append(t.all, x)
	}
	slices.SortFunc(t.all, func(a, b Trashed) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	return nil
}

// parseTrashed parses the file name of a copy.
func parseTrashed(name string) (x Trashed, ok bool) {
	x.Name = name
	base, wanted := strings.CutSuffix(name, trashWanted)
	if x.Wanted = wanted; !wanted {
		if base, ok = strings.CutSuffix(name, trashCopy); !ok {
			return x, false
		}
	}
	var sl uint64
	var sec int64
	var sum uint64
	if n, err := fmt.Sscanf(base, "%016x-%d-%016x", &sl, &sec, &sum); n != 3 || err != nil {
		return x, false
	}
	x.Slice, x.At = partition.Slice(sl), time.Unix(sec, 0).UTC()
	return x, true
}

// List returns the copies in the trash, the oldest first.
func (t *Trash) List() []Trashed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// source is the store whose slices are copied.
type source interface {
	SliceRows(sl partition.Slice, from []byte, maxBytes int) (rows []store.Row, next []byte, err error)
}

// Put stores a copy of the durable rows of sl in s, if there are any. It returns ErrFull if the
// copy is too large. Nothing may write to sl in the meantime.
func (t *Trash) Put(s source, sl partition.Slice, why string, now time.Time) error {
	rows, next, err := s.SliceRows(sl, nil, trashPage)
	if err != nil || len(rows) == 0 {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.o.Keep <= 0 || t.o.MaxBytes <= 0 {
		return ErrFull
	}
	if err := makeTrash(t.fs, t.dir); err != nil {
		return fmt.Errorf("store: trash: %w", err)
	}
	part := filepath.Join(t.dir, fmt.Sprintf("%016x%s", uint64(sl), trashPart))
	f, err := t.fs.Create(part, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("store: trash: %w", err)
	}
	w := &trashWriter{sum: xxhash.New(), max: t.o.MaxBytes}
	w.to = bufio.NewWriterSize(f, 64<<10)
	err = w.head(trashHead{Magic: trashMagic, V: trashVersion, Slice: sl, Why: why})
	for err == nil {
		if err = w.rows(rows); err != nil || len(next) == 0 {
			break
		}
		rows, next, err = s.SliceRows(sl, next, trashPage)
	}
	if err == nil {
		err = w.end()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("store: trash: %s: %w", sl, err), t.fs.Remove(part))
	}
	return t.take(part, Trashed{Slice: sl, At: now.Truncate(time.Second).UTC(), Bytes: w.size}, w.sum.Sum64())
}

// take renames a complete file to its final name, or removes it if the same copy is already there.
func (t *Trash) take(part string, x Trashed, sum uint64) error {
	for _, y := range t.all {
		if y.Slice == x.Slice && strings.Contains(y.Name, fmt.Sprintf("-%016x.", sum)) {
			return t.fs.Remove(part)
		}
	}
	x.Name = fmt.Sprintf("%016x-%d-%016x%s", uint64(x.Slice), x.At.Unix(), sum, trashCopy)
	if err := t.fs.Rename(part, filepath.Join(t.dir, x.Name)); err != nil {
		return fmt.Errorf("store: trash: %w", err)
	}
	if err := engine.SyncDir(t.fs, t.dir); err != nil {
		return fmt.Errorf("store: trash: %w", err)
	}
	t.all = append(t.all, x)
	return t.shrink(x.At)
}

// Tidy removes old copies, and incomplete files that a crash left.
func (t *Trash) Tidy(now time.Time) error {
	if err := t.Reread(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	names, err := t.fs.List(t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: trash: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, trashPart) { // Put holds t.mu while it writes one
			if err := t.remove(Trashed{Name: name}); err != nil {
				return err
			}
		}
	}
	return t.shrink(now)
}

// shrink removes the oldest copies until age and total size are within the limits. t.mu is held.
func (t *Trash) shrink(now time.Time) error {
	var bytes int64
	for _, x := range t.all {
		bytes += x.Bytes
	}
	var left []Trashed
	for _, x := range t.all {
		if x.Wanted || now.Sub(x.At) < t.o.Keep && bytes <= t.o.MaxBytes {
			left = append(left, x)
			continue
		}
		if err := t.remove(x); err != nil {
			return err
		}
		bytes -= x.Bytes
	}
	t.all = left
	return nil
}

// remove deletes a file of the trash if it exists.
func (t *Trash) remove(x Trashed) error {
	if err := t.fs.Remove(filepath.Join(t.dir, x.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: trash: %w", err)
	}
	return nil
}

// Want marks the copies of the given slices, or all copies, for restoring. The mark is durable when
// Want returns. It may be called while a peer runs.
func (t *Trash) Want(of ...partition.Slice) (marked []Trashed, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, x := range t.all {
		if len(of) > 0 && !slices.Contains(of, x.Slice) {
			continue
		}
		if !x.Wanted {
			old := x.Name
			x.Name, x.Wanted = strings.TrimSuffix(old, trashCopy)+trashWanted, true
			if err := t.fs.Rename(filepath.Join(t.dir, old), filepath.Join(t.dir, x.Name)); err != nil {
				return marked, fmt.Errorf("store: trash: %w", err)
			}
			t.all[i] = x
		}
		marked = append(marked, x)
	}
	if len(marked) == 0 {
		return nil, nil
	}
	if err := engine.SyncDir(t.fs, t.dir); err != nil {
		return marked, fmt.Errorf("store: trash: %w", err)
	}
	return marked, nil
}

// Remove deletes the copy x, because its rows are restored.
func (t *Trash) Remove(x Trashed) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(y Trashed) bool { return y.Name == x.Name })
	return t.remove(x)
}

// Rows passes the rows of x to fn, a page at a time, until fn fails. It checks the whole file
// first.
func (t *Trash) Rows(x Trashed, fn func([]store.Row) error) error {
	for _, give := range []bool{false, true} {
		if err := t.read(x, give, fn); err != nil {
			return err
		}
	}
	return nil
}

// read checks the file of x, and passes its rows to fn if give is set.
func (t *Trash) read(x Trashed, give bool, fn func([]store.Row) error) (err error) {
	f, err := t.fs.Open(filepath.Join(t.dir, x.Name), vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("store: trash: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &trashReader{from: bufio.NewReaderSize(f, 64<<10), sum: xxhash.New()}
	var h trashHead
	if line, lerr := r.line(); lerr != nil {
		return t.damaged(x, lerr)
	} else if err := json.Unmarshal(line, &h); err != nil || h.Magic != trashMagic || h.V != trashVersion ||
		h.Slice != x.Slice {
		return t.damaged(x, fmt.Errorf("its first line is %.100q", line))
	}
	var page []store.Row
	size := 0
	for {
		row, more, err := r.row()
		if err != nil {
			return t.damaged(x, err)
		}
		if n := len(row.Key) + len(row.Value); give && len(page) > 0 && (!more || size+n > trashPage) {
			if err := fn(page); err != nil {
				return err
			}
			page, size = nil, 0
		}
		if !more {
			return nil
		}
		if give {
			page, size = append(page, row), size+len(row.Key)+len(row.Value)
		}
	}
}

func (t *Trash) damaged(x Trashed, err error) error {
	return fmt.Errorf("store: trash: %s is damaged: %w: %w", x.Name, store.ErrDamaged, err)
}

// makeTrash creates dir and its missing parents durably.
func makeTrash(disk vfs.FS, dir string) error {
	if _, err := disk.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := makeTrash(disk, above); err != nil {
			return err
		}
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return engine.SyncDir(disk, above)
}

// trashWriter writes a file of the trash: a line of JSON, each row as the lengths and bytes of its
// key and value, a zero, and the XXH64 of all that.
type trashWriter struct {
	to        *bufio.Writer
	sum       *xxhash.Digest
	size, max int64
}

func (w *trashWriter) write(b []byte) error {
	if w.size += int64(len(b)); w.size > w.max {
		return ErrFull
	}
	_, _ = w.sum.Write(b) // never fails
	_, err := w.to.Write(b)
	return err
}

func (w *trashWriter) head(h trashHead) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return w.write(append(b, '\n'))
}

func (w *trashWriter) rows(rows []store.Row) error {
	for _, r := range rows {
		b := binary.AppendUvarint(nil, uint64(len(r.Key)))
		b = append(b, r.Key...)
		b = binary.AppendUvarint(b, uint64(len(r.Value)))
		if err := errors.Join(w.write(b), w.write(r.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (w *trashWriter) end() error {
	if err := w.write([]byte{0}); err != nil {
		return err
	}
	if _, err := w.to.Write(binary.BigEndian.AppendUint64(nil, w.sum.Sum64())); err != nil {
		return err
	}
	w.size += 8
	return w.to.Flush()
}

// trashReader reads the format of trashWriter.
type trashReader struct {
	from *bufio.Reader
	sum  *xxhash.Digest
}

// ReadByte adds the byte that it reads to the sum.
func (r *trashReader) ReadByte() (byte, error) {
	b, err := r.from.ReadByte()
	if err == nil {
		_, _ = r.sum.Write([]byte{b})
	}
	return b, err
}

func (r *trashReader) line() ([]byte, error) {
	var out []byte
	for len(out) < store.MaxHeader {
		b, err := r.ReadByte()
		if err != nil || b == '\n' {
			return out, err
		}
		out = append(out, b)
	}
	return nil, errors.New("no line at its beginning")
}

func (r *trashReader) bytes() ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil || n == 0 {
		return nil, err
	}
	if n > store.MaxLogChunkBytes {
		return nil, fmt.Errorf("a row of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.from, b); err != nil {
		return nil, err
	}
	_, _ = r.sum.Write(b)
	return b, nil
}

// row returns the next row. more is false at the end, if the sum is correct.
func (r *trashReader) row() (row store.Row, more bool, err error) {
	if row.Key, err = r.bytes(); err != nil {
		return row, false, err
	}
	if row.Key != nil {
		row.Value, err = r.bytes()
		return row, err == nil, err
	}
	want := r.sum.Sum64()
	var b [8]byte
	if _, err := io.ReadFull(r.from, b[:]); err != nil {
		return row, false, err
	}
	if binary.BigEndian.Uint64(b[:]) != want {
		return row, false, errors.New("its sum is another")
	}
	return row, false, nil
}
