// Package queue stores the work to do: the state of each Key, when it is due, and the attempts at
// it. It stores the pace of each site, and the links that wait to be sent to other slices. It also
// stores in which other slices the Keys of a unit are crawled.
package queue

import (
	"sync/atomic"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/accounts"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Queue reads and changes the work to do. It is safe for concurrent use.
type Queue struct {
	Answered *Answered // foreign Keys with a final answer

	engine   *engine.Engine
	archive  *archive.Archive
	accounts *accounts.Accounts
	fronts   fronts
	// outboxEmpty is a number: at or below it, the outbox has no row and never gets one.
	outboxEmpty atomic.Uint64
}

// New returns the queue in e. When a Key is placed elsewhere, its captures are deleted from ar and
// its items from ac.
func New(e *engine.Engine, ar *archive.Archive, ac *accounts.Accounts) *Queue {
	return &Queue{engine: e, archive: ar, accounts: ac, Answered: newAnswered(answeredKeys)}
}

// Batch writes states of Keys, in addition to what a batch of accounts writes.
type Batch struct {
	*accounts.Batch

	s     *Queue
	homed map[partition.Unit]uint64 // units that came to a geo slice
	paced map[format.SiteID]bool    // sites that came to a geo slice
	due   map[format.SiteID][]byte  // the first row that comes into each queue
}

// Extend returns a Batch that adds its rows to b.
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

// write is engine.Write with batches of this package.
func (s *Queue) write(sls []partition.Slice, build func(t *Batch) error) error {
	return s.engine.Write(sls, func(b *engine.Batch) error { return build(s.Extend(b)) })
}
