// Package db assembles a store of its parts: one peer's durable state in one Pebble. It has
// what needs several of them: Commit, which is one batch of all (I3), and Mend.
//
// It promises: I1 (Queue.Admit), I2's part in it (no answer before it is durable), I3 (Commit
// is one batch, here and at a follower), I4's means (the Log's SliceRows, ImportRows and
// DropSlice; ReadLog and ApplyLog). It does not decide what is crawled or who owns what:
// times and Keys are given.
//
// # Locks and syncs
//
// Calls that write take the locks of their slices (4096 stripes), read, decide,
// and make their batch visible; then they let go and wait for the disk. So two
// calls of one slice are one after the other, which is I1, yet share a sync. An
// answer that rests on a row not yet durable waits for a sync as well.
//
// # After a crash
//
// A batch is there whole or not at all. All that a call acknowledged is there,
// but for PutSite and TrimLog, which say so. Numbers, counts and outbox are read back
// from small rows, never by reading all Keys.
//
// # A full disk
//
// The last 64 MiB (a twentieth of a small disk) are left free: writes answer
// ErrFull before, and go on when there is room. If the disk is full all the
// same, the write that met it answers ErrFull and the store writes no more;
// reads go on; start again when there is room. Any other refusal of a log sync
// is fatal (Options.Fatal).
package db

import (
	"sync"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/accounts"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/queue"
	"github.com/echo-node/echo-node/store/replog"
)

// Store is one peer's durable state. Safe for concurrent use.
type Store struct {
	Archive  *archive.Archive
	Accounts *accounts.Accounts
	Queue    *queue.Queue
	Log      *replog.Log

	engine   *engine.Engine
	trimming sync.Mutex // one TrimChanges at a time
}

// Create makes a store in dir, which may exist but must not hold one: ErrExist.
// A Create that was cut short is finished by the next.
func Create(dir string, o store.Options) (*Store, error) { return assemble(engine.Create(dir, o)) }

// Open opens the store in dir. ErrNotExist: there is none. ErrVersion: another
// program's. ErrLocked: in use. ErrCharter: o.Charter is another one. ErrDamaged: a file
// does not hold what was written to it; Mend may help.
func Open(dir string, o store.Options) (*Store, error) { return assemble(engine.Open(dir, o)) }

func assemble(e *engine.Engine, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	ar := archive.New(e)
	ac := accounts.New(e, ar)
	q := queue.New(e, ar, ac)
	return &Store{Archive: ar, Accounts: ac, Queue: q, Log: replog.New(e, ar, ac, q), engine: e}, nil
}

// Close waits for every call under way, then closes the store. Later calls
// answer ErrClosed.
func (s *Store) Close() error { return s.engine.Close() }

// Charter is the one the store was made for.
func (s *Store) Charter() partition.Charter { return s.engine.Charter() }

// ID names this store and its copies: 32 hex digits made by Create.
func (s *Store) ID() string { return s.engine.ID() }

// SliceOf is k's slice by the charter.
func (s *Store) SliceOf(k partition.Key) partition.Slice { return s.engine.SliceOf(k) }

// Stats are the store's counts. Each is exact for what was visible at some
// moment during the call; DiskBytes is up to a second old. Zero after Close.
func (s *Store) Stats() store.Stats { return s.engine.Stats() }

// Damaged is the first damage that was met, nil while there is none. A Store that has
// one should be closed and mended (Mend): what it answers is right or an error, but
// compactions of the file fail again and again.
func (s *Store) Damaged() error { return s.engine.Damaged() }

// Backup makes a consistent copy of the store in dir, which must not exist, by
// hard links where the file system has them. Open opens it. The store goes on
// meanwhile; what is committed after the call may be missing.
func (s *Store) Backup(dir string) error { return s.engine.Backup(dir) }

// batch is a batch of all parts.
type batch struct {
	*queue.Batch
	s *Store
}

// write is engine.Write for this package's batches.
func (s *Store) write(sls []partition.Slice, build func(t *batch) error) error {
	return s.engine.Write(sls, func(b *engine.Batch) error { return build(&batch{s.Queue.Extend(b), s}) })
}
