package fetch

import (
	"net/netip"
	"sync"
	"time"
)

// Share is the pace of an address among all peers that ask it. Its functions
// must not block, and are safe for concurrent use.
type Share struct {
	// Ask says whether this peer may ask a, whose least gap is gap, at now; if so
	// it counts as asked until Done. It is called when the pace of this peer allows
	// a request.
	Ask func(a netip.Addr, gap time.Duration, now time.Time) Leave
	// Done says what came of it.
	Done func(a netip.Addr, v Visit, now time.Time)
}

// Leave is when an address may be asked: again from From on, or, when that is
// zero, now, the request sent by Until (zero = at any time), and the next one Gap
// after the answer.
type Leave struct {
	From, Until time.Time
	Gap         time.Duration
}

// Visit is what a request met at an address.
type Visit struct {
	Slow    time.Duration // what the answer took
	Slowed  bool          // it was 429 or 503
	After   time.Duration // its Retry-After
	Waiting bool          // further hosts of the address wait for their turn here
}

// paces keeps the least gap between two requests to one IP address, whatever
// the hosts: many small sites live on one server. Who comes too early is given
// a turn and told when; turns are handed out in order of arrival. Safe for
// concurrent use.
type paces struct {
	share *Share // nil = this peer alone asks

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
	gap   time.Duration   // that Share said last
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

// turn asks for host's request to a at now. A zero time allows it, to be sent by
// until; else it may be asked for again then. Nobody is overtaken for ever: who
// has a turn goes before those with a later one, and newcomers queue behind all.
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

// answered ends what a turn allowed: the answer began, or there will be none.
// The gap to the next request is measured from here.
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

func (p *paces) forget(now time.Time) {
	for a, at := range p.addrs {
		if at.open == 0 && now.Sub(later(at.last, at.tail)) > time.Minute {
			delete(p.addrs, a)
		}
	}
}

// Before is by both clocks: one of them runs while a machine is suspended.
func Before(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
