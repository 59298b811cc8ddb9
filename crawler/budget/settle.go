package budget

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// Waits after a refusal that does not say for how long, in nanoseconds.
const (
	holdFirst = int64(10 * time.Second) // doubled with each refusal in a row
	holdLast  = int64(time.Hour)
)

// Settle ends a reservation with the result of the call, and learns:
//
//   - the offset of the server's clock, from Date;
//   - the state of buckets, from headers (readPolicies). A policy is matched with the
//     bucket of the class that has its limit and whose window can end at its reset.
//     Otherwise it is matched with the bucket that has its window, or with the Spoken
//     one, which gets the limit of the headers. The headers can lower what is left by
//     our count, but never raise it. A policy without a match becomes a new bucket of
//     the class: Sliding if it has a window, else Reported;
//   - waits, from Retry-After (RFC 9110 section 10.2.3) of any response. A refusal
//     without a usable one causes a wait of 10 s, doubled with each refusal in a row,
//     at most an hour. There is no such wait if the bucket that the headers describe
//     already waits for its reset. A 503 holds all classes and credentials;
//   - limits, from a refusal while there should have been room, unless its Retry-After
//     explains it, and from the headers of a later accepted call: see the package comment.
//
// Settle returns ErrTicket if the ticket was settled before, belongs to an earlier process, or was
// in flight longer than Options.Flight. Such a call is already counted, and Settle learns only
// waits.
func (b *Book) Settle(now time.Time, t Ticket, a Answer) error {
	b.tick(now)
	i := slices.IndexFunc(b.creds, func(l *ledger) bool { return l.name == t.Credential })
	if i < 0 {
		return fmt.Errorf("budget: %w: %q at %s", ErrCredential, clip(t.Credential), b.site)
	}
	l := b.creds[i]
	all, err := b.needs(l, t.Class, t.Ask)
	if err != nil {
		return err
	}
	var late error
	if !l.landed(t.ID) {
		late = fmt.Errorf("budget: %w: %d of %s", ErrTicket, t.ID, b.site)
	}
	b.address.landed(t.ID)
	if a.NotSent {
		b.finish(l, all, t, a)
		return late
	}
	sent := t.At.UnixNano()
	date, dated := b.now, false
	var reported []said
	if late == nil && !cached(a.Header) {
		date, dated = b.date(a.Header, sent)
		reported = b.match(l, t, all, readPolicies(a.Header, sent, b.now, &b.clock))
		if all, err = b.needs(l, t.Class, t.Ask); err != nil { // now including learned buckets
			return err
		}
	}
	l.calls++
	b.finish(l, all, t, a)
	if a.Status == 0 {
		return late
	}
	l.heard, b.address.heard = true, true
	took := !a.refused() && a.Status < 500
	for _, s := range reported {
		s.apply(took, b.now, &b.clock)
	}
	why := b.waits(l, t, a, date, dated, reported)
	switch {
	case a.refused():
		l.refused++
		b.surprise(all, reported, sent, why)
	case took:
		for _, n := range all {
			n.in.took(sent, b.now, &b.clock)
		}
	}
	return late
}

// landed removes a ticket from those in flight. It reports whether it was there.
func (l *ledger) landed(id uint64) bool {
	i := slices.IndexFunc(l.flying, func(c call) bool { return c.id == id })
	if i >= 0 {
		l.flying = slices.Delete(l.flying, i, i+1)
	}
	return i >= 0
}

// has returns the open amount of call id, nil if there is none. The pointer is valid until opens
// changes.
func (b *bucket) has(id uint64) *open {
	if i := slices.IndexFunc(b.opens, func(o open) bool { return o.id == id }); i >= 0 {
		return &b.opens[i]
	}
	return nil
}

// finish settles the ticket in its buckets.
func (b *Book) finish(l *ledger, all []need, t Ticket, a Answer) {
	class := l.table.class(t.Class)
	for _, n := range all {
		used := n.n
		switch u := n.in.spec.unit(); {
		case a.NotSent:
			used = 0
		case a.Status != 0 && u != Calls:
			used = class.amount(u, Ask{Items: a.Items, Paid: a.Paid})
		}
		n.in.done(t.ID, b.now, used, &b.clock)
	}
}

// date returns the server's time from the Date header, or our time and false if there is none.
func (b *Book) date(h http.Header, sent int64) (server int64, ok bool) {
	d, err := http.ParseTime(get(h, "Date"))
	if err != nil || d.Year() < 1970 || d.Year() > 2200 {
		return b.now, false
	}
	if b.clock.heard(sent, b.now, d.UnixNano()) {
		for _, l := range b.ledgers() {
			for _, k := range l.buckets {
				if k.jump(b.now, &b.clock); !b.clock.trusted() && k.spec.Kind == Aligned && k.spec.unit() == Calls {
					k.slide(b.now)
				}
			}
		}
	}
	return d.UnixNano(), true
}

// cached reports whether a response is from a cache. Its headers then describe another call.
func cached(h http.Header) bool {
	age := get(h, "Age")
	return age != "" && age != "0"
}

// said is what headers say about one of our buckets.
type said struct {
	in      *bucket
	p       policy
	overlap int64 // amount that may have reached the server after the count in the headers
}

// match finds the bucket that each policy describes, before the ticket is settled.
func (b *Book) match(l *ledger, t Ticket, all []need, ps []policy) []said {
	var reported []said
	for _, p := range ps {
		k := b.meant(all, reported, p)
		if k == nil && p.hi != 0 &&
			slices.ContainsFunc(all, func(n need) bool { return p.limit > 0 && n.in.limit == p.limit }) {
			p.lo, p.hi = 0, 0 // a known limit with an impossible reset
			k = b.meant(all, reported, p)
		}
		if k == nil {
			if k = l.learn(t.Class, p); k == nil {
				continue
			}
			k.take(t.ID, 1, t.At.UnixNano(), &b.clock)
			for _, c := range l.flying { // calls in flight count there, too
				if c.class == t.Class {
					k.take(c.id, 1, c.sent, &b.clock)
				}
			}
		}
		s := said{in: k, p: p}
		if o := k.has(t.ID); o != nil {
			s.overlap = k.out() - o.n + k.settled - o.seen
		}
		reported = append(reported, s)
	}
	return reported
}

// fits reports whether a window with p's reset can belong to b.
func (b *bucket) fits(p policy, now int64, c *clock) bool {
	return p.hi == 0 || b.spec.Kind == Reported || p.lo <= now+b.window()+b.window()/100+c.hi-c.lo
}

// meant returns the bucket of the call that p describes, nil if there is none.
func (b *Book) meant(all []need, taken []said, p policy) *bucket {
	var best *bucket
	score := int64(0)
	for _, n := range all {
		k := n.in
		counts := k.spec.unit() == Calls && k.spec.Kind != Adaptive &&
			!slices.ContainsFunc(taken, func(s said) bool { return s.in == k })
		if !counts || !k.fits(p, b.now, &b.clock) || k.spec.Kind == Reported && p.window > 0 {
			continue
		}
		s := int64(0)
		switch {
		case p.limit >= 0 && (p.limit == k.limit || p.limit == k.spec.Limit) &&
			(p.window < 0 || p.window == k.window()):
			s = 1 << 40
			if k.ends(p, b.now, &b.clock) {
				s += 1 << 39
			}
			if p.left >= 0 { // of several, the one with the nearest count
				s -= min(1<<38, abs(k.limit-p.left-(k.effective()-k.free(b.now, &b.clock))))
			}
		case p.window > 0 && p.window == k.window():
			s = 1 << 30
		case p.window < 0 && (k.spec.Spoken || k.spec.Kind == Reported):
			s = 1 << 20
		case p.window < 0 && p.hi != 0 && k.spec.Kind == Aligned && k.ends(p, b.now, &b.clock):
			s = 1 << 10
		}
		if s > score {
			best, score = k, s
		}
	}
	return best
}

func abs(a int64) int64 { return max(a, -a) }

// ends reports whether p's reset is the end of an aligned window.
func (b *bucket) ends(p policy, now int64, c *clock) bool {
	if p.hi == 0 || b.spec.Kind != Aligned {
		return false
	}
	return b.index(p.lo+c.lo) != b.index(p.hi+c.hi)
}

// learn adds a bucket that only headers describe.
func (l *ledger) learn(class string, p policy) *bucket {
	n := 0
	for _, k := range l.buckets {
		if k.class != "" {
			n++
		}
	}
	k := &bucket{spec: Spec{Name: "headers/" + class, Kind: Reported}, class: class, by: ByHeaders}
	if p.window > 0 && p.limit > 0 {
		k.spec = Spec{Name: fmt.Sprintf("headers/%d;w=%d", p.limit, p.window/int64(time.Second)), Kind: Sliding,
			Limit: p.limit, Window: Span(p.window)}
		k.limit = p.limit
	} else if p.left < 0 {
		return nil
	}
	if n >= maxLearned ||
		slices.ContainsFunc(l.buckets, func(o *bucket) bool { return o.spec.Name == k.spec.Name && o.class == class }) {
		return nil
	}
	l.buckets = append(l.buckets, k)
	return k
}

// apply applies a policy after the ticket was settled. took says that the call was accepted. Then
// the calls left in its headers override a limit that was found by a refusal.
func (s *said) apply(took bool, now int64, c *clock) {
	b, p := s.in, s.p
	if p.limit > 0 && b.spec.Kind != Reported {
		b.setLimit(p.limit, now, ByHeaders)
	}
	if b.spec.Kind == Aligned && p.hi != 0 && p.window < 0 && !b.ends(p, now, c) && p.lo > now {
		b.slide(now)
	}
	if p.left < 0 || p.hi != 0 && p.hi <= now && b.spec.Kind != Reported {
		return // no information, or about a window that has ended
	}
	if b.spec.Kind == Reported {
		s.tell(now)
		return
	}
	if b.spec.Kind == Aligned && p.hi != 0 && b.index(p.hi+c.hi)-1 < b.index(now+c.lo) {
		return
	}
	if took && p.left > b.free(now, c) {
		b.lift(now)
	}
	// The headers may or may not count the calls in flight. Only the amount that these calls do not
	// explain was used by another client.
	if free := b.free(now, c); free > p.left {
		b.use(free-p.left, now, c)
	}
}

// tell updates a bucket that only headers describe.
func (s *said) tell(now int64) {
	t, p := &s.in.reported, s.p
	sure := max(0, p.left-s.overlap)
	hi := min(p.hi, now+int64(MaxReset))
	if p.hi == 0 {
		hi = now + int64(time.Minute) // the window is unknown: look again soon
	}
	switch {
	case now >= t.hi: // a new window
		t.left = sure
	case t.left > p.left:
		t.left = sure
	default:
		t.left = max(t.left, sure)
	}
	t.lo, t.hi = max(now, min(p.lo, hi)), max(now, hi)
}

// cause is what is known about the reason of a refusal.
type cause struct {
	// Retry-After says how long the server refuses calls; the cause need not be a limit of ours
	explained bool
	// it was sent after the wait of the previous refusal, and no call was accepted in between
	again bool
}

// waits records when the server may be called again. After a refusal there is always a wait.
func (b *Book) waits(l *ledger, t Ticket, a Answer, date int64, dated bool, reported []said) (why cause) {
	overload := a.Status >= 500
	of, class := l, t.Class
	if a.Status == 503 {
		of, class = b.address, ""
	}
	i := slices.IndexFunc(of.holds, func(h hold) bool { return h.class == class })
	if !a.refused() && !overload && i >= 0 {
		of.holds[i].fails = 0
	}
	fails := int64(0)
	if i >= 0 {
		fails = of.holds[i].fails
		why.again = fails > 0 && t.At.UnixNano() >= of.holds[i].until
	}
	header := get(a.Header, "Retry-After")
	after, ok := fetch.RetryAfter(header, time.Unix(0, date))
	reason := fmt.Sprintf("the server said %d, Retry-After %s", a.Status, after)
	wait := int64(after)
	// Retry-After is a date, and the server's clock is not well known
	if ok && header[0] > '9' && !dated {
		wait += b.clock.hi
	}
	switch {
	case ok && wait > 0:
		why.explained = !why.again
	case a.refused() && !slices.ContainsFunc(reported, func(s said) bool { return s.holds(b.now, &b.clock) }),
		a.Status == 503:
		wait = min(holdFirst<<min(fails, 20), holdLast)
		reason = fmt.Sprintf("the server said %d and not for how long", a.Status)
	default:
		return why
	}
	if i < 0 {
		of.holds = append(of.holds, hold{class: class})
		i = len(of.holds) - 1
	}
	h := &of.holds[i]
	if until := b.now + wait + int64(time.Second); until > h.until {
		h.until, h.reason = until, reason
	}
	if a.refused() || overload {
		h.fails = min(h.fails+1, 30)
	}
	return why
}

// holds reports whether no call is left by the headers and the bucket waits for its reset. By our
// clock that window may already be over; then there is no wait.
func (s *said) holds(now int64, c *clock) bool {
	return s.p.left == 0 && s.p.hi > now && s.in.when(1, now, c) >= now+int64(time.Second)
}

// surprise handles a refusal that nothing predicted. It lowers the limit of the bucket that the
// headers describe, or else of the fullest one.
func (b *Book) surprise(all []need, reported []said, sent int64, why cause) {
	var fullest *bucket
	most := -1.0
	for _, n := range all {
		if n.in.spec.unit() != Calls {
			continue
		}
		if n.in.spec.Kind == Adaptive {
			n.in.refused(sent, b.now, why, &b.clock)
			return
		}
		limit := n.in.effective()
		if part := float64(limit-n.in.free(b.now, &b.clock)) / float64(max(1, limit)); part > most &&
			n.in.spec.Kind != Reported {
			fullest, most = n.in, part
		}
	}
	for _, s := range reported {
		if s.p.left == 0 {
			return // explained: another client uses the same allowance
		}
		if s.in.spec.Kind != Reported {
			fullest = s.in
		}
	}
	if fullest != nil {
		fullest.refused(sent, b.now, why, &b.clock)
	}
}
