// Package queue keeps what is to be done: the state of each Key and when it is due, the
// attempts at it, the pace of each site, the links on their way to other slices, and where
// else the Keys of a unit are crawled.
package queue

import (
	"sync/atomic"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/accounts"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Queue reads and changes what is to be done. Safe for concurrent use.
type Queue struct {
	Answered *Answered // foreign Keys with a final answer

	engine   *engine.Engine
	archive  *archive.Archive
	accounts *accounts.Accounts
	fronts   fronts
	// outboxEmpty is a number up to which the outbox has no row, nor ever will.
	outboxEmpty atomic.Uint64
}

// New is the queue in e. A Key that is placed elsewhere takes what it has out of ar and ac.
func New(e *engine.Engine, ar *archive.Archive, ac *accounts.Accounts) *Queue {
	return &Queue{engine: e, archive: ar, accounts: ac, Answered: newAnswered(answeredKeys)}
}

// Batch writes states of Keys and all that a batch of accounts does.
type Batch struct {
	*accounts.Batch

	s     *Queue
	homed map[partition.Unit]uint64 // units that came to a geo slice
	paced map[format.SiteID]bool    // sites that came to a geo slice
	due   map[format.SiteID][]byte  // the first row that comes into each queue
}

// Extend is b with what writes states of Keys.
func (s *Queue) Extend(b *engine.Batch) *Batch {
	t := &Batch{Batch: s.accounts.Extend(b), s: s, due: make(map[format.SiteID][]byte)}
	b.WhenVisible(func() {
		for id, row := range t.due {
			s.fronts.came(id, row)
		}
	})
	return t
}

func (s *Queue) newBatch() *Batch { return s.Extend(s.engine.NewBatch()) }

// write is engine.Write for this package's batches.
func (s *Queue) write(sls []partition.Slice, build func(t *Batch) error) error {
	return s.engine.Write(sls, func(b *engine.Batch) error { return build(s.Extend(b)) })
}
