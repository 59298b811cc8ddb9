package mastodon

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

// Feed is a timeline of one server.
type Feed struct {
	op    string
	class service.Class
	path  string
	fixed url.Values
}

// PostsOf are the posts and boosts of the account with that id.
func PostsOf(id string) Feed {
	return Feed{"statuses", ClassPosts, "/api/v1/accounts/" + url.PathEscape(id) + "/statuses", nil}
}

// Tagged are the public posts with a hashtag, those of the server's own people
// only when local is set.
func Tagged(tag string, local bool) Feed {
	return Feed{"tag", ClassTag, "/api/v1/timelines/tag/" + url.PathEscape(strings.TrimPrefix(tag, "#")),
		localOnly(local)}
}

// Public is the public timeline, of the server's own people only when local is set.
func Public(local bool) Feed {
	return Feed{"public", ClassPublic, "/api/v1/timelines/public", localOnly(local)}
}

func localOnly(local bool) url.Values {
	if local {
		return url.Values{"local": {"true"}}
	}
	return nil
}

// postPage is how many posts a page is asked for: Mastodon's most.
const postPage = 40

// Reading says how a Feed is read. The zero value is the default.
type Reading struct {
	Paging Paging // what the server does, from Server; unknown is found out on the way
	Back   int    // posts to read of a feed that was never read; 0 = to its beginning
	// Overlap is how many posts are read again, which costs no request: what a
	// server shows late is found, and what was edited or deleted is noticed. Default 5, <0 = none.
	Overlap int
	Claimed int64 // posts by the profile, when that is known; <=0 = not
	Limits  service.Limits
}

// Timeline is one reading of a Feed: everything since a Mark, or everything. Not
// safe for concurrent use.
//
// Forward, where min_id is obeyed: the page just after the newest post read, and so on to the last; what is
// made meanwhile is read as well, now or the next time. Backward, else and the
// first time: from the newest down to what was read before; what is made meanwhile is above,
// and is read the next time. Whatever the server was said to do, each page is
// held against what was asked:
//
//   - a forward page with a post that cannot be after the asked one: min_id is
//     ignored; the page is taken as one of a reading backward.
//   - a full forward page from a server of which is not known what min_id means: it
//     may be the next posts or the newest, with a gap before. What is behind the page is looked at. (Of this a probe
//     is believed: a page that is full looks the same either way.)
//   - a backward page without anything new: max_id is ignored, and the one page is all.
type Timeline struct {
	c     *Client
	feed  Feed
	how   Reading
	m     service.Mark
	phase phase

	start   []service.Seen // Recent, when the reading began
	oldest  time.Time      // of start; for a feed that is in order of time, zero for others
	newest  time.Time
	forward trail           // of the forward phase
	from    string          // min_id of the next forward page
	check   bool            // the backward phase looks at what min_id means
	gapless bool            // nothing is missing between start and Recent
	met     map[string]bool // of start, those that were delivered again
	expect  []service.Seen  // those that should have been
	plain   bool            // since_id is not used: nothing came with it
	above   bool            // the page was asked for with since_id
	empty   bool            // the first page, from the newest post down, had nothing on it
	list    service.Listing
}

type phase uint8

const (
	phaseForward phase = iota
	phaseBack
	phaseOver
)

// Batch is one page of a reading.
type Batch struct {
	Posts []Post // new ones, the newest first
	Again []Post // read before and delivered again: Edited says whether they changed
}

// Timeline begins a reading of f from m, or goes on with the one that m is in
// the middle of.
func (c *Client) Timeline(f Feed, m service.Mark, how Reading) (*Timeline, error) {
	if f.path == "" || how.Back < 0 {
		return nil, fmt.Errorf("mastodon: timeline: no feed, or back %d", how.Back)
	}
	if err := how.Limits.Validate(); err != nil {
		return nil, err
	}
	if m.V == 0 {
		m.V = service.MarkVersion
	}
	if err := m.Valid(); err != nil {
		return nil, fmt.Errorf("mastodon: timeline: mark: %w", err)
	}
	how.Limits = how.Limits.WithDefaults()
	if how.Overlap == 0 {
		how.Overlap = 5
	}
	how.Overlap = min(max(how.Overlap, 0), service.MaxRecent/2)
	t := &Timeline{c: c, feed: f, how: how, m: m, start: m.Recent, met: map[string]bool{}}
	t.list.Claimed = -1
	if how.Claimed > 0 {
		t.list.Claimed = how.Claimed
	}
	if t.gapless = true; len(m.Base) > 0 {
		t.start, t.gapless = m.Base, len(m.Recent) > 0 && m.Base[0].ID == m.Recent[0].ID
	}
	if w := m.Walk; w != nil {
		again := *w
		for _, s := range slices.Concat(w.Base, w.Top, w.Pins) {
			again.Trail.Known.Add(s.ID)
		}
		t.m.Walk, t.phase, t.start = &again, phaseBack, w.Base
		t.list.Seen, t.list.Pages = w.Trail.Seen, w.Trail.Pages
	}
	if f.class == ClassPosts { // of many people, posts of other servers come when they come
		t.oldest, t.newest = service.Span(t.start)
	}
	if m.Walk != nil {
		return t, nil
	}
	for _, s := range slices.Concat(m.Recent, m.Base) {
		t.forward.Known.Add(s.ID)
	}
	few := f.class == ClassPosts && len(m.Recent) <= how.Overlap // one page has them all, the oldest too
	if len(m.Recent) == 0 || few || how.Paging.Min == service.Ignored || how.Paging.Min == service.Newest {
		t.back(service.Seen{}, nil)
		return t, nil
	}
	i := min(how.Overlap, len(m.Recent)-1)
	t.from, t.expect = m.Recent[i].ID, m.Recent[:i]
	return t, nil
}

// back begins the backward phase below the post max, zero = at the top.
// top is what Recent will begin with.
func (t *Timeline) back(max service.Seen, top []service.Seen) {
	w := &service.Walk{Base: t.start, Top: service.Foremost(top, nil), Under: max.At}
	if max.ID != "" {
		w.Trail.Cursor = below(max.ID)
	}
	w.Trail.Known = t.forward.Known
	w.Trail.Seen, w.Trail.Pages = t.list.Seen, t.list.Pages
	t.m.Base, t.m.Walk, t.phase = nil, w, phaseBack
}

// below is the cursor of the page under a post.
func below(id string) string { return url.Values{"max_id": {id}}.Encode() }

// Done says whether the reading has ended.
func (t *Timeline) Done() bool { return t.phase == phaseOver }

// Mark is how far the feed is read, the last Batch included: to be kept with it.
func (t *Timeline) Mark() service.Mark {
	m := t.m // its lists are never changed, but replaced
	if m.Walk != nil {
		w := *m.Walk
		w.Trail.Known = service.Known{}
		m.Walk = &w
	}
	return m
}

// Listing is how the reading stands.
func (t *Timeline) Listing() service.Listing {
	l := t.list
	l.Complete = t.phase == phaseOver && l.Why == ""
	return l
}

// Paging is what the server was found to do with what it was asked.
func (t *Timeline) Paging() Paging { return t.how.Paging }

// Absent are posts that were read before, should have been delivered again and
// were not: maybe deleted, which only Client.Post can say. For a reading that is Done.
func (t *Timeline) Absent() (ids []string) {
	for _, s := range t.expect {
		if !t.met[s.ID] {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Empty says whether the feed has no post at all, neither new nor known. For a reading that is Done.
func (t *Timeline) Empty() bool { return t.empty && t.Listing().Complete }

// Next is the next page, empty after the end. After a Fault that is Again the
// same page may be asked for once more; after any other the reading is Done, incomplete.
func (t *Timeline) Next(ctx context.Context) (Batch, error) {
	if t.phase == phaseOver {
		return Batch{}, nil
	}
	query, err := t.query()
	if err != nil {
		return Batch{}, err
	}
	a, err := t.c.get(ctx, ask{t.feed.op, t.feed.class, t.feed.path, query})
	var posts []Post
	bad := 0
	if err == nil {
		var ok bool
		if posts, bad, ok = t.c.posts(a.body); !ok {
			err = misshapen(t.feed.op)
		}
	}
	if err != nil {
		if t.list.Why = service.WordOf(err); t.list.Why == "" {
			t.list.Why = service.Unreachable
		}
		if !service.Again(err) {
			t.end(t.list.Why)
		}
		return Batch{}, err
	}
	t.list.Why = ""
	top := t.list.Pages == 0 && t.phase == phaseBack && t.m.Walk.Trail.Cursor == ""
	if top && len(posts)+bad == 0 {
		if query.Has("since_id") { // all that was newer is gone; is anything left?
			t.plain = true
			return t.Next(ctx)
		}
		t.empty = true
	}
	t.list.Pages++
	t.list.Strange += bad
	newestFirst(posts)
	if t.phase == phaseForward {
		return t.forwardPage(posts), nil
	}
	return t.backPage(posts, a), nil
}

func (t *Timeline) query() (url.Values, error) {
	q := url.Values{}
	if t.phase == phaseForward {
		q.Set("min_id", t.from)
	} else {
		w := t.m.Walk
		var err error
		if q, err = url.ParseQuery(w.Trail.Cursor); err != nil {
			return nil, fmt.Errorf("mastodon: %s: cursor: %w", t.feed.op, err)
		}
		t.above = t.how.Paging.Since == service.Obeyed && len(w.Base) > t.how.Overlap && !t.check && !t.plain
		if t.above {
			q.Set("since_id", w.Base[t.how.Overlap].ID)
		}
	}
	for k, v := range t.feed.fixed {
		q[k] = v
	}
	q.Set("limit", strconv.Itoa(postPage))
	return q, nil
}

// newestFirst turns a page that came the other way round. Ids tell nothing of
// their order, and pinned posts may stand out of it: the ends of the page decide.
func newestFirst(posts []Post) {
	if n := len(posts); n > 1 && posts[0].Created.Before(posts[n-1].Created) && !posts[0].Created.IsZero() &&
		ascending(posts) {
		slices.Reverse(posts)
	}
}

// ascending says whether most steps of a page lead to a later post.
func ascending(posts []Post) bool {
	up, down := 0, 0
	for i := 1; i < len(posts); i++ {
		switch d := posts[i].Created.Compare(posts[i-1].Created); {
		case d > 0:
			up++
		case d < 0:
			down++
		}
	}
	return up > down
}

// split divides a page into what is new and what was read before, and notes which
// of the latter came again. What an account wrote before all that is in the Mark was
// read, too: a pinned post, or the rest after many were deleted.
func (t *Timeline) split(posts []Post, fresh []bool) (b Batch) {
	for i, p := range posts {
		if !t.met[p.ID] && service.Has(t.start, p.ID) {
			t.met[p.ID] = true
			b.Again = append(b.Again, p)
		}
		if fresh[i] && (p.Created.IsZero() || !p.Created.Before(t.oldest)) {
			b.Posts = append(b.Posts, p)
		}
	}
	t.list.Seen += int64(len(b.Posts))
	return b
}

func idsOf(posts []Post) []string {
	ids := make([]string, len(posts))
	for i, p := range posts {
		ids[i] = p.ID
	}
	return ids
}

// order is a page as Recent has it: what is out of order, as pinned posts at the
// head of a page, behind the rest; not at all, when it is older than the rest of an account's.
func (t *Timeline) order(posts []Post) []service.Seen {
	in, out := inOrder(posts)
	first, _ := service.Span(in)
	for _, s := range out {
		if t.feed.class != ClassPosts || !s.At.Before(first) {
			in = append(in, s)
		}
	}
	return in
}

func lastOf(posts []Post) service.Seen {
	return service.Seen{ID: posts[len(posts)-1].ID, At: posts[len(posts)-1].Created}
}

// inOrder divides a page into posts none of which is older than one behind it,
// and the others.
func inOrder(posts []Post) (in, out []service.Seen) {
	seen := make([]service.Seen, len(posts))
	for i, p := range posts {
		seen[i] = service.Seen{ID: p.ID, At: p.Created}
	}
	return service.Descending(seen)
}

// forwardPage takes a page that was asked for with min_id.
func (t *Timeline) forwardPage(posts []Post) Batch {
	ids := idsOf(posts)
	if t.ignoresMin(ids) {
		return t.turn(posts)
	}
	next := t.from
	if len(ids) > 0 {
		next = t.order(posts)[0].ID
	}
	fresh, stop, _ := t.forward.Took(ids, next, t.how.Limits)
	b := t.split(posts, fresh)
	t.m.Recent = service.Foremost(t.order(posts), t.m.Recent)
	if len(t.expect) > 0 &&
		!slices.ContainsFunc(t.expect, func(s service.Seen) bool { return !slices.Contains(ids, s.ID) }) {
		t.whole() // it joins what was read, whatever min_id means
	}
	t.m.Base = t.start
	switch {
	case len(posts) < postPage/2, len(b.Posts) == 0:
		t.end("") // nothing more now, and the next reading begins here
	case stop == service.MaxPages || stop == service.MaxItems:
		t.end(stop)
	case t.how.Paging.Min == "" && len(b.Posts) == len(posts): // does it join what was read?
		t.check = true
		t.back(lastOf(posts), t.m.Recent)
		t.from = next
	default:
		t.from = next
	}
	return b
}

// ignoresMin says whether a forward page holds a post that is not after the one
// asked for: that one itself, or one that was read before it.
func (t *Timeline) ignoresMin(ids []string) bool {
	i := slices.IndexFunc(t.m.Recent, func(s service.Seen) bool { return s.ID == t.from })
	return i >= 0 && slices.ContainsFunc(ids, func(got string) bool { return service.Has(t.m.Recent[i:], got) })
}

// turn takes a page that min_id had no say in: it is of the newest posts. The
// reading goes on backward below it, if it does not join what was read before.
func (t *Timeline) turn(posts []Post) Batch {
	t.how.Paging.Min = service.Ignored
	fresh := make([]bool, len(posts))
	for i, p := range posts {
		fresh[i] = t.forward.Known.Add(p.ID)
	}
	b := t.split(posts, fresh)
	t.back(lastOf(posts), slices.Concat(t.order(posts), t.m.Recent))
	if t.reached(posts) {
		t.joined(false)
	}
	return b
}

// backPage takes a page of the backward phase.
func (t *Timeline) backPage(posts []Post, a answer) Batch {
	w, ids, next := t.m.Walk, idsOf(posts), ""
	switch {
	case len(posts) == 0 && a.next != "":
		next = onlyMax(a.next) // a page may be empty when its posts are not for all
	case len(posts) > 0 && (len(posts) >= postPage || !a.link || a.next != ""):
		next = below(ids[len(ids)-1])
	}
	if ignoresMax(w, posts) {
		return t.ignoredMax(posts)
	}
	fresh, stop, over := w.Trail.Took(ids, next, t.how.Limits)
	b := t.split(posts, fresh)
	if len(w.Top) < service.MaxRecent && !t.check {
		w.Top = service.Foremost(w.Top, t.order(posts))
	}
	_, pins := inOrder(posts)
	w.Pins = service.Foremost(w.Pins, pins)
	if len(posts) > 0 {
		w.Under = lastOf(posts).At
	}
	reached := t.reached(posts)
	switch {
	case t.check:
		t.checked(b, reached, stop, over)
	case reached, over && stop == "" && len(w.Base) > 0:
		t.joined(t.feed.class == ClassPosts && !t.above && (next == "" || len(posts) < postPage/2))
	case t.how.Paging.Max == service.Ignored && next != "":
		t.single()
	case over:
		t.end(stop)
	case len(w.Base) == 0 && t.how.Back > 0 && t.list.Seen >= int64(t.how.Back):
		t.end(service.FarEnough)
	}
	return b
}

// ignoresMax says whether a backward page holds the post that it should lie
// below, or is mostly of posts above that.
func ignoresMax(w *service.Walk, posts []Post) bool {
	asked, above := maxOf(w.Trail.Cursor), 0
	if asked == "" {
		return false
	}
	over := w.Top // those read that lie above it
	if i := slices.IndexFunc(over, func(s service.Seen) bool { return s.ID == asked }); i >= 0 {
		over = over[:i]
	}
	for _, p := range posts {
		switch {
		case p.ID == asked:
			return true
		case service.Has(over, p.ID) && !service.Has(w.Base, p.ID), !w.Under.IsZero() && p.Created.After(w.Under):
			above++
		}
	}
	return 2*above > len(posts)
}

// ignoredMax takes a backward page that lies where it should not: the server has
// one page only. What is in it was read, or is for the next reading.
func (t *Timeline) ignoredMax(posts []Post) Batch {
	t.how.Paging.Max = service.Ignored
	b, top := t.split(posts, make([]bool, len(posts))), t.m.Walk.Top
	switch {
	case t.reached(posts):
		t.joined(false)
	case t.check && !slices.ContainsFunc(posts, func(p Post) bool { return service.Has(top, p.ID) }):
		t.obeyed() // the newest posts are others than those that min_id gave
	default:
		t.single()
	}
	t.check = false
	return b
}

// whole moves what the feed is read to without a gap up to the newest post read. A Mark
// holds service.MaxRecent of what was read: so they are those that are shown when what is behind the
// next page is looked at, by who goes on with it.
func (t *Timeline) whole() {
	if !t.gapless {
		return
	}
	t.start = t.m.Recent
	if t.feed.class == ClassPosts {
		t.oldest, t.newest = service.Span(t.start)
	}
}

// obeyed goes on forward: min_id gives the next posts.
func (t *Timeline) obeyed() {
	t.how.Paging.Min = service.Obeyed
	t.whole()
	t.m.Base, t.m.Walk, t.phase = t.start, nil, phaseForward
}

// single ends the reading of a server that has one page only: whole, when that
// is as much as is claimed of a feed that was never read.
func (t *Timeline) single() {
	if t.list.Claimed > 0 && t.list.Seen >= t.list.Claimed && len(t.start) == 0 {
		t.end("")
		return
	}
	t.end(service.NothingNew)
}

// onlyMax keeps of the query of a Link what pages backward.
func onlyMax(query string) string {
	if id := maxOf(query); id != "" {
		return below(id)
	}
	return ""
}

func maxOf(query string) string {
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return q.Get("max_id")
}

// reached says whether a page ends among what was read before: its last post is
// one of that, or is older than the newest of it.
func (t *Timeline) reached(posts []Post) bool {
	if len(posts) == 0 || len(t.start) == 0 {
		return false
	}
	last := posts[len(posts)-1]
	return service.Has(t.start, last.ID) || !last.Created.IsZero() && last.Created.Before(t.newest)
}

// joined ends a reading that came down to what was read before, and notes what
// its pages should have held of that: all that is newer than the oldest they held, or all where nothing lies below.
func (t *Timeline) joined(bottom bool) {
	t.expect = nil
	for _, s := range slices.Concat(t.m.Walk.Top, t.m.Walk.Pins) { // of the visits before this one, too
		t.met[s.ID] = true
	}
	for i, s := range t.start {
		if t.met[s.ID] {
			t.expect = t.start[:i]
		}
	}
	if bottom {
		t.expect = t.start
	}
	t.end("")
}

// checked ends the look at what lies behind the first forward page.
func (t *Timeline) checked(b Batch, reached bool, stop service.Word, over bool) {
	t.check = false
	switch {
	case len(b.Posts) > 0: // min_id gave the newest posts: the gap is read backward
		t.how.Paging.Min = service.Newest
		if reached || over {
			t.end(stop)
		}
	default: // nothing lay between: it gave the next ones
		t.obeyed()
	}
}

// end ends the reading. A walk backward that is over moves the mark, also when
// it is not whole: what it did not have is for the ledger of gaps.
func (t *Timeline) end(why service.Word) {
	t.list.Why, t.phase, t.m.Base = why, phaseOver, nil
	if w := t.m.Walk; w != nil {
		t.m.Recent, t.m.Walk = service.Renewed(w.Top, t.m.Recent), nil
	}
}
