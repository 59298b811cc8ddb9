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
	last  time.Time            // the last request was allowed, or later its answer began
	open  int                  // requests allowed, their answer not begun
	tail  time.Time            // the last turn handed out
	turns map[string]time.Time // by host
}

// turn asks for host's request to a at now. A zero time allows it; else it may
// be asked for again then.
func (p *paces) turn(a netip.Addr, host string, gap time.Duration, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.addrs) >= maxAddrs {
		p.forget(now)
	}
	at := p.addrs[a]
	if at == nil {
		at = &pace{turns: map[string]time.Time{}}
		p.addrs[a] = at
	}
	free := at.last.Add(gap)
	if at.open > 0 && now.Sub(at.last) < maxHold+gap {
		free = later(free, now.Add(gap)) // when the one before arrives there is not known yet
	}
	if mine, ok := at.turns[host]; ok {
		if free = later(free, mine); !free.After(now) {
			delete(at.turns, host)
			at.last = now
			at.open++
			return time.Time{}
		}
		return free
	}
	free = later(free, at.tail.Add(gap))
	if !free.After(now) {
		at.last, at.tail = now, now
		at.open++
		return time.Time{}
	}
	for h, t := range at.turns { // a turn not taken for a minute is lost
		if now.Sub(t) > time.Minute {
			delete(at.turns, h)
		}
	}
	at.turns[host], at.tail = free, free
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
