package lease

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

const (
	// the first wait after the giver was not reached; it doubles each time
	retryLeast = 200 * time.Millisecond
	retryMost  = 5 * time.Second
	lateness   = 5 * time.Second // how long the taker waits for a site that was told to come
	leastTurn  = time.Millisecond
	leastIdle  = 50 * time.Millisecond
	// bounds of the round trip time that the taker assumes for sites
	leastTrip = 10 * time.Millisecond
	mostTrip  = 500 * time.Millisecond
)

// TakerOptions are the options of NewTaker. Number draws the numbers of host leases, never 0.
type TakerOptions struct {
	MaxAddrs int // default MaxAddrs
	Number   func() uint64
}

// Taker takes the host leases that a peer needs. It sends no requests itself: Due returns the
// requests to send, and Answered or Failed reports the result. There is one request about an
// address at a time. A Taker is not safe for concurrent use.
type Taker struct {
	o     TakerOptions
	addrs map[netip.Addr]*want
	todo  map[netip.Addr]*want // addresses that may need a request
	trip  time.Duration        // the round trip time of a request
	swept time.Time
	stats TakerStats
}

// TakerStats are the statistics of a Taker. Counts are since NewTaker.
type TakerStats struct {
	Held, Waiting int   // addresses with a host lease; wanted addresses without one
	Blocked       int   // waiting addresses with another reason than other peers' host leases
	Asked         int64 // requests
	Full          int64 // addresses that were refused because of MaxAddrs
	Failed        int64 // requests without a response
}

// want is one address as its visitor sees it.
type want struct {
	base, gap time.Duration
	// The host lease: held once the giver gave it, usable between from and until.
	id          uint64 // also the id of a lease that is requested; 0 = none
	held        bool
	from, until time.Time
	term        time.Duration // from the lease's beginning, or since it was extended
	shared      bool
	renew       bool      // the lease is used, and half of it is over
	begun       int       // requests in this lease
	open        int       // requests without a response, in this lease or not
	last        time.Time // when a request began, or its response
	// The previous host lease, which the taker must report to the giver.
	back   uint64
	unused bool

	flying bool      // a request to the giver is under way
	next   time.Time // no request before this time
	demand time.Time // until then some site is expected to come
	fails  int       // failures in a row
	why    string    // why there is no host lease, "" = the taker is waiting for it
	whyAt  time.Time // since when
}

// NewTaker returns a Taker that knows no address.
func NewTaker(o TakerOptions) *Taker {
	if o.MaxAddrs == 0 {
		o.MaxAddrs = MaxAddrs
	}
	return &Taker{o: o, addrs: map[netip.Addr]*want{}, todo: map[netip.Addr]*want{}, trip: 20 * time.Millisecond}
}

// Ask reports whether the peer may send a request to a at now. The smallest gap of a is base. A
// request that is allowed counts as open until Done.
func (t *Taker) Ask(a netip.Addr, base time.Duration, now time.Time) fetch.Leave {
	w := t.addrs[a]
	if w == nil {
		if len(t.addrs) >= t.o.MaxAddrs {
			t.sweep(now)
		}
		if len(t.addrs) >= t.o.MaxAddrs {
			t.stats.Full++
			return fetch.Leave{From: now.Add(time.Second), Gap: base}
		}
		w = &want{}
		t.addrs[a] = w
	}
	w.base, w.gap = base, min(max(w.gap, base), max(base, MaxGap))
	w.roll(now)
	if w.held && !now.Before(w.from) {
		if free := w.last.Add(w.gap); free.After(now) {
			return fetch.Leave{From: free, Gap: w.gap}
		}
		w.begun++
		w.open++
		w.last, w.why = now, ""
		if !w.shared && w.until.Sub(now) < w.term/2 {
			w.renew, t.todo[a] = true, w
		}
		return fetch.Leave{Until: w.until, Gap: w.gap}
	}
	from := w.from
	if !w.held {
		from = later(w.next, now).Add(t.trip)
	}
	w.demand = later(w.demand, from.Add(lateness))
	t.todo[a] = w
	return fetch.Leave{From: from, Gap: w.gap}
}

// Done ends a request that Ask allowed.
func (t *Taker) Done(a netip.Addr, v fetch.Visit, now time.Time) {
	w := t.addrs[a]
	if w == nil || w.open == 0 {
		return
	}
	w.open--
	w.last = later(w.last, now)
	w.gap = max(w.base, v.Slow, w.gap/2)
	if v.Slowed {
		w.gap = max(2*w.gap, v.After)
		if w.gap < 2*w.base {
			w.gap = 2 * w.base
		}
	}
	w.gap = min(w.gap, max(w.base, MaxGap))
	w.roll(now)
	if w.held && w.shared && w.open == 0 && (!v.Waiting || !fetch.Before(now.Add(w.gap), w.until)) {
		w.end()
	}
	if w.back != 0 {
		t.todo[a] = w
	}
}

// roll ends a host lease whose time is over.
func (w *want) roll(now time.Time) {
	if w.held && !fetch.Before(now, w.until) {
		w.end()
	}
}

func (w *want) end() {
	w.back, w.unused = w.id, w.begun == 0
	w.id, w.held, w.renew, w.begun = 0, false, false, 0
}

// Due returns the requests to send at now for which may returns true. again is when to call Due
// next; zero means after the next change. The caller follows each request by Answered or
// Failed.
func (t *Taker) Due(now time.Time, may func(netip.Addr) bool) (asks []Ask, again time.Time) {
	for a, w := range t.todo {
		if !may(a) {
			continue
		}
		ask, at := w.due(a, now, t.o.Number)
		switch {
		case ask != nil:
			w.flying = true
			t.stats.Asked++
			asks = append(asks, *ask)
		case at.IsZero():
			if !w.flying {
				delete(t.todo, a)
			}
		case again.IsZero() || at.Before(again):
			again = at
		}
	}
	return asks, again
}

// Pending reports whether there may be a request about a.
func (t *Taker) Pending(a netip.Addr) bool { return t.todo[a] != nil }

// DueAt is Due for one address. It returns nil when there is no request.
func (t *Taker) DueAt(a netip.Addr, now time.Time) *Ask {
	w := t.todo[a]
	if w == nil {
		return nil
	}
	ask, _ := w.due(a, now, t.o.Number)
	if ask != nil {
		w.flying = true
		t.stats.Asked++
	}
	return ask
}

// due returns the request about w to send at now, or when there may be one. A zero time means
// not before the next change.
func (w *want) due(a netip.Addr, now time.Time, number func() uint64) (*Ask, time.Time) {
	if w.flying {
		return nil, time.Time{}
	}
	w.roll(now)
	// A site that waits for the gap comes just after it.
	idle := later(w.from, w.last).Add(w.gap + max(w.gap/4, leastIdle))
	if w.held && w.shared && w.open == 0 && !now.Before(idle) {
		w.end() // no site has come for the lease
	}
	wants := !w.held && now.Before(w.demand) || w.held && w.renew
	returns := w.back != 0 && w.open == 0 && w.shared
	if !wants && !returns {
		if w.held && w.shared {
			return nil, idle
		}
		return nil, time.Time{}
	}
	if now.Before(w.next) {
		return nil, w.next
	}
	ask := &Ask{Addr: a, Gap: w.base, Pace: w.gap, Want: wants}
	if wants && w.id == 0 {
		w.id = number()
	}
	ask.Turn = w.id
	if w.back != 0 && w.open == 0 {
		ask.Back, ask.Unused, ask.Quiet = w.back, w.unused, now.Sub(w.last)
	}
	return ask, time.Time{}
}

// Answered processes the response to ask, with the times of sending and receiving.
func (t *Taker) Answered(ask Ask, ans Answer, sent, received time.Time) {
	w := t.addrs[ask.Addr]
	if w == nil {
		return
	}
	w.flying, w.fails = false, 0
	t.todo[ask.Addr] = w
	if took := received.Sub(sent); took >= time.Millisecond { // else this peer asked itself
		t.trip = min(max((7*t.trip+took)/8, leastTrip), mostTrip)
	}
	if ask.Back != 0 && w.back == ask.Back {
		w.back = 0
	}
	w.gap = min(max(w.gap, ans.Gap), max(w.base, MaxGap))
	if !ask.Want {
		return
	}
	wait := min(max(ans.Wait, 0), retryMost)
	if !ans.Given || w.id != ask.Turn {
		w.next, w.renew = received.Add(max(wait, leastPoll)), false
		w.say(overWords(ans.Over), received)
		return
	}
	w.say("", received)
	if w.shared = ans.Shared; !w.held {
		w.from = received.Add(wait)
	}
	w.until = sent.Add(min(ans.Term, Longest))
	w.held, w.renew, w.term = true, false, w.until.Sub(later(w.from, received))
	if w.until.Sub(w.from) < leastTurn { // the response took too long
		w.end()
		w.shared = true // the lease must be given back
	}
}

// Failed records that ask got no response, and why. The Taker asks again after a delay of at
// least after, but not more than retryMost.
func (t *Taker) Failed(ask Ask, why string, after time.Duration, now time.Time) {
	w := t.addrs[ask.Addr]
	if w == nil {
		return
	}
	w.flying = false
	t.stats.Failed++
	t.todo[ask.Addr] = w
	wait := min(max(retryLeast<<min(w.fails, 6), after), retryMost)
	w.fails++
	w.next = now.Add(wait)
	w.say(why, now)
}

func (w *want) say(why string, now time.Time) {
	if w.why == "" && why != "" {
		w.whyAt = now
	}
	w.why = why
}

func overWords(limit string) string {
	if limit == "" {
		return ""
	}
	return "its owner is over a limit: " + limit
}

// Blocked is an address that sites wait for. Its host lease is refused for another reason than
// the host lease of another peer.
type Blocked struct {
	Addr  netip.Addr
	Why   string
	Since time.Time
}

// Blocked returns at most n such addresses, in the order of their text.
func (t *Taker) Blocked(n int, now time.Time) []Blocked {
	var out []Blocked
	for a, w := range t.todo {
		if w.why != "" && !w.held && now.Before(w.demand) {
			out = append(out, Blocked{a, w.why, w.whyAt})
		}
	}
	slices.SortFunc(out, func(a, b Blocked) int { return strings.Compare(a.Addr.String(), b.Addr.String()) })
	return out[:min(n, len(out))]
}

// Stats returns a snapshot.
func (t *Taker) Stats(now time.Time) TakerStats {
	s := t.stats
	for _, w := range t.addrs {
		switch {
		case w.held && fetch.Before(now, w.until):
			s.Held++
		case now.Before(w.demand):
			if s.Waiting++; w.why != "" {
				s.Blocked++
			}
		}
	}
	return s
}

// sweep forgets addresses that no site has wanted for a while. It works at most once a second.
func (t *Taker) sweep(now time.Time) {
	if now.Sub(t.swept) < time.Second {
		return
	}
	t.swept = now
	for a, w := range t.addrs {
		if w.roll(now); !w.held && !w.flying && w.open == 0 && now.Sub(later(w.last, w.demand)) > keepIdle {
			delete(t.addrs, a)
			delete(t.todo, a)
		}
	}
}
