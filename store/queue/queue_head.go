package queue

import (
	"bytes"
	"sync"

	"github.com/echo-node/echo-node/store/format"
)

// maxFronts is how many queues' fronts are remembered; of others the next read finds it.
const maxFronts = 1 << 14

// fronts remember for the sites whose queues were read where their first row is, or was. Rows are taken from a queue's
// front and come back behind it, so that before the first row lie those that were deleted since Pebble merged its
// tables last, thousands of them, and each reading would step over them all. Safe for concurrent use. The zero value is
// empty.
type fronts struct {
	mu     sync.Mutex
	by     map[format.SiteID]*queueHead
	serial uint64
}

// queueHead says that no row of a queue is before key, but for rows of writes that are under way.
type queueHead struct {
	key    []byte
	change uint64 // another after each row that came
}

// get is where to begin to read the queue of id, whose rows are from lower on, and what set is to be told.
func (f *fronts) get(id format.SiteID, lower []byte) (from []byte, change uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.by[id]
	if at == nil {
		if f.by == nil || len(f.by) >= maxFronts {
			f.by = map[format.SiteID]*queueHead{}
		}
		f.serial++
		at = &queueHead{key: lower, change: f.serial}
		f.by[id] = at
	}
	return at.key, at.change
}

// set notes the first row that was found from where get said, unless a row has come meanwhile: the reader need not have
// seen it.
func (f *fronts) set(id format.SiteID, first []byte, change uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.by[id]; at != nil && at.change == change {
		at.key = bytes.Clone(first)
	}
}

// came is told of rows once readers can see them, and before the write that brought them is answered.
func (f *fronts) came(id format.SiteID, row []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.by[id]
	if at == nil {
		return
	}
	f.serial++
	at.change = f.serial
	if bytes.Compare(row, at.key) < 0 {
		at.key = row
	}
}
