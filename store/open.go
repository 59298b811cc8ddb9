package store

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
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
)

// ErrClosed is the answer of a Store after Close.
var ErrClosed = errors.New("store: closed")

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

// Store is one peer's durable state. Safe for concurrent use.
type Store struct {
	dir      string
	opts     Options
	charter  partition.Charter
	id       string
	db       *pebble.DB
	packer   *packer
	answered *answered // foreign Keys with a final answer

	life   life
	failed atomic.Pointer[failure] // the first refusal of the disk; sticky
	stuck  atomic.Bool             // Pebble called Fatalf: its own locks may be held for good

	locks    [stripes]sync.Mutex // by slice: read, decide and apply are one step (I1)
	unsynced atomic.Int64        // writes that may be visible but not yet durable
	seqs     sequencer
	changed  atomic.Uint64 // the newest entry of the change log
	// outboxEmpty is a number up to which the outbox has no row, nor ever will.
	outboxEmpty atomic.Uint64
	fronts      fronts
	totals      totals
	logs        logs
	space       space
	damages     damages
	news        news
	dropping    sync.Mutex // one DropSlice at a time
	trimming    sync.Mutex // one TrimChanges at a time
}

// Create makes a store in dir, which may exist but must not hold one: ErrExist.
// A Create that was cut short is finished by the next.
func Create(dir string, o Options) (*Store, error) {
	if err := o.Charter.Validate(); err != nil {
		return nil, fmt.Errorf("store: create %s: %w", dir, err)
	}
	s, err := open(dir, o, true)
	if err != nil {
		return nil, err
	}
	if _, err := s.get(metaKey(metaFormat)); !errors.Is(err, ErrNotExist) {
		return nil, errors.Join(orWrap(err, fmt.Errorf("%w: %s", ErrExist, dir)), s.db.Close())
	}
	if err := s.format(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: create %s: %w", dir, s.blame(err)), s.db.Close())
	}
	return s.begin()
}

// Open opens the store in dir. ErrNotExist: there is none. ErrVersion: another
// program's. ErrLocked: in use. ErrCharter: o.Charter is another one. ErrDamaged: a file
// does not hold what was written to it; Mend may help.
func Open(dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if _, err := o.FS.Stat(dbDir(o.FS, dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no store", ErrNotExist, dir)
	}
	if h, err := readHurt(o.FS, dir); err != nil {
		return nil, err
	} else if !h.empty() {
		return nil, h.refuse(dir)
	}
	if err := checkSums(o.FS, dir); err != nil {
		return nil, err
	}
	s, err := open(dir, o, false)
	if err != nil {
		return nil, err
	}
	if err := s.check(o.Charter); err != nil {
		return nil, errors.Join(s.explain(err), s.db.Close())
	}
	return s.begin()
}

// begin reads what is kept in memory, then lets callers in.
func (s *Store) begin() (*Store, error) {
	err := s.load()
	if err == nil {
		err = s.reserve(s.seqs.next)
	}
	if err != nil {
		if s.explain(err) != err { //nolint:errorlint // whether it is another one
			return nil, errors.Join(s.explain(err), s.db.Close())
		}
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", s.dir, s.blame(err)), s.db.Close())
	}
	return s, nil
}

func orWrap(err, or error) error {
	if err != nil {
		return err
	}
	return or
}

// dbDir leaves room beside Pebble's files for what else belongs to a store.
func dbDir(f vfs.FS, dir string) string { return f.PathJoin(dir, "pebble") }

func open(dir string, o Options, create bool) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheMiB <= 0 {
		o.CacheMiB = 64
	}
	p, err := newPacker()
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: o, packer: p, answered: newAnswered(answeredKeys)}
	s.space = space{fs: o.FS, dir: dir}
	s.news.init()
	s.logs.by = make(map[partition.Slice]sliceLog)
	s.totals.by = make(map[partition.Slice]*sliceTotal)
	s.life.idle.L = &s.life.mu
	// Pebble makes the directories, and syncs their parents so that they outlast
	// a crash.
	cache := pebble.NewCache(int64(o.CacheMiB) << 20)
	defer cache.Unref()
	log := &logFS{FS: o.FS, dir: dbDir(o.FS, dir), failed: func() bool { return s.failed.Load() != nil },
		refused: s.refused, nowhere: vfs.NewMem()}
	if err := dropSums(o.FS, dir); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", dir, err)
	}
	db, err := openPebble(log.dir, s.pebbleOptions(log, cache, create))
	if err != nil {
		return nil, s.openError(err)
	}
	log.armed.Store(true)
	s.db = db
	return s, nil
}

func (s *Store) pebbleOptions(disk vfs.FS, cache *pebble.Cache, create bool) *pebble.Options {
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
	if s.opts.MaxBytes > 0 {
		// The log has room for a table in memory allocated ahead, and there may be three of them.
		po.MemTableSize = uint64(min(max(s.opts.MaxBytes/memTableShare, memTableLeast), memTableMost))
	}
	po.Experimental.CompactionScheduler = newCompactions()
	if s.opts.mending { // nothing is read but what is asked for, and no filter, which may be what is damaged
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
func (s *Store) openError(err error) error {
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("%w: %s has no store", ErrNotExist, s.dir)
	case isLocked(err):
		return fmt.Errorf("%w: %s (one process at a time; is another echo-node running on it?)", ErrLocked, s.dir)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("store: open %s: %w", s.dir, s.blame(err))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store: open %s: %w", s.dir, err)
	}
	return &DamageError{Dir: s.dir, Why: err, Final: true}
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
func (s *Store) format() error {
	charter, err := json.Marshal(s.opts.Charter)
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	s.charter, s.id = s.opts.Charter, hex.EncodeToString(id)
	b := s.db.NewBatch()
	_ = b.Set(metaKey(metaFormat), binary.AppendUvarint(nil, FormatVersion), nil)
	_ = b.Set(metaKey(metaCharter), charter, nil)
	_ = b.Set(metaKey(metaID), id, nil)
	return s.commit(b)
}

// check reads what format wrote.
func (s *Store) check(want partition.Charter) error {
	v, err := s.get(metaKey(metaFormat))
	if errors.Is(err, ErrNotExist) {
		return fmt.Errorf("%w: making the store in %s was cut short: make it again", ErrNotExist, s.dir)
	}
	if err != nil {
		return fmt.Errorf("store: open %s: %w", s.dir, err)
	}
	if n, _ := binary.Uvarint(v); n != FormatVersion {
		return fmt.Errorf("%w: %s has format %d, this program knows %d", ErrVersion, s.dir, n, FormatVersion)
	}
	if v, err = s.get(metaKey(metaCharter)); err == nil {
		err = json.Unmarshal(v, &s.charter)
	}
	if err != nil {
		return fmt.Errorf("store: open %s: charter: %w", s.dir, err)
	}
	if v, err = s.get(metaKey(metaID)); err != nil {
		return fmt.Errorf("store: open %s: id: %w", s.dir, err)
	}
	s.id = hex.EncodeToString(v)
	if want.Name != "" && want.Digest() != s.charter.Digest() {
		return fmt.Errorf("%w: %s is of swarm %q, charter %s, not of %q, charter %s", ErrCharter, s.dir,
			s.charter.Name, s.charter.Digest(), want.Name, want.Digest())
	}
	return nil
}

// Close waits for every call under way, then closes the store. Later calls
// answer ErrClosed.
func (s *Store) Close() error {
	if !s.life.end() {
		return nil
	}
	s.news.close()
	if s.stuck.Load() {
		// All that was acknowledged is in the log; the lock file goes with the
		// process.
		return nil
	}
	if err := s.db.Close(); err != nil && s.failed.Load() == nil {
		return fmt.Errorf("store: close %s: %w", s.dir, err)
	}
	if s.failed.Load() != nil {
		return nil
	}
	if err := writeSums(s.opts.FS, s.dir); err != nil { // without them the next Open knows less
		s.opts.Logger.Warn("store: the sums of its files", "err", err)
	}
	return nil
}

// Charter is the one the store was made for.
func (s *Store) Charter() partition.Charter { return s.charter }

// ID names this store and its copies: 32 hex digits made by Create.
func (s *Store) ID() string { return s.id }

// SliceOf is k's slice by the charter.
func (s *Store) SliceOf(k partition.Key) partition.Slice { return s.charter.Slice(k) }

// enter is called first by every exported method that touches Pebble; leave
// must follow when it answers nil.
func (s *Store) enter() error { return s.life.enter() }

func (s *Store) leave() { s.life.leave() }

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
		return ErrClosed
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

// get copies the value of a row. ErrNotExist when there is none.
func (s *Store) get(key []byte) ([]byte, error) { return get(s.db, key) }

func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, c, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), v...)
	return out, c.Close()
}

// pebbleLogger brings Pebble's log to ours.
type pebbleLogger struct{ s *Store }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.s.opts.Logger.Enabled(context.Background(), slog.LevelDebug-4) {
		l.s.opts.Logger.Log(context.Background(), slog.LevelDebug-4, fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.opts.Logger.Error("store: " + fmt.Sprintf(format, args...))
}
