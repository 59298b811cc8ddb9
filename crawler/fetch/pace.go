package fetch

import (
	"net/netip"
	"sync"
	"time"
)

// Share is the pace of an address among all peers that send requests to it. Its functions must not
// block, and must be safe for concurrent use.
type Share struct {
	// Ask reports whether this peer may send a request to a at now; gap is the least gap of a. If
	// Ask allows it, the request counts as open until Done. Ask is called only when the pace of
	// this peer allows a request.
	Ask func(a netip.Addr, gap time.Duration, now time.Time) Leave
	// Done reports the result of the request.
	Done func(a netip.Addr, v Visit, now time.Time)
}

// Leave says when an address allows a request. If From is zero, the peer may send one now, and must
// send it by Until (zero = no limit). Otherwise it may ask again from From on. Gap is the least
// time between a response and the next request.
type Leave struct {
	From, Until time.Time
	Gap         time.Duration
}

// Visit is what a request learned about the pace of an address.
type Visit struct {
	Slow    time.Duration // the time until the response began
	Slowed  bool          // the status was 429 or 503
	After   time.Duration // the Retry-After of the response
	Waiting bool          // this peer has more hosts waiting for the address
}

// paces keeps the least gap between two requests to one IP address, across all hosts, because many
// small sites share one server. A host that comes too early gets a turn and a time to come again.
// Turns are given in order of arrival. paces is safe for concurrent use.
type paces struct {
	share *Share // nil = only this peer sends requests

	mu    sync.Mutex
	addrs map[netip.Addr]*pace
}

// maxHold is how long, beyond the gap, a request without a response blocks its address. The site
// may be slow, or the request may still be on its way.
const maxHold = time.Second

// pace is the state of one address.
type pace struct {
	last  time.Time       // when the last request was allowed, or later, when its response began
	open  int             // requests that are allowed but have no response yet
	tail  time.Time       // the time of the last turn that was given
	gap   time.Duration   // the gap that Share returned last
	turns map[string]turn // by host
}

// turn is the place of a host in the queue of an address.
type turn struct {
	at   time.Time // the planned time of its request
	told time.Time // the time at which the host was told to come again
}

// before orders turns. No two hosts have the same one.
func (t turn) before(o turn) bool { return t.at.Before(o.at) }

// awaited reports whether the host of t may still come. Hosts behind it let it go first until one
// gap after told. After that it may be gone.
func (t turn) awaited(now time.Time, gap time.Duration) bool { return now.Before(t.told.Add(gap)) }

// turn asks for a request of host to address a at now. If again is zero, the request is allowed and
// must be sent by until. Otherwise host may ask again at that time. No host waits for ever: an
// earlier turn goes before a later one, and new hosts queue behind all others.
func (p *paces) turn(a netip.Addr, host string, least time.Duration, now time.Time) (again, until time.Time) {
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
	gap := max(least, at.gap)
	free := at.last.Add(gap)
	if at.open > 0 && now.Sub(at.last) < maxHold+gap {
		free = later(free, now.Add(gap)) // the arrival time of the open request is not known yet
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
		case now.Sub(t.told) > time.Minute: // a turn that is not used within a minute is dropped
			delete(at.turns, h)
		case h != host && t.before(mine) && t.awaited(now, gap):
			free = later(free, later(now, t.told).Add(gap))
		}
	}
	if !free.After(now) && p.share != nil {
		l := p.share.Ask(a, least, now)
		at.gap, until = l.Gap, l.Until
		free = later(free, l.From)
	}
	if !free.After(now) {
		delete(at.turns, host)
		at.last, at.tail = now, later(at.tail, now)
		at.open++
		return time.Time{}, until
	}
	if !queued {
		mine.at, at.tail = free, free
	}
	mine.told = free
	at.turns[host] = mine
	return free, time.Time{}
}

// answered ends one allowed request: its response began, or none will come. The gap to the next
// request is measured from here.
func (p *paces) answered(a netip.Addr, v Visit, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.addrs[a]
	if at == nil || at.open == 0 {
		return
	}
	at.open--
	at.last = later(at.last, now)
	if v.Waiting = len(at.turns) > 0; p.share != nil {
		p.share.Done(a, v, now)
	}
}

// forget drops addresses that had no request or turn for a minute. The caller holds p.mu.
func (p *paces) forget(now time.Time) {
	for a, at := range p.addrs {
		if at.open == 0 && now.Sub(later(at.last, at.tail)) > time.Minute {
			delete(p.addrs, a)
		}
	}
}

// Before reports whether now is before until by the monotonic and by the wall clock. Only one of
// them runs while a machine is suspended.
func Before(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
