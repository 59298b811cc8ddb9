package queue

import (
	"bytes"
	"sync"

	"github.com/echo-node/echo-node/store/format"
)

// maxFronts is the number of queues whose first row is remembered. In other queues, the next read
// finds it.
const maxFronts = 1 << 14

// fronts remembers, for each site whose queue was read, where its first row is or was. Rows are
// taken from the front of a queue and come back further behind. So before the first row there can
// be thousands of rows that were deleted since Pebble last merged its tables. Each read would step
// over all of them. fronts is safe for concurrent use. The zero value is empty.
type fronts struct {
	mu     sync.Mutex
	by     map[format.SiteID]*queueHead
	serial uint64
}

// queueHead says that no row of a queue is before key, except rows of writes in progress.
type queueHead struct {
	key    []byte
	change uint64 // changes with each new row
}

// get returns where to start reading the queue of id, whose rows start at lower, and the change to
// pass to set.
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

// set records the first row that was found from the position that get returned. It does nothing
// when a row has come meanwhile, because the reader may not have seen it.
func (f *fronts) set(id format.SiteID, first []byte, change uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.by[id]; at != nil && at.change == change {
		at.key = bytes.Clone(first)
	}
}

// came records a new row. It is called when readers can see the row, before the write that made it
// returns.
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
