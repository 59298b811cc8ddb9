package poll

import (
	"encoding/binary"
	"time"
)

// ProfileKey returns the order of a profile that was stored at stored (zero: never). It is
// appended to the name of its queue.
func ProfileKey(stored time.Time, id string) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(id)), uint64(nanos(stored)))
	return append(b, id...)
}

// Profiles is the queue of profiles in memory: unseen first, then the oldest stored, ties by
// id. It is not safe for concurrent use. The zero value is empty.
type Profiles struct {
	stored map[string]int64
	order  heap
}

// Len returns how many wait.
func (p *Profiles) Len() int { return len(p.stored) }

// Put makes a profile wait. It was last stored at stored, zero if never. A profile that waits
// already is not added twice: its time is replaced.
func (p *Profiles) Put(id string, stored time.Time) {
	if p.stored == nil {
		p.stored = map[string]int64{}
	}
	n := nanos(stored)
	if old, waits := p.stored[id]; waits && old == n {
		return
	}
	p.stored[id] = n
	p.order.push(item{n, id})
	p.order.rebuild(len(p.stored), p.there)
}

// Drop removes a profile.
func (p *Profiles) Drop(id string) { delete(p.stored, id) }

func (p *Profiles) there(v item) bool {
	at, ok := p.stored[v.name]
	return ok && at == v.at
}

// Next takes out at most n profiles for one call, fewer if fewer wait. The caller puts them
// back with the time at which they were stored, or unchanged if the call failed.
func (p *Profiles) Next(n int) (ids []string) {
	for len(ids) < n {
		v, ok := p.order.first(p.there)
		if !ok {
			break
		}
		p.order.pop()
		delete(p.stored, v.name)
		ids = append(ids, v.name)
	}
	return ids
}
