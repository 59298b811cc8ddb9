// Package db builds a store from its parts: one peer's durable state in one Pebble database. It
// contains what needs several parts: Commit, which is one batch of all parts (I3), and Mend.
//
// The store guarantees I1 (Queue.Admit) and its part of I2: no answer before it is durable. It
// guarantees I3: Commit is one batch, here and at a follower. For I4, it has SliceRows, ImportRows,
// DropSlice, ReadLog and ApplyLog of the Log. It does not decide what is crawled or who owns what:
// callers give times and Keys.
//
// # Locks and syncs
//
// A call that writes locks its slices (4096 stripes), reads, decides, and makes its batch visible.
// Then it unlocks and waits for the disk. So two calls of one slice follow each other, which is I1,
// but can share a sync. An answer that depends on a row that is not yet durable waits for a sync as
// well.
//
// # After a crash
//
// Each batch is there completely or not at all. Everything that a call acknowledged is there. The
// exceptions are PutSite and TrimLog; their comments say so. Sequence numbers, counts and the
// outbox are read from small rows, never by reading all Keys.
//
// # A full disk
//
// The store keeps the last 64 MiB of the disk free (a twentieth of a small disk). Before that
// limit, writes return ErrFull, and work again when there is space. If the disk becomes full all
// the same, the write that failed returns ErrFull and the store writes no more. Reads still work.
// Restart the store when there is space. Any other error of a log sync is fatal (Options.Fatal).
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

// Store is one peer's durable state. It is safe for concurrent use.
type Store struct {
	Archive  *archive.Archive
	Accounts *accounts.Accounts
	Queue    *queue.Queue
	Log      *replog.Log

	engine   *engine.Engine
	trimming sync.Mutex // one TrimChanges at a time
}

// Create makes a store in dir. The directory may exist but must not contain a store (ErrExist).
// After a crash during Create, the next Create finishes the work.
func Create(dir string, o store.Options) (*Store, error) { return assemble(engine.Create(dir, o)) }

// Open opens the store in dir. The errors: ErrNotExist when there is no store, ErrVersion when
// another version of the program wrote it, ErrLocked when it is in use. ErrCharter means that its
// charter is not o.Charter. ErrDamaged means that a file does not contain what was written to it;
// Mend may repair the store.
func Open(dir string, o store.Options) (*Store, error) { return assemble(engine.Open(dir, o)) }

// assemble makes a Store of all parts in e.
func assemble(e *engine.Engine, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	ar := archive.New(e)
	ac := accounts.New(e, ar)
	q := queue.New(e, ar, ac)
	return &Store{Archive: ar, Accounts: ac, Queue: q, Log: replog.New(e, ar, ac, q), engine: e}, nil
}

// Close waits for all calls that run, then closes the store. Later calls return ErrClosed.
func (s *Store) Close() error { return s.engine.Close() }

// Charter returns the charter that the store was made for.
func (s *Store) Charter() partition.Charter { return s.engine.Charter() }

// ID returns the name of this store and its copies: 32 hex digits made by Create or Mend.
func (s *Store) ID() string { return s.engine.ID() }

// SliceOf returns the slice of k by the charter.
func (s *Store) SliceOf(k partition.Key) partition.Slice { return s.engine.SliceOf(k) }

// Stats returns the counts of the store. They are exact for what was visible at some moment during
// the call. DiskBytes is up to a second old. After Close, all are zero.
func (s *Store) Stats() store.Stats { return s.engine.Stats() }

// Damaged returns the first damage that was found, or nil. The caller should then close the store
// and mend it (Mend). Every answer of a damaged store is right or an error, but compactions of the
// damaged file fail again and again.
func (s *Store) Damaged() error { return s.engine.Damaged() }

// Backup makes a consistent copy of the store in dir, which must not exist. It uses hard links
// where the file system has them. Open opens the copy. The store keeps working during the call;
// what is committed after the call began may be missing.
func (s *Store) Backup(dir string) error { return s.engine.Backup(dir) }

// batch is a batch of all parts.
type batch struct {
	*queue.Batch
	s *Store
}

// write is engine.Write with batches of this package.
func (s *Store) write(sls []partition.Slice, build func(t *batch) error) error {
	return s.engine.Write(sls, func(b *engine.Batch) error { return build(&batch{s.Queue.Extend(b), s}) })
}
