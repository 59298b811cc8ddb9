package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// stripes is the number of locks that all slices share. One message of logs locks tens to hundreds
// of slices. With this many stripes, nearly all other slices stay free for the commits that run at
// the same time.
const stripes = 4096

// Sizes of the tables in memory. The size of the write-ahead log grows with them.
const (
	memTableMost  = 16 << 20
	memTableLeast = 512 << 10
	memTableShare = 64 // a table in memory has at most this fraction of Options.MaxBytes
)

// Create makes a store in dir. The directory may exist but must not contain a store (ErrExist).
// After a crash during Create, the next Create finishes the work.
func Create(dir string, o store.Options) (*Engine, error) {
	if err := o.Charter.Validate(); err != nil {
		return nil, fmt.Errorf("store: create %s: %w", dir, err)
	}
	s, err := OpenRaw(dir, o, true, false)
	if err != nil {
		return nil, err
	}
	if _, err := s.Get(format.MetaKey(format.MetaFormat)); !errors.Is(err, store.ErrNotExist) {
		return nil, errors.Join(orWrap(err, fmt.Errorf("%w: %s", store.ErrExist, dir)), s.DB.Close())
	}
	if err := s.format(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: create %s: %w", dir, blame(s.Dir, err)), s.DB.Close())
	}
	return s.begin()
}

// Open opens the store in dir. The errors: ErrNotExist when there is no store, ErrVersion when
// another version of the program wrote it, ErrLocked when it is in use. ErrCharter means that its
// charter is not o.Charter. ErrDamaged means that a file does not contain what was written to it;
// db.Mend may repair the store.
func Open(dir string, o store.Options) (*Engine, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if _, err := o.FS.Stat(DBDir(o.FS, dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no store", store.ErrNotExist, dir)
	}
	if h, err := ReadHurt(o.FS, dir); err != nil {
		return nil, err
	} else if !h.empty() {
		return nil, h.refuse(dir)
	}
	if err := CheckSums(o.FS, dir); err != nil {
		return nil, err
	}
	s, err := OpenRaw(dir, o, false, false)
	if err != nil {
		return nil, err
	}
	if err := s.Check(o.Charter); err != nil {
		return nil, errors.Join(s.Explain(err), s.DB.Close())
	}
	return s.begin()
}

// begin reads what is kept in memory and returns the engine, which then takes calls.
func (s *Engine) begin() (*Engine, error) {
	err := s.Load()
	if err == nil {
		err = s.reserve(s.Seqs.next)
	}
	if err != nil {
		if s.Explain(err) != err { //nolint:errorlint // whether it is another one
			return nil, errors.Join(s.Explain(err), s.DB.Close())
		}
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", s.Dir, blame(s.Dir, err)), s.DB.Close())
	}
	return s, nil
}

func orWrap(err, or error) error {
	if err != nil {
		return err
	}
	return or
}

// DBDir returns the directory of Pebble's files. The other files of a store are beside it.
func DBDir(f vfs.FS, dir string) string { return f.PathJoin(dir, "pebble") }

// OpenRaw opens Pebble. With mending set, Pebble reads only what the caller asks for.
func OpenRaw(dir string, o store.Options, create, mending bool) (*Engine, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheMiB <= 0 {
		o.CacheMiB = 64
	}
	p, err := format.NewPacker()
	if err != nil {
		return nil, err
	}
	s := &Engine{Dir: dir, Options: o, mending: mending, Packer: p}
	s.space = space{fs: o.FS, dir: dir}
	s.News.init()
	s.Logs.By = make(map[partition.Slice]SliceLog)
	s.Totals.by = make(map[partition.Slice]*sliceTotal)
	s.life.idle.L = &s.life.mu
	// Pebble makes the directories and syncs their parents, so that they exist after a crash.
	cache := pebble.NewCache(int64(o.CacheMiB) << 20)
	defer cache.Unref()
	log := &logFS{FS: o.FS, dir: DBDir(o.FS, dir), failed: func() bool { return s.failed.Load() != nil },
		refused: s.refused, nowhere: vfs.NewMem()}
	if err := dropSums(o.FS, dir); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", dir, err)
	}
	db, err := openPebble(log.dir, s.pebbleOptions(log, cache, create))
	if err != nil {
		return nil, openError(dir, err)
	}
	log.armed.Store(true)
	s.DB = db
	return s, nil
}

func (s *Engine) pebbleOptions(disk vfs.FS, cache *pebble.Cache, create bool) *pebble.Options {
	po := &pebble.Options{
		FS:                         disk,
		Cache:                      cache,
		FormatMajorVersion:         pebble.FormatNewest, // the default is the oldest
		MemTableSize:               memTableMost,
		L0CompactionThreshold:      4,
		L0StopWritesThreshold:      24,
		MaxOpenFiles:               1000,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		Logger:                     pebbleLogger{s},
		ErrorIfNotExists:           !create,
		EventListener:              s.listener(),
	}
	if s.Options.MaxBytes > 0 {
		// The log needs room for a table in memory that is allocated ahead, and there may be three
		// of them.
		po.MemTableSize = uint64(min(max(s.Options.MaxBytes/memTableShare, memTableLeast), memTableMost))
	}
	po.Experimental.CompactionScheduler = newCompactions()
	if s.mending { // read only what is asked for, and no filter: it may be damaged
		po.DisableAutomaticCompactions, po.DisableTableStats = true, true
		return po
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most Keys that are looked up are new
		po.Levels[i].FilterType = pebble.TableFilter
	}
	return po
}

// openError turns an error of pebble.Open into one that says what the user can do.
func openError(dir string, err error) error {
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("%w: %s has no store", store.ErrNotExist, dir)
	case isLocked(err):
		return fmt.Errorf("%w: %s (one process at a time; is another echo-node running on it?)", store.ErrLocked, dir)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("store: open %s: %w", dir, blame(dir, err))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store: open %s: %w", dir, err)
	}
	return &store.DamageError{Dir: dir, Why: err, Final: true}
}

// openPebble calls pebble.Open and returns a panic of its decoders as an error.
func openPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return pebble.Open(dir, o)
}

// isLocked reports whether err means that the store is locked. Another process may hold the lock
// (EAGAIN, or EACCES without a path, from fcntl), or this one (Pebble's own message).
func isLocked(err error) bool {
	var path *fs.PathError
	if errors.As(err, &path) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "lock held by current process")
}

// format writes, as one batch, the rows that make an empty Pebble database a store.
func (s *Engine) format() error {
	charter, err := json.Marshal(s.Options.Charter)
	if err != nil {
		return err
	}
	s.charter = s.Options.Charter
	b := s.DB.NewBatch()
	if err := s.NewID(b); err != nil {
		return err
	}
	_ = b.Set(format.MetaKey(format.MetaFormat), binary.AppendUvarint(nil, format.FormatVersion), nil)
	_ = b.Set(format.MetaKey(format.MetaCharter), charter, nil)
	return s.Commit(b)
}

// NewID gives the store a new ID. A client that followed the change log under the old ID starts
// again.
func (s *Engine) NewID(b *pebble.Batch) error {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	s.id = hex.EncodeToString(id)
	return b.Set(format.MetaKey(format.MetaID), id, nil)
}

// Check reads and verifies what format wrote, and compares the charter with want.
func (s *Engine) Check(want partition.Charter) error {
	v, err := s.Get(format.MetaKey(format.MetaFormat))
	if errors.Is(err, store.ErrNotExist) {
		return fmt.Errorf("%w: making the store in %s was cut short: make it again", store.ErrNotExist, s.Dir)
	}
	if err != nil {
		return fmt.Errorf("store: open %s: %w", s.Dir, err)
	}
	if n, _ := binary.Uvarint(v); n != format.FormatVersion {
		return fmt.Errorf("%w: %s has format %d, this program knows %d", store.ErrVersion, s.Dir, n,
			format.FormatVersion)
	}
	if v, err = s.Get(format.MetaKey(format.MetaCharter)); err == nil {
		err = json.Unmarshal(v, &s.charter)
	}
	if err != nil {
		return fmt.Errorf("store: open %s: charter: %w", s.Dir, err)
	}
	if v, err = s.Get(format.MetaKey(format.MetaID)); err != nil {
		return fmt.Errorf("store: open %s: id: %w", s.Dir, err)
	}
	s.id = hex.EncodeToString(v)
	if want.Name != "" && want.Digest() != s.charter.Digest() {
		return fmt.Errorf("%w: %s is of swarm %q, charter %s, not of %q, charter %s", store.ErrCharter, s.Dir,
			s.charter.Name, s.charter.Digest(), want.Name, want.Digest())
	}
	return nil
}

// Close waits for all calls that run, then closes the store. Later calls return ErrClosed.
func (s *Engine) Close() error {
	if !s.life.end() {
		return nil
	}
	s.News.close()
	if s.stuck.Load() {
		// Everything acknowledged is in the log. The lock file is released when the process ends.
		return nil
	}
	if err := s.DB.Close(); err != nil && s.failed.Load() == nil {
		return fmt.Errorf("store: close %s: %w", s.Dir, err)
	}
	if s.failed.Load() != nil {
		return nil
	}
	if err := writeSums(s.Options.FS, s.Dir); err != nil { // the next Open then checks less
		s.Options.Logger.Warn("store: the sums of its files", "err", err)
	}
	return nil
}

// Charter returns the charter that the store was made for.
func (s *Engine) Charter() partition.Charter { return s.charter }

// ID returns the name of this store and its copies: 32 hex digits made by Create or NewID.
func (s *Engine) ID() string { return s.id }

// SliceOf returns the slice of k by the charter.
func (s *Engine) SliceOf(k partition.Key) partition.Slice { return s.charter.Slice(k) }

// Enter is the first call of every exported method that uses Pebble. It returns ErrClosed after
// Close. When it returns nil, the method must call Leave at its end.
func (s *Engine) Enter() error { return s.life.enter() }

// Leave ends a call that began with Enter.
func (s *Engine) Leave() { s.life.leave() }

// life counts the calls that run. It is not an RWMutex, because calls may nest: a nested call after
// Close began is refused, and so does not wait for itself.
type life struct {
	mu     sync.Mutex
	calls  int
	closed bool
	idle   sync.Cond
}

func (l *life) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	l.calls++
	return nil
}

func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls--; l.calls == 0 {
		l.idle.Broadcast()
	}
}

// end refuses new calls and waits for the others. It returns false when it was called before.
func (l *life) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.closed
	l.closed = true
	for l.calls > 0 {
		l.idle.Wait()
	}
	return first
}

// Get returns a copy of the value of a row, or ErrNotExist.
func (s *Engine) Get(key []byte) ([]byte, error) { return Get(s.DB, key) }

// Get returns a copy of the value of a row in r, or store.ErrNotExist.
func Get(r pebble.Reader, key []byte) ([]byte, error) {
	v, c, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, store.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), v...)
	return out, c.Close()
}

// pebbleLogger writes Pebble's log messages to the store's logger.
type pebbleLogger struct{ s *Engine }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.s.Options.Logger.Enabled(context.Background(), slog.LevelDebug-4) {
		l.s.Options.Logger.Log(context.Background(), slog.LevelDebug-4, fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.Options.Logger.Error("store: " + fmt.Sprintf(format, args...))
}
