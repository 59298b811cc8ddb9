package fetch

import (
	"net/netip"
	"sync"
	"time"
)

// paces keeps the least gap between two requests to one IP address, whatever
// the hosts: many small sites live on one server. Who comes too early is given
// a turn and told when; turns are handed out in order of arrival. Safe for
// concurrent use.
type paces struct {
	mu    sync.Mutex
	addrs map[netip.Addr]*pace
}

// maxHold is how long a request without an answer keeps others from its
// address: it may be a slow site, and not a request still on its way.
const maxHold = time.Second

type pace struct {
	last  time.Time       // the last request was allowed, or later its answer began
	open  int             // requests allowed, their answer not begun
	tail  time.Time       // the last turn handed out
	turns map[string]turn // by host
}

// turn is a host's place in the queue of an address.
type turn struct {
	at   time.Time // its place
	told time.Time // when it was last told to come
}

// before orders turns; no two hosts have the same.
func (t turn) before(o turn) bool { return t.at.Before(o.at) }

// awaited says whether the host of t may still come: hosts behind it let it go
// first for a gap after the time it was told, and no longer, it may be gone.
func (t turn) awaited(now time.Time, gap time.Duration) bool { return now.Before(t.told.Add(gap)) }

// turn asks for host's request to a at now. A zero time allows it; else it may
// be asked for again then. Nobody is overtaken for ever: who has a turn goes
// before those with a later one, and newcomers queue behind all.
func (p *paces) turn(a netip.Addr, host string, gap time.Duration, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.addrs) >= maxAddrs {
		p.forget(now)
	}
	at := p.addrs[a]
	if at == nil {
		at = &pace{turns: map[string]turn{}}
		p.addrs[a] = at
	}
	free := at.last.Add(gap)
	if at.open > 0 && now.Sub(at.last) < maxHold+gap {
		free = later(free, now.Add(gap)) // when the one before arrives there is not known yet
	}
	mine, queued := at.turns[host]
	if queued {
		free = later(free, mine.at)
	} else {
		free = later(free, at.tail.Add(gap))
		mine.at = free
	}
	for h, t := range at.turns {
		switch {
		case now.Sub(t.told) > time.Minute: // a turn not taken for a minute is lost
			delete(at.turns, h)
		case h != host && t.before(mine) && t.awaited(now, gap):
			free = later(free, later(now, t.told).Add(gap))
		}
	}
	if !free.After(now) {
		delete(at.turns, host)
		at.last, at.tail = now, later(at.tail, now)
		at.open++
		return time.Time{}
	}
	if !queued {
		mine.at, at.tail = free, free
	}
	mine.told = free
	at.turns[host] = mine
	return free
}

// answered ends what a turn allowed: the answer began, or there will be none.
// The gap to the next request is measured from here.
func (p *paces) answered(a netip.Addr, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.addrs[a]; at != nil && at.open > 0 {
		at.open--
		at.last = later(at.last, now)
	}
}

func (p *paces) forget(now time.Time) {
	for a, at := range p.addrs {
		if at.open == 0 && now.Sub(later(at.last, at.tail)) > time.Minute {
			delete(p.addrs, a)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
