package budget

import (
	"slices"
	"time"
)

// far is later than all other times, and small enough for additions.
const far = int64(1) << 61

// bucket is one limit and its use so far. Times are Unix nanoseconds of our clock.
type bucket struct {
	spec    Spec
	limit   int64   // in force
	by      Origin  // source of the limit
	class   string  // of a learned bucket: the class that it belongs to
	opens   []open  // reserved, not settled
	last    int64   // the latest reservation
	settled int64   // amounts settled so far
	wins    []count // Aligned, ascending
	log     []spent // Sliding, ascending by at
	// Tokens: when the bucket is full again (the algorithm's theoretical arrival time)
	tat      int64
	reported reported // Reported
	pace     pace     // Adaptive
	cut      lowering // of the limit, by refusals
}

// open is an amount in flight.
type open struct {
	id   uint64
	n    int64
	sent int64
	from int64 // Aligned: the first and last window that count it
	to   int64
	seen int64 // bucket.settled at the time of the reservation
}

// count is the amount used in one aligned window of the server's clock.
type count struct{ window, n int64 }

// spent is the amount used by responses that arrived between from and at.
type spent struct{ from, at, n int64 }

// resolution limits the size of a log. Responses within 1/1024 of a window share one entry, so a
// log has about 1,024 entries at most.
const resolution = 1024

// reported is the latest information from headers: left calls until the reset, which is between lo and
// hi.
type reported struct{ left, lo, hi int64 }

// lowering is a limit that refusals revealed. While limit is positive, it is in force; it is raised
// at retry. If limit is 0, step is the number of calls before a refusal. It is not in force and is
// dropped at retry. If the server refuses again at about step calls, step becomes the limit.
type lowering struct {
	limit    int64
	at       int64 // of the last refusal
	retry    int64
	step     int64
	patience int64 // windows
}

const (
	maxPatience = 64
	// believedPatience is the patience of a limit that was found once. Headers that report more
	// calls left override such a limit. If the server refuses again at the same number, they no
	// longer do.
	believedPatience = 2
)

// found returns how many calls the server accepted before it refused, 0 = not known.
func (x *lowering) found() int64 {
	if x.limit > 0 {
		return x.limit
	}
	return x.step
}

// beyond reports whether n calls are clearly more than found.
func (x *lowering) beyond(n int64) bool { return n > x.found()+max(2, x.found()/10) }

// same reports whether a refusal after n calls confirms found. A server that refuses for another
// cause than a limit does so after any number of calls.
func (x *lowering) same(n int64) bool {
	return x.found() > 0 && n >= x.found()-x.found()/4 && !x.beyond(n)
}

// effective returns the limit in force, lowered by refusals.
func (b *bucket) effective() int64 {
	if b.cut.limit > 0 {
		return min(b.limit, b.cut.limit)
	}
	return b.limit
}

// out returns the amount in flight.
func (b *bucket) out() (n int64) {
	for i := range b.opens {
		n += b.opens[i].n
	}
	return n
}

// window returns the length in nanoseconds; a month counts as 31 days.
func (b *bucket) window() int64 {
	if b.spec.Window == month {
		return int64(31 * 24 * time.Hour)
	}
	return max(1, int64(b.spec.Window))
}

// slack is added to a sliding window, because clocks drift and servers expire old calls late.
func (b *bucket) slack() int64 {
	return min(int64(250*time.Millisecond), b.window()/100) + b.window()/drift
}

// index returns the number of the aligned window that contains a time of the server's clock. A
// month is year × 12 + month - 1.
func (b *bucket) index(server int64) int64 {
	if b.spec.Window == month {
		t := time.Unix(0, server).UTC()
		return int64(t.Year())*12 + int64(t.Month()) - 1
	}
	return floor(server, int64(b.spec.Window))
}

// start returns when an aligned window begins, by the server's clock.
func (b *bucket) start(window int64) int64 {
	if b.spec.Window == month {
		return time.Date(int(floor(window, 12)), time.Month(window-12*floor(window, 12)+1), 1, 0, 0, 0, 0,
			time.UTC).UnixNano()
	}
	return window * int64(b.spec.Window)
}

// floor returns a divided by b, rounded down; b is positive.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// inWindow returns the largest amount that the server can have counted in window k.
func (b *bucket) inWindow(k int64) (n int64) {
	for _, w := range b.wins {
		if w.window == k {
			n += w.n
		}
	}
	for i := range b.opens {
		if o := &b.opens[i]; o.to < k { // the request may still arrive in window k
			n += o.n
		}
	}
	return n
}

// addWindows adds n, which may be negative, to the windows from..to. No window gets below 0.
func (b *bucket) addWindows(from, to, n int64) {
	for k := from; k <= to; k++ {
		i, found := slices.BinarySearchFunc(b.wins, k,
			func(w count, k int64) int { return int(min(max(w.window-k, -1), 1)) })
		if !found {
			b.wins = slices.Insert(b.wins, i, count{window: k})
		}
		b.wins[i].n = max(0, b.wins[i].n+n)
	}
}

// forget drops what no longer counts. A call that is in flight for longer than flight counts as
// answered.
func (b *bucket) forget(now, flight int64, c *clock) {
	for len(b.opens) > 0 && b.opens[0].sent+flight <= now {
		o := b.opens[0]
		b.done(o.id, o.sent+flight, o.n, c)
	}
	switch b.spec.Kind {
	case Aligned:
		old := b.index(now + c.lo)
		b.wins = slices.DeleteFunc(b.wins, func(w count) bool { return w.window < old })
	case Sliding:
		gone, keep := 0, b.window()+b.slack()
		for gone < len(b.log) && b.log[gone].at+keep <= now {
			gone++
		}
		b.log = slices.Delete(b.log, 0, gone)
	}
	b.raise(now)
}

// token returns the time that one unit needs to come back, rounded up.
func (b *bucket) token() int64 {
	w := b.window() + b.window()/drift
	return (w + b.limit - 1) / max(1, b.limit)
}

// free returns the amount that a call at now may use, if the server counts in the worst way.
func (b *bucket) free(now int64, c *clock) int64 {
	limit := b.effective()
	switch b.spec.Kind {
	case Aligned:
		left := limit
		for k := b.index(now + c.lo); k <= b.index(now+c.hi); k++ {
			left = min(left, limit-b.inWindow(k))
		}
		return left
	case Sliding:
		used := b.out()
		for _, s := range b.log {
			used += s.n
		}
		return limit - used
	case Tokens:
		debt := max(0, b.tat-now)
		return limit - (debt+b.token()-1)/b.token() - b.out()
	case Reported:
		if now < b.reported.hi {
			return b.reported.left
		}
		return 1 - b.out()
	}
	return 1
}

// when returns the earliest time from now on when n fits if nothing is settled before. It returns
// far if n fits only after a settlement.
func (b *bucket) when(n, now int64, c *clock) int64 {
	limit, at := b.effective(), now
	switch b.spec.Kind {
	case Aligned:
		at = b.whenAligned(n, now, c)
	case Sliding:
		free := b.free(now, c)
		for i := 0; free < n; i++ {
			if i == len(b.log) {
				return far
			}
			free += b.log[i].n
			at = b.log[i].at + b.window() + b.slack()
		}
	case Tokens:
		if n += b.out(); n > limit {
			return far
		}
		at = b.tat - (limit-n)*b.token()
	case Reported:
		switch {
		case now < b.reported.hi && b.reported.left < n:
			at = b.reported.hi
		case now >= b.reported.hi && len(b.opens) > 0:
			return far
		}
	case Adaptive:
		at = b.last + b.pace.gap()
	}
	return max(at, now)
}

// whenAligned is when for an aligned bucket: n must fit in each window that the server may be in.
func (b *bucket) whenAligned(n, now int64, c *clock) int64 {
	limit, at := b.effective(), now
	for range len(b.wins) + 2 {
		full := int64(-1)
		for k := b.index(at + c.lo); k <= b.index(at+c.hi); k++ {
			if limit-b.inWindow(k) < n {
				full = k
			}
		}
		if full < 0 {
			return at
		}
		at = b.start(full+1) - c.lo
	}
	return far
}

// paced returns when the next call is due if calls are spread over the rest of the window.
func (b *bucket) paced(now int64, c *clock) int64 {
	if b.last == 0 || b.spec.unit() != Calls {
		return now
	}
	switch b.spec.Kind {
	case Aligned:
		k := b.index(b.last + c.hi)
		end := b.start(k+1) - c.hi
		left := b.effective() - b.inWindow(k)
		if left <= 0 || now >= end {
			return now
		}
		return b.last + (end-b.last)/(left+1)
	case Sliding, Tokens:
		return b.last + b.window()/max(1, b.effective())
	case Reported:
		if now < b.reported.lo && b.reported.left > 0 {
			return b.last + max(0, b.reported.lo-b.last)/(b.reported.left+1)
		}
	}
	return now
}

// take reserves n for call id. The caller has checked that there is room.
func (b *bucket) take(id uint64, n, now int64, c *clock) {
	o := open{id: id, n: n, sent: now, seen: b.settled}
	switch b.spec.Kind {
	case Aligned:
		o.from, o.to = b.index(now+c.lo), b.index(now+c.hi)
		b.addWindows(o.from, o.to, n)
	case Reported:
		b.reported.left -= min(n, b.reported.left)
	}
	b.opens = append(b.opens, o)
	b.last = max(b.last, now)
}

// done settles call id, whose response arrived at the time at and used the given amount.
func (b *bucket) done(id uint64, at, used int64, c *clock) {
	i := slices.IndexFunc(b.opens, func(o open) bool { return o.id == id })
	if i < 0 {
		return
	}
	o := b.opens[i]
	b.opens = slices.Delete(b.opens, i, i+1)
	b.settled += used
	switch b.spec.Kind {
	case Aligned:
		b.addWindows(o.from, o.to, used-o.n)
		if to := b.index(at + c.hi); used > 0 { // the call may have crossed into later windows
			b.addWindows(max(o.to+1, to-maxCrossed), to, used)
		}
	case Sliding:
		b.spend(at, used)
	case Tokens:
		b.tat = max(b.tat, at) + used*b.token()
	case Reported:
		if at < b.reported.hi {
			b.reported.left += max(0, o.n-used)
		}
	}
}

// maxCrossed is the number of windows that a call may cross into. MaxFlight holds fewer.
const maxCrossed = 32

// spend adds to the log. Entries stay in order: an amount with an earlier time gets the time of the
// last entry.
func (b *bucket) spend(at, n int64) {
	if n <= 0 {
		return
	}
	if last := len(b.log) - 1; last >= 0 {
		l := &b.log[last]
		at = max(at, l.at)
		if at-l.from < b.window()/resolution || len(b.log) >= 2*resolution {
			l.at, l.n = at, l.n+n
			return
		}
	}
	b.log = append(b.log, spent{from: at, at: at, n: n})
}

// use counts an amount that this peer did not reserve. It covers calls of other clients with this
// credential, and amounts that the server reports.
func (b *bucket) use(n, now int64, c *clock) {
	n = min(n, b.limit)
	switch {
	case n <= 0:
	case b.spec.Kind == Aligned:
		b.addWindows(b.index(now+c.lo), b.index(now+c.hi), n)
	case b.spec.Kind == Sliding:
		b.spend(now, n)
	case b.spec.Kind == Tokens:
		b.tat = max(b.tat, now) + n*b.token()
	}
}

// slide turns an aligned bucket into a sliding one, because its windows are not where they should
// be.
func (b *bucket) slide(now int64) {
	var n int64
	for _, w := range b.wins {
		n = max(n, w.n)
	}
	b.wins, b.log = nil, nil
	if b.spec.Kind = Sliding; b.spec.Window == month {
		b.spec.Window = Span(b.window())
	}
	b.spend(now, n-min(n, b.out()))
}

// jump handles a jump of the server's clock: the amount used so far counts in the present windows.
func (b *bucket) jump(now int64, c *clock) {
	if b.spec.Kind != Aligned {
		return
	}
	var n int64
	for _, w := range b.wins {
		n = max(n, w.n)
	}
	from, to := b.index(now+c.lo), b.index(now+c.hi)
	b.wins = nil
	b.addWindows(from, to, n)
	for i := range b.opens {
		b.opens[i].from, b.opens[i].to = from, to
	}
}

// setLimit changes or confirms the limit of a window.
func (b *bucket) setLimit(limit, now int64, by Origin) {
	if limit == b.limit {
		if b.by == ByTable {
			b.by = by
		}
		return
	}
	old := b.token()
	b.limit, b.by, b.cut = limit, by, lowering{}
	if b.spec.Kind == Tokens && b.tat > now {
		debt := (b.tat - now + old - 1) / old
		b.tat = now + min(debt, limit)*b.token()
	}
}

// refused handles a refusal below the known limit. The number of calls before it, less one, becomes
// the limit. The limit is raised later by a step that doubles; each failure delays the next try. If
// why explains the refusal, the first one at a number is only remembered.
func (b *bucket) refused(sent, now int64, why cause, c *clock) {
	if b.spec.Kind == Adaptive {
		b.pace.refused(sent, now)
		return
	}
	x := &b.cut
	if b.spec.Kind == Reported || b.spec.unit() != Calls || sent <= x.at {
		return // Reported: the hold is enough. Others: these calls belong to the same refusal.
	}
	used := b.effective() - b.free(now, c) - b.out()
	if used <= 1 { // no limit is 0, so something else is the cause
		if x.limit > 0 && why.again {
			x.limit = 1
		}
		if x.limit > 0 {
			x.at, x.retry = now, now+x.patience*b.window()
		}
		return
	}
	low := max(1, min(b.effective(), used-1))
	p := int64(believedPatience)
	switch {
	case why.again: // the server still refuses, which says nothing new about the limit
		p = max(x.patience, p)
	case x.same(low):
		p = min(max(2*x.patience, p), maxPatience)
	case why.explained && x.limit > 0:
		x.at = now
		return
	case why.explained:
		*x = lowering{at: now, step: low, retry: now + maxPatience*b.window()}
		return
	}
	*x = lowering{limit: low, at: now, retry: now + p*b.window(), step: 1, patience: p}
}

// lift ends a found limit because the headers report more calls left than it allows.
func (b *bucket) lift(now int64) {
	if x := &b.cut; x.limit > 0 && x.patience <= believedPatience {
		*x = lowering{at: x.at, step: x.limit, retry: now + maxPatience*b.window(), patience: x.patience}
	}
}

// took handles an accepted call. If the server accepts clearly more calls than at a remembered
// refusal, that number was no limit.
func (b *bucket) took(sent, now int64, c *clock) {
	if b.spec.Kind == Adaptive {
		b.pace.answered(sent)
		return
	}
	x := &b.cut
	if x.limit > 0 || x.step == 0 {
		return
	}
	used := b.limit - b.free(now, c) - b.out()
	switch b.spec.Kind {
	case Aligned: // the window of the server is not known: use the smallest amount
		for k := b.index(now + c.lo); k <= b.index(now+c.hi); k++ {
			used = min(used, b.inWindow(k))
		}
	case Sliding: // only calls since the refusal count: the server may use fixed windows
		for _, s := range b.log {
			if s.from <= x.at {
				used -= s.n
			}
		}
	}
	if x.beyond(used) {
		*x = lowering{}
	}
}

// raise raises or drops the found limit once its retry time has come.
func (b *bucket) raise(now int64) {
	x := &b.cut
	if now < x.retry {
		return
	}
	if x.limit == 0 {
		*x = lowering{}
		return
	}
	x.limit, x.step, x.retry = x.limit+x.step, min(2*x.step, b.limit), now+b.window()
	if x.limit >= b.limit {
		*x = lowering{}
	}
}

// shift moves all times by d after our clock was set back.
func (b *bucket) shift(d int64) {
	move := func(t *int64) { *t = max(*t+d, 0) }
	for i := range b.opens {
		move(&b.opens[i].sent)
	}
	for i := range b.log {
		move(&b.log[i].from)
		move(&b.log[i].at)
	}
	for _, t := range []*int64{&b.last, &b.tat, &b.reported.lo, &b.reported.hi, &b.pace.cut, &b.cut.at, &b.cut.retry} {
		if *t != 0 {
			move(t)
		}
	}
}
