package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Feed describes how to fetch the pages of a timeline. The service has its own cursors.
type Feed[T any] struct {
	Service, Op string
	// Down fetches the page at a cursor, newest post first; "" = the newest posts. All posts above
	// base are wanted; a zero base means all posts. A service with a parameter for it uses base.
	Down func(ctx context.Context, cursor string, base Seen) (Page[T], error)
	// Up fetches the page just above the post with that id, oldest first, in byte order of the ids.
	// "" = from the beginning. nil = the service cannot read upward.
	Up func(ctx context.Context, after string) (Page[T], error)
	// Below returns a cursor of Down for the posts below last. It is used if the service's own
	// cursors fail. nil = there is none.
	Below func(last Seen) string
	Seen  func(post T) Seen
	// Ordered says that almost all posts are in order of time. A post that is older than everything
	// in a Mark then counts as read.
	Ordered bool
}

// Reading is how a Feed is read. The zero value is the default.
type Reading struct {
	Up    Obeys // whether Feed.Up works; if unknown, the reading finds out
	Limit Obeys // Obeyed: a page that is shorter than requested is the last one
	Back  int   // posts to read of a feed that was never read; 0 = to its beginning
	// Overlap is how many posts are read again, which costs no request. So the reading finds late
	// posts and notices edited or deleted ones. Default 5, <0 = none.
	Overlap int
	Claimed int64 // posts by the profile; <=0 = unknown
	Most    int64 // how many posts of a feed the service shows, 0 = all
	Limits  Limits
}

// Timeline is one reading of a Feed: everything since a Mark, or everything. It is not safe for
// concurrent use.
//
// If the service can, it reads upward: the page just above the newest post read, and so on.
// Otherwise it reads downward: from the newest post to the posts read before. Posts that are
// created meanwhile are above, and the next reading fetches them.
//
// Each page of a reading upward is checked. The reading turns downward in two cases. A page is out
// of order or not above the requested post, or a page is empty where posts were read before. (A
// page of one post shows no order, so a wrong page of one post is not detected.)
type Timeline[T any] struct {
	feed  Feed[T]
	how   Reading
	m     Mark
	phase phase

	start  []Seen    // Recent at the start of the reading
	lowest string    // lowest id of start, if the feed can be read upward
	oldest time.Time // oldest time in start, zero if the feed is not ordered
	newest time.Time
	up     Trail
	from   string // id below the next page upward
	leads  bool   // the reading upward has found new posts
	met    map[string]bool
	expect []Seen // posts of start that should be delivered again
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
	Posts []T // new posts, newest first
	Again []T // posts that were read before
	// Changed are the indices in Again of posts with another version than before.
	Changed []int
}

// NewTimeline starts a reading of f from m, or continues the reading in m.
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

// begin sets the start of the reading upward, Overlap posts below the newest.
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
	// fewer posts than Overlap were ever read: a page of the newest posts contains them all
	default:
		t.down()
	}
}

// down starts the reading downward at the newest post.
func (t *Timeline[T]) down() {
	t.start = t.m.Recent // includes the posts read upward so far: each of their pages was good
	w := &Walk{Base: t.start}
	w.Trail.Known, w.Trail.Seen, w.Trail.Pages, w.Trail.Strange = t.up.Known, t.list.Seen, t.list.Pages, t.list.Strange
	t.m.Walk, t.m.From, t.phase = w, "", phaseDown
}

// Done reports whether the reading has ended.
func (t *Timeline[T]) Done() bool { return t.phase == phaseOver }

// Mark returns how far the feed is read, including the last Batch. The caller stores both together.
func (t *Timeline[T]) Mark() Mark {
	m := t.m // its lists are replaced, never changed
	if m.Walk != nil {
		w := *m.Walk
		w.Trail.Known = Known{}
		m.Walk = &w
	}
	return m
}

// Listing returns the progress of the reading.
func (t *Timeline[T]) Listing() Listing {
	l := t.list
	l.Complete = t.phase == phaseOver && l.Why == ""
	return l
}

// Up returns how the service treats a reading upward.
func (t *Timeline[T]) Up() Obeys { return t.how.Up }

// Absent returns the posts that were read before and that the reading did not deliver again. They
// may be deleted; only a request for the post itself can tell. Call it when the reading is Done.
func (t *Timeline[T]) Absent() (ids []string) {
	for _, s := range t.expect {
		if !t.met[s.ID] {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Next returns the next page, empty after the end. If a Fault is Again, the caller may retry the
// same page. After any other error the reading is Done and incomplete.
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

// failed records why a page is missing. If the service does not support the reading upward, or
// refuses one of its own cursors, the reading changes its direction or its cursor.
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

// other switches to Feed.Below, once in a walk.
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

// seen returns the posts of a page as a Mark stores them.
func (t *Timeline[T]) seen(posts []T) []Seen {
	out := make([]Seen, len(posts))
	for i, p := range posts {
		out[i] = t.feed.Seen(p)
	}
	return out
}

// split divides a page into new posts and posts that were read before.
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

// above reports whether s is newer than the lowest post of the walk. That happens if the service
// repeats a page with posts that were created meanwhile; they belong to the next reading.
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

// rises reports whether ids are in ascending order and above from.
func rises(ids []string, from string) bool {
	for _, id := range ids {
		if id <= from {
			return false
		}
		from = id
	}
	return true
}

// upPage applies a page of a reading upward.
func (t *Timeline[T]) upPage(p Page[T]) Batch[T] {
	if !rises(p.IDs, t.from) {
		t.how.Up = Ignored
		t.down()
		return Batch[T]{} // the page is useless: fetch the newest one next
	}
	slices.Reverse(p.Items)
	slices.Reverse(p.IDs)
	next := ""
	// after a full page there may be another one, even if the response does not say so
	if len(p.IDs) > 0 && (p.Next != "" || len(p.Items) >= p.Asked) {
		next = p.IDs[0]
	}
	seen := t.seen(p.Items)
	lim := t.how.Limits
	lim.Empty = max(lim.Empty, MaxRecent) // the posts that are read again may fill many short pages
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
	case len(p.IDs) == 0 && p.Bad > 0 && p.Next > t.from: // a page without readable posts
		t.from, m.From = p.Next, p.Next
	case over, short && (t.how.Limit == Obeyed || len(b.Posts) == 0):
		t.top()
	default:
		t.from, m.From = next, next
	}
	return b
}

// top ends a reading upward. If it delivered nothing that it should have delivered, the reading
// goes on downward from the newest posts.
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

// downPage applies a page of a reading downward.
func (t *Timeline[T]) downPage(p Page[T]) Batch[T] {
	w, seen := t.m.Walk, t.seen(p.Items)
	fresh, stop, over := w.Trail.Took(p.IDs, p.Next, t.how.Limits)
	b := t.split(p, seen, fresh)
	if len(b.Posts) > 0 && t.feed.Up != nil && t.how.Up == "" && len(t.start) > 0 {
		t.how.Up = Ignored // the reading upward did not find these posts
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

// reached reports whether a page ends among the posts that were read before. Its last post is one
// of them, or is older than the newest of them.
func (t *Timeline[T]) reached(in []Seen) bool {
	if len(in) == 0 || len(t.start) == 0 {
		return false
	}
	last := in[len(in)-1]
	return Has(t.start, last.ID) || !last.At.IsZero() && last.At.Before(t.newest) || t.feed.Up != nil &&
		last.ID <= t.start[0].ID
}

// joined ends a reading that reached the posts that were read before. It sets the posts that the
// pages should have contained: all that are newer than the oldest one found again.
func (t *Timeline[T]) joined() {
	t.expect = nil
	// includes the pages of earlier calls
	for _, s := range slices.Concat(t.m.Walk.Top, t.m.Walk.Pins) {
		t.met[s.ID] = true
	}
	for i, s := range t.start {
		if t.met[s.ID] {
			t.expect = t.start[:i]
		}
	}
	t.end("")
}

// cut reports whether there may be more posts after a page without a cursor. The page is as long as
// requested, and the response does not say how to continue.
func cut[T any](p Page[T]) bool {
	ids := slices.Clone(p.IDs) // a pinned post may appear twice
	slices.Sort(ids)
	return p.Mute && len(slices.Compact(ids)) >= p.Asked && p.Asked > 0
}

// bottom sets the result of a reading downward that has no further page.
func (t *Timeline[T]) bottom(p Page[T]) {
	claimed, seen, cut := t.list.Claimed, t.list.Seen, cut(p)
	switch {
	case t.how.Most > 0 && claimed > seen && seen >= t.how.Most*9/10 && len(t.start) == 0:
		t.end(ShowsNoMore)
	case cut && t.other(): // continues with Feed.Below
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

// ended records that there are no posts below. A feed that shows all posts should then have shown
// all that were read before.
func (t *Timeline[T]) ended() {
	if t.feed.Up != nil {
		t.expect = t.start
	}
}

// metInOrder reports whether a post that was read before appeared at its place in time. A pinned
// post proves nothing about the posts in between.
func (t *Timeline[T]) metInOrder() bool {
	for id := range t.met {
		if !slices.ContainsFunc(t.m.Walk.Pins, func(s Seen) bool { return s.ID == id }) {
			return true
		}
	}
	return false
}

// Descending divides a page into posts that are not older than any post after them, and the others.
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

// end ends the reading. The end of a walk downward moves the mark even if the walk is incomplete.
// The ledger of gaps records what is missing.
func (t *Timeline[T]) end(why Word) {
	t.list.Why, t.phase, t.m.From = why, phaseOver, ""
	if w := t.m.Walk; w != nil {
		t.m.Recent, t.m.Walk = Foremost(w.Top, t.m.Recent), nil
	}
	if t.feed.Up != nil {
		slices.SortStableFunc(t.m.Recent, func(a, b Seen) int { return byID(b, a) })
	}
}

// Anew returns m without its walk, so that reading restarts at the newest post. It is for a service
// that no longer accepts the walk's cursor.
func (m Mark) Anew() (Mark, error) {
	if m.Walk == nil {
		return m, errors.New("service: mark: no walk")
	}
	m.Recent, m.Walk = m.Walk.Base, nil
	return m, nil
}
