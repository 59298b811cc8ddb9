// Package replog copies slices to other peers: by the log of a slice, as a whole copy, or as rows
// of a member that is not a replica. Rows of another peer are validated as if an enemy had sent
// them, then joined to the rows here. So rows may come twice, late and in any order (I6).
package replog

import (
	"sync"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/accounts"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/queue"
)

// Log reads and merges the rows of slices, and keeps their logs. It is safe for concurrent use.
type Log struct {
	engine   *engine.Engine
	archive  *archive.Archive
	accounts *accounts.Accounts
	queue    *queue.Queue
	dropping sync.Mutex // one DropSlice at a time
}

// New returns the logs in e. The other parts read and write the rows.
func New(e *engine.Engine, ar *archive.Archive, ac *accounts.Accounts, q *queue.Queue) *Log {
	return &Log{engine: e, archive: ar, accounts: ac, queue: q}
}

// batch merges rows.
type batch struct {
	*queue.Batch
	s *Log
}

func (s *Log) newBatch() *batch { return &batch{s.queue.Extend(s.engine.NewBatch()), s} }

// write is engine.Write with batches of this package.
func (s *Log) write(sls []partition.Slice, build func(t *batch) error) error {
	return s.engine.Write(sls, func(b *engine.Batch) error { return build(&batch{s.queue.Extend(b), s}) })
}
