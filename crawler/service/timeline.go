package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Feed says how the pages of a timeline are fetched, of a service whose pages have
// cursors of their own.
type Feed[T any] struct {
	Service, Op string
	// Down asks for the page at a cursor, "" = the newest posts: the newest first. base is a
	// post above which all is wanted, zero = to the beginning; a service with a parameter for it uses it.
	Down func(ctx context.Context, cursor string, base Seen) (Page[T], error)
	// Up asks for the page just above the post with that id, "" = from the beginning: the
	// oldest first, in the order of their ids as bytes. nil = the service cannot.
	Up func(ctx context.Context, after string) (Page[T], error)
	// Below is a cursor of Down for what lies below a post, to go on with where the
	// service's own lead nowhere; nil = there is none.
	Below func(last Seen) string
	Seen  func(post T) Seen
	// Ordered says that posts come in order of time but for a few: what is older than
	// all that a Mark knows was read.
	Ordered bool
}

// Reading says how a Feed is read. The zero value is the default.
type Reading struct {
	Up    Obeys // whether Feed.Up can be relied on; unknown is found out on the way
	Limit Obeys // Obeyed: a page that is shorter than was asked for is the last one
	Back  int   // posts to read of a feed that was never read; 0 = to its beginning
	// Overlap is how many posts are read again, which costs no request: what is shown late
	// is found, and what was edited or deleted is noticed. Default 5, <0 = none.
	Overlap int
	Claimed int64 // posts by the profile, when that is known; <=0 = not
	Most    int64 // how many posts of a feed the service shows at all, 0 = every one
	Limits  Limits
}

// Timeline is one reading of a Feed: everything since a Mark, or everything. Not
// safe for concurrent use.
//
// Up, where the service can: the page just above the newest post read, and so on to the last. Down,
// else: from the newest to what was read before; what is made meanwhile is above, and is
// read the next time. Each page is held against what was asked: one of a reading upward that
// is out of order or not above what was asked for, or an empty one where posts were
// read before, turns the reading downward. (Pages of one post show no order: a server that gives
// such, and the wrong ones, is believed.)
type Timeline[T any] struct {
	feed  Feed[T]
	how   Reading
	m     Mark
	phase phase

	start  []Seen    // Recent, when the reading began
	lowest string    // id of start, of a feed that can be read upward
	oldest time.Time // of start, zero when the feed is not ordered
	newest time.Time
	up     Trail
	from   string // what the next page upward lies above
	leads  bool   // the reading upward was seen to lead to what is new
	met    map[string]bool
	expect []Seen // of start, those that should be delivered again
	list   Listing
}

type phase uint8

const (
	phaseUp phase = iota
	phaseDown
	phaseOver
)

// Batch is one page of a reading.
type Batch[T any] struct {
	Posts []T // new ones, the newest first
	Again []T // read before and delivered again
	// Changed are the indices in Again of those that are another version than was
	// read before.
	Changed []int
}

// NewTimeline begins a reading of f from m, or goes on with the one that m is in
// the middle of.
func NewTimeline[T any](f Feed[T], m Mark, how Reading) (*Timeline[T], error) {
	if how.Back < 0 {
		return nil, fmt.Errorf("%s: timeline: back %d", f.Service, how.Back)
	}
	if err := how.Limits.Validate(); err != nil {
		return nil, err
	}
	if m.V == 0 {
		m.V = MarkVersion
	}
	if err := m.Valid(); err != nil {
		return nil, fmt.Errorf("%s: timeline: mark: %w", f.Service, err)
	}
	how.Limits = how.Limits.WithDefaults()
	if how.Overlap == 0 {
		how.Overlap = 5
	}
	how.Overlap = min(max(how.Overlap, 0), MaxRecent/2)
	t := &Timeline[T]{feed: f, how: how, m: m, start: m.Recent, met: map[string]bool{}}
	t.list.Claimed = -1
	if how.Claimed > 0 {
		t.list.Claimed = how.Claimed
	}
	if f.Up != nil && len(t.start) > 0 {
		t.lowest = slices.MinFunc(t.start, byID).ID
	}
	known := m.Recent
	if w := m.Walk; w != nil {
		again := *w
		t.m.Walk, t.phase, t.start = &again, phaseDown, w.Base
		t.list.Seen, t.list.Pages, t.list.Strange = w.Trail.Seen, w.Trail.Pages, w.Trail.Strange
		known = slices.Concat(known, w.Base, w.Top, w.Pins)
	}
	for _, s := range known {
		t.up.Known.Add(s.ID)
	}
	if f.Ordered {
		t.oldest, t.newest = Span(t.start)
	}
	switch {
	case m.Walk != nil:
		t.m.Walk.Trail.Known = t.up.Known
	case f.Up == nil, how.Up == Ignored, len(m.Recent) == 0 && how.Back > 0:
		t.down()
	default:
		t.begin()
	}
	return t, nil
}

// begin puts the reading upward below the newest posts read.
func (t *Timeline[T]) begin() {
	r := t.m.Recent
	switch {
	case len(r) == 0:
	case t.m.From != "": // in the middle of a reading
		t.from = t.m.From
	case t.how.Overlap == 0:
		t.from = r[0].ID
	case t.how.Overlap < len(r):
		t.from, t.expect = r[t.how.Overlap].ID, r[:t.how.Overlap]
	default: // fewer were ever read than overlap: a page of the newest has them all, the oldest too
		t.down()
	}
}

// down begins the reading downward, at the newest post.
func (t *Timeline[T]) down() {
	t.start = t.m.Recent // what was read upward by now, too: each of its pages was good
	w := &Walk{Base: t.start}
	w.Trail.Known, w.Trail.Seen, w.Trail.Pages, w.Trail.Strange = t.up.Known, t.list.Seen, t.list.Pages, t.list.Strange
	t.m.Walk, t.m.From, t.phase = w, "", phaseDown
}

// Done says whether the reading has ended.
func (t *Timeline[T]) Done() bool { return t.phase == phaseOver }

// Mark is how far the feed is read, the last Batch included: to be kept with it.
func (t *Timeline[T]) Mark() Mark {
	m := t.m // its lists are never changed, but replaced
	if m.Walk != nil {
		w := *m.Walk
		w.Trail.Known = Known{}
		m.Walk = &w
	}
	return m
}

// Listing is how the reading stands.
func (t *Timeline[T]) Listing() Listing {
	l := t.list
	l.Complete = t.phase == phaseOver && l.Why == ""
	return l
}

// Up is what the service was found to do with a reading upward.
func (t *Timeline[T]) Up() Obeys { return t.how.Up }

// Absent are posts that were read before, should have been delivered again and
// were not: maybe deleted, which only asking for the post itself can say. For a
// reading that is Done.
func (t *Timeline[T]) Absent() (ids []string) {
	for _, s := range t.expect {
		if !t.met[s.ID] {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Next is the next page, empty after the end. After a Fault that is Again the
// same page may be asked for once more; after any other the reading is Done, incomplete.
func (t *Timeline[T]) Next(ctx context.Context) (Batch[T], error) {
	if t.phase == phaseOver {
		return Batch[T]{}, nil
	}
	var p Page[T]
	var err error
	if t.phase == phaseUp {
		p, err = t.feed.Up(ctx, t.from)
	} else {
		w := t.m.Walk
		base := Seen{}
		if len(w.Base) > 0 {
			base = w.Base[min(t.how.Overlap, len(w.Base)-1)]
		}
		p, err = t.feed.Down(ctx, w.Trail.Cursor, base)
	}
	if err != nil {
		return t.failed(ctx, err)
	}
	t.list.Why = ""
	t.list.Pages++
	t.list.Strange += p.Bad
	if t.phase == phaseUp {
		return t.upPage(p), nil
	}
	return t.downPage(p), nil
}

// failed notes why a page was not had. A service that has no reading upward, or
// refuses one of its own cursors, is read in the other way.
func (t *Timeline[T]) failed(ctx context.Context, err error) (Batch[T], error) {
	if ctx.Err() == nil && (WordOf(err) == Refused || WordOf(err) == Unsupported) {
		switch w := t.m.Walk; {
		case t.phase == phaseUp:
			t.how.Up = Ignored
			t.down()
			return t.Next(ctx)
		case w.Trail.Cursor != "" && t.other():
			return t.Next(ctx)
		}
	}
	if t.list.Why = WordOf(err); t.list.Why == "" {
		t.list.Why = Unreachable
	}
	if !Again(err) {
		t.end(t.list.Why)
	}
	return Batch[T]{}, err
}

// other goes on by Feed.Below, once in a walk.
func (t *Timeline[T]) other() bool {
	w := t.m.Walk
	if t.feed.Below == nil || w.Other || w.Last.ID == "" {
		return false
	}
	cursor := t.feed.Below(w.Last)
	if cursor == "" || cursor == w.Trail.Cursor {
		return false
	}
	trail := Trail{Cursor: cursor, Known: w.Trail.Known, Seen: w.Trail.Seen, Pages: w.Trail.Pages,
		Strange: w.Trail.Strange}
	w.Trail, w.Other = trail, true
	return true
}

// seen are the posts of a page as a Mark has them.
func (t *Timeline[T]) seen(posts []T) []Seen {
	out := make([]Seen, len(posts))
	for i, p := range posts {
		out[i] = t.feed.Seen(p)
	}
	return out
}

// split divides a page into what is new and what was read before.
func (t *Timeline[T]) split(p Page[T], seen []Seen, fresh []bool) (b Batch[T]) {
	for i, post := range p.Items {
		s := seen[i]
		if k := slices.IndexFunc(t.start, func(was Seen) bool { return was.ID == s.ID }); k >= 0 && !t.met[s.ID] {
			t.met[s.ID] = true
			b.Again = append(b.Again, post)
			if t.start[k].Version != s.Version {
				b.Changed = append(b.Changed, len(b.Again)-1)
			}
		}
		if fresh[i] && s.ID >= t.lowest && (s.At.IsZero() || !s.At.Before(t.oldest)) && !t.above(s) {
			b.Posts = append(b.Posts, post)
		}
	}
	t.list.Seen += int64(len(b.Posts))
	return b
}

// above says whether s is newer than what the walk has come down to: a page that came
// again, with what was made meanwhile, which is for the next reading.
func (t *Timeline[T]) above(s Seen) bool {
	w := t.m.Walk
	if w == nil || w.Last.ID == "" {
		return false
	}
	if t.feed.Up != nil {
		return s.ID >= w.Last.ID
	}
	return t.feed.Ordered && !w.Last.At.IsZero() && s.At.After(w.Last.At)
}

func byID(a, b Seen) int { return strings.Compare(a.ID, b.ID) }

// rises says whether ids lie one above the other, all above from.
func rises(ids []string, from string) bool {
	for _, id := range ids {
		if id <= from {
			return false
		}
		from = id
	}
	return true
}

// upPage takes a page of a reading upward.
func (t *Timeline[T]) upPage(p Page[T]) Batch[T] {
	if !rises(p.IDs, t.from) {
		t.how.Up = Ignored
		t.down()
		return Batch[T]{} // the page is of no use: the newest one comes next
	}
	slices.Reverse(p.Items)
	slices.Reverse(p.IDs)
	next := ""
	// a full page may say nothing and have one behind it
	if len(p.IDs) > 0 && (p.Next != "" || len(p.Items) >= p.Asked) {
		next = p.IDs[0]
	}
	seen := t.seen(p.Items)
	lim := t.how.Limits
	lim.Empty = max(lim.Empty, MaxRecent) // what is read again may be many short pages
	fresh, stop, over := t.up.Took(p.IDs, next, lim)
	b := t.split(p, seen, fresh)
	if len(b.Posts) > 0 {
		t.leads = true
	}
	m := &t.m
	short := len(p.Items) < m.Wide
	m.Recent, m.Wide = Foremost(seen, m.Recent), max(m.Wide, len(p.Items))
	slices.SortStableFunc(m.Recent, func(a, b Seen) int { return byID(b, a) })
	switch {
	case over && stop != "":
		t.end(stop)
	case len(p.IDs) == 0 && p.Bad > 0 && p.Next > t.from: // a page of what cannot be read
		t.from, m.From = p.Next, p.Next
	case over, short && (t.how.Limit == Obeyed || len(b.Posts) == 0):
		t.top()
	default:
		t.from, m.From = next, next
	}
	return b
}

// top ends a reading upward, unless nothing of what it should have shown was in it: then
// the newest posts are looked at.
func (t *Timeline[T]) top() {
	if t.leads || t.how.Up == Obeyed || slices.ContainsFunc(t.expect, func(s Seen) bool { return t.met[s.ID] }) {
		t.end("")
		return
	}
	if len(t.start) == 0 && t.list.Seen > 0 {
		t.end("")
		return
	}
	t.down()
}

// downPage takes a page of a reading downward.
func (t *Timeline[T]) downPage(p Page[T]) Batch[T] {
	w, seen := t.m.Walk, t.seen(p.Items)
	fresh, stop, over := w.Trail.Took(p.IDs, p.Next, t.how.Limits)
	b := t.split(p, seen, fresh)
	if len(b.Posts) > 0 && t.feed.Up != nil && t.how.Up == "" && len(t.start) > 0 {
		t.how.Up = Ignored // it did not lead to these
	}
	in, out := Descending(seen)
	in = slices.DeleteFunc(in, t.above)
	if len(w.Top) < MaxRecent {
		w.Top = Foremost(w.Top, in)
		if !t.feed.Ordered {
			w.Top = Foremost(w.Top, out)
		}
	}
	w.Pins = Foremost(w.Pins, out)
	if n := len(in); n > 0 {
		w.Last = in[n-1]
	}
	w.Trail.Strange += p.Bad
	switch {
	case t.reached(in):
		if t.joined(); over && stop == "" && !cut(p) {
			t.ended()
		}
	case over && stop == "":
		t.bottom(p)
	case over && stop != MaxPages && stop != MaxItems && t.other():
	case over:
		t.end(stop)
	case len(w.Base) == 0 && t.how.Back > 0 && t.list.Seen >= int64(t.how.Back):
		t.end(FarEnough)
	}
	return b
}

// reached says whether a page ends among what was read before: its last post is
// one of that, or is older than the newest of it.
func (t *Timeline[T]) reached(in []Seen) bool {
	if len(in) == 0 || len(t.start) == 0 {
		return false
	}
	last := in[len(in)-1]
	return Has(t.start, last.ID) || !last.At.IsZero() && last.At.Before(t.newest) || t.feed.Up != nil &&
		last.ID <= t.start[0].ID
}

// joined ends a reading that came down to what was read before, and notes what
// its pages should have held of that: all that is newer than the oldest they held.
func (t *Timeline[T]) joined() {
	t.expect = nil
	for _, s := range slices.Concat(t.m.Walk.Top, t.m.Walk.Pins) { // of the visits before this one, too
		t.met[s.ID] = true
	}
	for i, s := range t.start {
		if t.met[s.ID] {
			t.expect = t.start[:i]
		}
	}
	t.end("")
}

// cut says that there may be more than a page that leads nowhere: it is as long as was asked for, and does not say how
// to go on.
func cut[T any](p Page[T]) bool {
	ids := slices.Clone(p.IDs) // a post that is pinned may stand there twice
	slices.Sort(ids)
	return p.Mute && len(slices.Compact(ids)) >= p.Asked && p.Asked > 0
}

// bottom judges a reading downward that has no further page.
func (t *Timeline[T]) bottom(p Page[T]) {
	claimed, seen, cut := t.list.Claimed, t.list.Seen, cut(p)
	switch {
	case t.how.Most > 0 && claimed > seen && seen >= t.how.Most*9/10 && len(t.start) == 0:
		t.end(ShowsNoMore)
	case cut && t.other(): // goes on below
	case len(t.start) > 0 && cut && !t.metInOrder():
		t.end(NoCursor)
	case len(t.start) > 0:
		if t.joined(); !cut {
			t.ended()
		}
	case cut && (claimed < 0 || seen < claimed):
		t.end(NoCursor)
	case claimed > 0 && seen < claimed-claimed/50:
		t.end(FewerThanClaim)
	default:
		t.end("")
	}
}

// ended notes that nothing lies below, so a feed that shows all there is should have shown all that was read before.
func (t *Timeline[T]) ended() {
	if t.feed.Up != nil {
		t.expect = t.start
	}
}

// metInOrder says whether a post that was read before came where its time puts it: one that is pinned says nothing of
// those between.
func (t *Timeline[T]) metInOrder() bool {
	for id := range t.met {
		if !slices.ContainsFunc(t.m.Walk.Pins, func(s Seen) bool { return s.ID == id }) {
			return true
		}
	}
	return false
}

// Descending divides a page into posts none of which is older than one behind it,
// and the others.
func Descending(posts []Seen) (in, out []Seen) {
	var top time.Time
	for _, s := range slices.Backward(posts) {
		if s.At.Before(top) {
			out = append(out, s)
			continue
		}
		top = s.At
		in = append(in, s)
	}
	slices.Reverse(in)
	return in, out
}

// end ends the reading. A walk downward that is over moves the mark, also when
// it is not whole: what it did not have is for the ledger of gaps.
func (t *Timeline[T]) end(why Word) {
	t.list.Why, t.phase, t.m.From = why, phaseOver, ""
	if w := t.m.Walk; w != nil {
		t.m.Recent, t.m.Walk = Foremost(w.Top, t.m.Recent), nil
	}
	if t.feed.Up != nil {
		slices.SortStableFunc(t.m.Recent, func(a, b Seen) int { return byID(b, a) })
	}
}

// Anew is m without the walk that it is in the middle of, which begins again at
// the newest post: for a service that no longer takes the walk's cursor.
func (m Mark) Anew() (Mark, error) {
	if m.Walk == nil {
		return m, errors.New("service: mark: no walk")
	}
	m.Recent, m.Walk = m.Walk.Base, nil
	return m, nil
}
