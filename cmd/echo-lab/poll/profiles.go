package poll

import (
	"encoding/binary"
	"time"
)

// ProfileKey is the order of a profile that was stored at stored (zero: never), to
// be put behind the name of its queue.
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

// Len is how many wait.
func (p *Profiles) Len() int { return len(p.stored) }

// Put has a profile wait: stored last at stored, zero if never. Who waits already
// is not put in twice: the time is replaced.
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

// Drop takes a profile out.
func (p *Profiles) Drop(id string) { delete(p.stored, id) }

func (p *Profiles) there(v item) bool {
	at, ok := p.stored[v.name]
	return ok && at == v.at
}

// Next takes out the n next at most, for one call; fewer if fewer wait. Put them
// back with the time they were stored, or as they were if the call failed.
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
