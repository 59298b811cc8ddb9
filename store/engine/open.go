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

// stripes is the number of locks that slices are spread over: so many that the
// slices of one message of logs, tens to hundreds, leave nearly all others to
// the commits that go on beside it.
const stripes = 4096

// Of the tables in memory, with whose size the write-ahead log grows.
const (
	memTableMost  = 16 << 20
	memTableLeast = 512 << 10
	memTableShare = 64 // of Options.MaxBytes, an n-th
)

// Create makes a store in dir, which may exist but must not hold one: ErrExist.
// A Create that was cut short is finished by the next.
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

// Open opens the store in dir. ErrNotExist: there is none. ErrVersion: another
// program's. ErrLocked: in use. ErrCharter: o.Charter is another one. ErrDamaged: a file
// does not hold what was written to it; Mend may help.
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

// begin reads what is kept in memory, then lets callers in.
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

// DBDir leaves room beside Pebble's files for what else belongs to a store.
func DBDir(f vfs.FS, dir string) string { return f.PathJoin(dir, "pebble") }

// OpenRaw opens Pebble. With mending nothing is read but what is asked for.
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
	// Pebble makes the directories, and syncs their parents so that they outlast
	// a crash.
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
		// The log has room for a table in memory allocated ahead, and there may be three of them.
		po.MemTableSize = uint64(min(max(s.Options.MaxBytes/memTableShare, memTableLeast), memTableMost))
	}
	po.Experimental.CompactionScheduler = newCompactions()
	if s.mending { // nothing is read but what is asked for, and no filter, which may be what is damaged
		po.DisableAutomaticCompactions, po.DisableTableStats = true, true
		return po
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most Keys asked for are new: absent
		po.Levels[i].FilterType = pebble.TableFilter
	}
	return po
}

// openError says what pebble.Open's refusal means to the one who started us.
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

// openPebble is pebble.Open, where a panic of its decoders is an error like another.
func openPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return pebble.Open(dir, o)
}

// isLocked tells a lock held by another process (EAGAIN, or EACCES without a
// path, from fcntl) or by this one (Pebble's own words) from other refusals.
func isLocked(err error) bool {
	var path *fs.PathError
	if errors.As(err, &path) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "lock held by current process")
}

// format writes what makes an empty Pebble a store, as one batch.
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

// NewID gives the store another ID: who followed the one before begins anew.
func (s *Engine) NewID(b *pebble.Batch) error {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	s.id = hex.EncodeToString(id)
	return b.Set(format.MetaKey(format.MetaID), id, nil)
}

// Check reads what format wrote.
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

// Close waits for every call under way, then closes the store. Later calls
// answer ErrClosed.
func (s *Engine) Close() error {
	if !s.life.end() {
		return nil
	}
	s.News.close()
	if s.stuck.Load() {
		// All that was acknowledged is in the log; the lock file goes with the
		// process.
		return nil
	}
	if err := s.DB.Close(); err != nil && s.failed.Load() == nil {
		return fmt.Errorf("store: close %s: %w", s.Dir, err)
	}
	if s.failed.Load() != nil {
		return nil
	}
	if err := writeSums(s.Options.FS, s.Dir); err != nil { // without them the next Open knows less
		s.Options.Logger.Warn("store: the sums of its files", "err", err)
	}
	return nil
}

// Charter is the one the store was made for.
func (s *Engine) Charter() partition.Charter { return s.charter }

// ID names this store and its copies: 32 hex digits made by Create.
func (s *Engine) ID() string { return s.id }

// SliceOf is k's slice by the charter.
func (s *Engine) SliceOf(k partition.Key) partition.Slice { return s.charter.Slice(k) }

// Enter is called first by every exported method that touches Pebble; leave
// must follow when it answers nil.
func (s *Engine) Enter() error { return s.life.enter() }

func (s *Engine) Leave() { s.life.leave() }

// life counts the calls under way. Calls may nest, so it is no RWMutex: a
// nested call after Close began is refused and does not wait for itself.
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

// end refuses new calls and waits for the others; false when it was called before.
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

// Get copies the value of a row. ErrNotExist when there is none.
func (s *Engine) Get(key []byte) ([]byte, error) { return Get(s.DB, key) }

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

// pebbleLogger brings Pebble's log to ours.
type pebbleLogger struct{ s *Engine }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.s.Options.Logger.Enabled(context.Background(), slog.LevelDebug-4) {
		l.s.Options.Logger.Log(context.Background(), slog.LevelDebug-4, fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.Options.Logger.Error("store: " + fmt.Sprintf(format, args...))
}
