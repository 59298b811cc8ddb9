// Package replog brings slices to other peers: by the log of a slice, as a copy, or as rows
// of a member that does not keep it. What comes from another peer is validated as if from an
// enemy, then joined to what there is, so rows may come twice, late and in any order (I6).
package replog

import (
	"sync"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/accounts"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/queue"
)

// Log reads and merges the rows of slices, and keeps their logs. Safe for concurrent use.
type Log struct {
	engine   *engine.Engine
	archive  *archive.Archive
	accounts *accounts.Accounts
	queue    *queue.Queue
	dropping sync.Mutex // one DropSlice at a time
}

// New is the logs in e, whose rows the other parts read and write.
func New(e *engine.Engine, ar *archive.Archive, ac *accounts.Accounts, q *queue.Queue) *Log {
	return &Log{engine: e, archive: ar, accounts: ac, queue: q}
}

// batch merges rows.
type batch struct {
	*queue.Batch
	s *Log
}

func (s *Log) newBatch() *batch { return &batch{s.queue.Extend(s.engine.NewBatch()), s} }

// write is engine.Write for this package's batches.
func (s *Log) write(sls []partition.Slice, build func(t *batch) error) error {
	return s.engine.Write(sls, func(b *engine.Batch) error { return build(&batch{s.queue.Extend(b), s}) })
}
