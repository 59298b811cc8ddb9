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

// ageing is what one step of priority counts in waiting time.
const ageing = time.Second

// Options of New.
type Options struct {
	Window  int // rows read of one site at a time, default DefaultWindow
	MaxRows int // rows held of all sites, default DefaultMaxRows; with more sites than rows a window is one row
}

// Row is one due row of a site: what to fetch, and how soon.
type Row struct {
	Key      partition.Key
	Priority int // 0 soonest, 255 last
}

// Act says what a Step asks for.
type Act uint8

// The acts.
const (
	Wait  Act = iota // nothing can be done before Step.At (zero: before the next Wake)
	Read             // read at most Step.Limit rows of Step.Site and call Fill
	Fetch            // fetch Step.Row and call Done
)

// Step is one answer of Next.
type Step struct {
	Act   Act
	Site  partition.Site
	Slice partition.Slice
	Row   Row       // of a Fetch
	Limit int       // of a Read
	At    time.Time // of a Wait
	state *site
}

// site is the state of one site with rows.
type site struct {
	name   partition.Site
	next   int64  // not asked before, Unix nanoseconds
	key    int64  // its order in the queue it is in
	parts  []part // its slices: one, or many when the accounts of a service are spread
	rows   []Row  // the window: rows of slice from, all due when they were read
	from   partition.Slice
	turn   uint64 // its order among sites with the same key
	in     *queue // the one it waits in, nil = none
	last   int32  // the part read last
	busy   bool   // between a Fetch and its Done, or a Read and its Fill
	flown  bool   // busy with a Fetch
	filled bool   // it is placed after a Fill, and keeps its turn
}

// part is what is known of the rows that a site has in one slice.
type part struct {
	slice partition.Slice
	later int64 // when the earliest row known not to be due falls due, 0 = no such row
	stale bool  // the store may hold due rows that the window does not
}

// Frontier is the schedule of one peer. Not safe for concurrent use.
type Frontier struct {
	window, maxRows int
	sites           map[partition.Site]*site
	waiting         *queue // by the time they are next worth a look
	ready           *queue // by since when they are ready, priority added
	rows, flying    int
	turns           uint64 // given out
	now             int64  // of the last Next
}

// New is an empty Frontier.
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

// Wake says that the store may hold rows of s in slice sl, due at due (zero:
// now), and that s may not be asked before allowed. For a site that is known
// the later of both allowed times holds.
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

// Next is the next step to take at now. Every Read must be answered by Fill
// and every Fetch by Done.
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
		case wait: // place knows a time for it that is still to come
			f.place(st)
		default:
			delete(f.sites, st.name) // nothing left, and its delay is over: no pace to remember
		}
	}
	if st := f.waiting.first(); st != nil {
		return Step{At: time.Unix(0, st.key)}
	}
	return Step{}
}

func (f *Frontier) fetch(st *site) Step {
	row := st.rows[0]
	st.rows[0] = Row{} // lets go of the Key's text
	if st.rows = st.rows[1:]; len(st.rows) == 0 {
		st.rows = nil
	}
	f.rows--
	f.flying++
	st.busy, st.flown = true, true
	return Step{Act: Fetch, Site: st.name, Slice: st.from, Row: row, state: st}
}

// limit is how many rows a window gets: what there is room for, shared evenly.
func (f *Frontier) limit() int {
	return min(f.window, max(1, f.maxRows/max(1, len(f.sites))))
}

// Fill answers a Read with the rows of its site that are due, in their order;
// later is when the first one that is not falls due (zero: there is none), and
// more says that the store held further due rows.
func (f *Frontier) Fill(read Step, rows []Row, later time.Time, more bool) {
	st := read.state
	if st == nil || !st.busy || st.flown {
		return
	}
	st.busy = false
	if p := st.part(st.from); p != nil { // else its slice was lost meanwhile
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

// Done ends a Fetch: its site may be asked again at allowed, and a row of it
// falls due at later (zero: none that was not known). again puts the row back
// at the head of the window.
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

// Keep forgets the rows of slices that are not kept. A site that has none left
// and is being fetched is forgotten when that ends; woken before, it stays, its
// pace with it.
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

// settle places a site after a change, or forgets one without slices.
func (f *Frontier) settle(st *site) {
	if len(st.parts) > 0 || st.busy {
		f.place(st)
		return
	}
	f.take(st)
	delete(f.sites, st.name)
}

// Sites, Rows, Flying and Ready are the sites known, the rows in windows, the
// fetches not Done and the sites that could be asked at the last Next.
func (f *Frontier) Sites() int { return len(f.sites) }

// Rows is how many rows the windows hold.
func (f *Frontier) Rows() int { return f.rows }

// Flying is how many fetches are not Done.
func (f *Frontier) Flying() int { return f.flying }

// Ready is how many sites could have been asked at the last Next.
func (f *Frontier) Ready() int { return f.ready.n }

// Slices are those in which s may have rows, in the order in which they came up.
func (f *Frontier) Slices(s partition.Site) (out []partition.Slice) {
	if st := f.sites[s]; st != nil {
		for i := range st.parts {
			out = append(out, st.parts[i].slice)
		}
	}
	return out
}

// Allowed is when s may be asked again, zero when s is not known.
func (f *Frontier) Allowed(s partition.Site) time.Time {
	if st := f.sites[s]; st != nil {
		return time.Unix(0, st.next)
	}
	return time.Time{}
}

// place puts a site that is not busy where it belongs: at the time when there
// is something to do for it.
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
		return // as it was, its turn among equals too: most calls of Wake
	}
	f.take(st)
	if st.key = key; !st.filled {
		f.turns++
		st.turn = f.turns
	}
	st.filled = false
	in.push(st)
}

// late is the place in the ready queue of a site that is ready since t: its
// row's priority counts as seconds.
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

// readable is the next part, in turn, that may hold rows due at t; wait says
// that there is none but there will be.
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

// earliest is when a part may hold due rows, 0 = now, or never: then the site
// is looked at once more, to be forgotten.
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

// nanos orders times, the zero time first of all.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
