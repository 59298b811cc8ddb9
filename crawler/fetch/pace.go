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

type pace struct {
	last  time.Time            // the last request was allowed
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
	if mine, ok := at.turns[host]; ok {
		if free = later(free, mine); !free.After(now) {
			delete(at.turns, host)
			at.last = now
			return time.Time{}
		}
		return free
	}
	free = later(free, at.tail.Add(gap))
	if !free.After(now) {
		at.last, at.tail = now, now
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

func (p *paces) forget(now time.Time) {
	for a, at := range p.addrs {
		if now.Sub(later(at.last, at.tail)) > time.Minute {
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
