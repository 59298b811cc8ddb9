package frontier

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Defaults of Options.
const (
	DefaultWindow  = 16
	DefaultMaxRows = 100_000
)

// ageing is the waiting time that one step of priority is worth.
const ageing = time.Second

// Options configures New.
type Options struct {
	Window int // rows read from one site at a time, default DefaultWindow
	// MaxRows is the number of rows held for all sites, default DefaultMaxRows. With more sites
	// than MaxRows, a window is one row.
	MaxRows int
}

// Row is one due row of a site.
type Row struct {
	Key      partition.Key
	Priority int // 0 is first, 255 is last
}

// Act is the kind of a Step.
type Act uint8

// The kinds of Step.
const (
	Wait  Act = iota // nothing to do before Step.At (zero: before the next Wake)
	Read             // read at most Step.Limit rows of Step.Site and call Fill
	Fetch            // fetch Step.Row and call Done
)

// Step is what the caller of Next does next.
type Step struct {
	Act   Act
	Site  partition.Site
	Slice partition.Slice
	Row   Row       // for Fetch
	Limit int       // for Read
	At    time.Time // for Wait
	state *site
}

// site is the state of one site with rows.
type site struct {
	name   partition.Site
	next   int64  // no request before this time, Unix nanoseconds
	key    int64  // its place in its queue
	parts  []part // its slices: several when the accounts of a service are spread
	rows   []Row  // the window: rows of slice from, all due when they were read
	from   partition.Slice
	turn   uint64 // its order among sites with the same key
	in     *queue // the queue that holds the site, nil = none
	last   int32  // index of the part that was read last
	busy   bool   // between a Fetch and its Done, or a Read and its Fill
	flown  bool   // busy because of a Fetch
	filled bool   // true from Fill until place; the site then keeps its turn
}

// part is what the frontier knows about the rows of a site in one slice.
type part struct {
	slice partition.Slice
	// later is the earliest due time among the rows that are not due yet, in Unix nanoseconds. It
	// is 0 if no such row is known.
	later int64
	stale bool // the store may hold due rows that the window does not
}

// Frontier is the schedule of one peer. It is not safe for concurrent use.
type Frontier struct {
	window, maxRows int
	sites           map[partition.Site]*site
	waiting         *queue // sites by the time of their next step
	ready           *queue // sites by the time they became ready, plus priority
	rows, flying    int
	turns           uint64 // the last turn given to a site
	now             int64  // the time of the last Next, Unix nanoseconds
}

// New returns an empty Frontier.
func New(o Options) *Frontier {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.MaxRows <= 0 {
		o.MaxRows = DefaultMaxRows
	}
	return &Frontier{window: o.Window, maxRows: o.MaxRows, sites: map[partition.Site]*site{}, waiting: newQueue(),
		ready: newQueue()}
}

// Wake reports that the store may hold rows of s in slice sl, due at due (zero: now). It also
// reports that s allows no request before allowed. If the site is known, the later of the two
// allowed times counts.
func (f *Frontier) Wake(sl partition.Slice, s partition.Site, allowed, due time.Time) {
	st := f.sites[s]
	if st == nil {
		st = &site{name: s}
		f.sites[s] = st
	}
	p := st.part(sl)
	if p == nil {
		st.parts = append(st.parts, part{slice: sl})
		p = &st.parts[len(st.parts)-1]
	}
	st.next = max(st.next, nanos(allowed))
	if due.IsZero() {
		p.stale = true
	} else {
		p.lower(nanos(due))
	}
	f.place(st)
}

// Next returns the next step at time now. The caller must answer every Read with Fill and every
// Fetch with Done.
func (f *Frontier) Next(now time.Time) Step {
	t := max(now.UnixNano(), f.now)
	f.now = t
	for st := f.waiting.first(); st != nil && st.key <= t; st = f.waiting.first() {
		f.waiting.pop()
		st.key = st.late(st.key)
		f.ready.push(st)
	}
	for f.ready.n > 0 {
		st := f.ready.pop()
		if len(st.rows) > 0 {
			return f.fetch(st)
		}
		p, wait := st.readable(t)
		switch {
		case p != nil:
			st.busy, st.from, p.stale, p.later = true, p.slice, false, 0
			return Step{Act: Read, Site: st.name, Slice: p.slice, Limit: f.limit(), state: st}
		case wait: // no part can be read yet, but place knows the time
			f.place(st)
		default:
			// No rows are left and the delay is over, so there is no pace to remember.
			delete(f.sites, st.name)
		}
	}
	if st := f.waiting.first(); st != nil {
		return Step{At: time.Unix(0, st.key)}
	}
	return Step{}
}

// fetch returns the Fetch step for the first row in the window of st.
func (f *Frontier) fetch(st *site) Step {
	row := st.rows[0]
	st.rows[0] = Row{} // frees the text of the Key
	if st.rows = st.rows[1:]; len(st.rows) == 0 {
		st.rows = nil
	}
	f.rows--
	f.flying++
	st.busy, st.flown = true, true
	return Step{Act: Fetch, Site: st.name, Slice: st.from, Row: row, state: st}
}

// limit returns the size of the next window: an even share of MaxRows, at least one row and at most
// Options.Window.
func (f *Frontier) limit() int {
	return min(f.window, max(1, f.maxRows/max(1, len(f.sites))))
}

// Fill answers a Read with the due rows of its site, in order. later is the due time of the first
// row that is not due yet (zero: there is none). more reports whether the store holds further due
// rows.
func (f *Frontier) Fill(read Step, rows []Row, later time.Time, more bool) {
	st := read.state
	if st == nil || !st.busy || st.flown {
		return
	}
	st.busy = false
	if p := st.part(st.from); p != nil { // nil if the peer lost the slice in the meantime
		f.rows += len(rows)
		st.rows = rows
		p.stale = p.stale || more
		if !later.IsZero() {
			p.lower(nanos(later))
		}
	}
	st.filled = true
	f.settle(st)
}

// Done ends a Fetch. The site allows the next request at allowed. A row of the site becomes due at
// later (zero: no new one). If again is not nil, Done puts that row back at the head of the window.
func (f *Frontier) Done(fetch Step, allowed, later time.Time, again *Row) {
	st := fetch.state
	if st == nil || !st.flown {
		return
	}
	st.busy, st.flown = false, false
	f.flying--
	st.next = max(st.next, nanos(allowed))
	if p := st.part(st.from); p != nil {
		if !later.IsZero() {
			p.lower(nanos(later))
		}
		if again != nil {
			st.rows = append([]Row{*again}, st.rows...)
			f.rows++
		}
	}
	f.settle(st)
}

// Keep drops the rows of every slice for which keep returns false. A site without slices is
// dropped. If it is being fetched, it is dropped at Done. If Wake names it before that, the site
// stays and keeps its next-allowed time.
func (f *Frontier) Keep(keep func(partition.Slice) bool) {
	for _, st := range f.sites {
		n := len(st.parts)
		st.parts = slices.DeleteFunc(st.parts, func(p part) bool { return !keep(p.slice) })
		if len(st.parts) == n {
			continue
		}
		if len(st.rows) > 0 && !keep(st.from) {
			f.rows -= len(st.rows)
			st.rows = nil
		}
		f.settle(st)
	}
}

// settle places a site after a change, or drops a site that has no slices and is not busy.
func (f *Frontier) settle(st *site) {
	if len(st.parts) > 0 || st.busy {
		f.place(st)
		return
	}
	f.take(st)
	delete(f.sites, st.name)
}

// Sites returns the number of known sites.
func (f *Frontier) Sites() int { return len(f.sites) }

// Rows returns the number of rows in all windows.
func (f *Frontier) Rows() int { return f.rows }

// Flying returns the number of fetches that are not Done.
func (f *Frontier) Flying() int { return f.flying }

// Ready returns the number of sites that were ready at the time of the last Next.
func (f *Frontier) Ready() int { return f.ready.n }

// Slices returns the slices in which s may have rows, in the order in which Wake named them.
func (f *Frontier) Slices(s partition.Site) (out []partition.Slice) {
	if st := f.sites[s]; st != nil {
		for i := range st.parts {
			out = append(out, st.parts[i].slice)
		}
	}
	return out
}

// Allowed returns the time from which s allows a request. It is zero if s is unknown.
func (f *Frontier) Allowed(s partition.Site) time.Time {
	if st := f.sites[s]; st != nil {
		return time.Unix(0, st.next)
	}
	return time.Time{}
}

// place puts a site into the queue and at the key where its next step is due. A busy site leaves
// its queue.
func (f *Frontier) place(st *site) {
	if st.busy {
		f.take(st)
		return
	}
	key, in := st.next, f.waiting
	if len(st.rows) == 0 {
		key = max(st.next, st.earliest())
	}
	if key <= f.now {
		key, in = st.late(key), f.ready
	}
	if st.in == in && st.key == key {
		// Nothing changed. The site keeps its turn among sites with the same key. Most calls of
		// Wake end here.
		return
	}
	f.take(st)
	if st.key = key; !st.filled {
		f.turns++
		st.turn = f.turns
	}
	st.filled = false
	in.push(st)
}

// late returns the key in the ready queue of a site that became ready at t. The priority of its
// first row counts as seconds.
func (st *site) late(t int64) int64 {
	if len(st.rows) > 0 {
		t += int64(st.rows[0].Priority) * int64(ageing)
	}
	return t
}

func (f *Frontier) take(st *site) {
	if st.in != nil {
		st.in.take(st)
	}
}

func (st *site) part(sl partition.Slice) *part {
	for i := range st.parts {
		if st.parts[i].slice == sl {
			return &st.parts[i]
		}
	}
	return nil
}

// readable returns the next part, in round-robin order, that may hold rows due at t. If there is
// none, wait reports whether a part will have such rows later.
func (st *site) readable(t int64) (p *part, wait bool) {
	for i := range st.parts {
		n := (int(st.last) + 1 + i) % len(st.parts)
		if p := &st.parts[n]; p.stale || p.later != 0 && p.later <= t {
			st.last = int32(n)
			return p, false
		}
		wait = wait || st.parts[n].later != 0
	}
	return nil, wait
}

// earliest returns the first time at which a part may hold due rows, in Unix nanoseconds. It is 0
// if that is now. It is also 0 if no part has rows: then Next looks at the site once more and drops
// it.
func (st *site) earliest() int64 {
	var first int64
	for _, p := range st.parts {
		if p.stale {
			return 0
		}
		if first == 0 || p.later != 0 && p.later < first {
			first = p.later
		}
	}
	return first
}

func (p *part) lower(t int64) {
	if p.later == 0 || t < p.later {
		p.later = t
	}
}

// nanos returns t in Unix nanoseconds, and 0 for the zero time, so the zero time comes first.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
