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

// PostsOf returns the feed of the posts and boosts of the account with that id.
func PostsOf(id string) Feed {
	return Feed{"statuses", ClassPosts, "/api/v1/accounts/" + url.PathEscape(id) + "/statuses", nil}
}

// Tagged returns the feed of the public posts with a hashtag. With local, it has only posts of the
// server's own accounts.
func Tagged(tag string, local bool) Feed {
	return Feed{"tag", ClassTag, "/api/v1/timelines/tag/" + url.PathEscape(strings.TrimPrefix(tag, "#")),
		localOnly(local)}
}

// Public returns the public timeline. With local, it has only posts of the server's own accounts.
func Public(local bool) Feed {
	return Feed{"public", ClassPublic, "/api/v1/timelines/public", localOnly(local)}
}

func localOnly(local bool) url.Values {
	if local {
		return url.Values{"local": {"true"}}
	}
	return nil
}

// postPage is the number of posts requested per page, which is Mastodon's maximum.
const postPage = 40

// Reading is how a Feed is read. The zero value is the default.
type Reading struct {
	Paging Paging // from Server; unknown parameters are tested by the reading
	Back   int    // posts to read of a feed that was never read; 0 = to its beginning
	// Overlap is how many posts are read again, which costs no request. So the reading finds late
	// posts and notices edited or deleted ones. Default 5, <0 = none.
	Overlap int
	Claimed int64 // posts by the profile; <=0 = unknown
	Limits  service.Limits
}

// Timeline is one reading of a Feed: everything since a Mark, or everything. It is not safe for
// concurrent use.
//
// If the server obeys min_id, it reads forward: the page just after the newest post read, and so
// on. It also reads posts that are created meanwhile, now or the next time. Otherwise, and the
// first time, it reads backward: from the newest post down to the posts read before. Posts that are
// created meanwhile are above, and the next reading fetches them.
//
// Each page is checked against its request, for any knowledge about the server:
//
//   - A forward page with a post that cannot be after the requested one: the server
//     ignores min_id. The page is used as one of a reading backward.
//   - A full forward page, if the meaning of min_id is unknown: it may contain the next
//     posts, or the newest ones with a gap before them. The reading checks the page
//     behind it. (A known probe result is used instead, because both pages look alike.)
//   - A backward page without new posts: the server ignores max_id and has one page only.
type Timeline struct {
	c     *Client
	feed  Feed
	how   Reading
	m     service.Mark
	phase phase

	start   []service.Seen // Recent at the start of the reading
	oldest  time.Time      // oldest time in start; zero for a feed that is not in order of time
	newest  time.Time
	forward trail           // of the forward phase
	from    string          // min_id of the next forward page
	check   bool            // the backward phase tests the meaning of min_id
	gapless bool            // there is no gap between start and Recent
	met     map[string]bool // posts of start that were delivered again
	expect  []service.Seen  // posts of start that should be delivered again
	plain   bool            // do not use since_id: a page with it was empty
	above   bool            // the request of the page had since_id
	empty   bool            // the first page, from the newest post down, was empty
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
	Posts []Post // new posts, newest first
	Again []Post // posts read before and delivered again: Edited shows changes
}

// Timeline starts a reading of f from m, or continues the reading in m.
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
	// in feeds of many people, posts of other servers arrive out of order
	if f.class == ClassPosts {
		t.oldest, t.newest = service.Span(t.start)
	}
	if m.Walk != nil {
		return t, nil
	}
	for _, s := range slices.Concat(m.Recent, m.Base) {
		t.forward.Known.Add(s.ID)
	}
	// one page contains them all, and the oldest too
	few := f.class == ClassPosts && len(m.Recent) <= how.Overlap
	if len(m.Recent) == 0 || few || how.Paging.Min == service.Ignored || how.Paging.Min == service.Newest {
		t.back(service.Seen{}, nil)
		return t, nil
	}
	i := min(how.Overlap, len(m.Recent)-1)
	t.from, t.expect = m.Recent[i].ID, m.Recent[:i]
	return t, nil
}

// back starts the backward phase below the post max, zero = at the newest post. top is the start of
// the next Recent.
func (t *Timeline) back(max service.Seen, top []service.Seen) {
	w := &service.Walk{Base: t.start, Top: service.Foremost(top, nil), Under: max.At}
	if max.ID != "" {
		w.Trail.Cursor = below(max.ID)
	}
	w.Trail.Known = t.forward.Known
	w.Trail.Seen, w.Trail.Pages = t.list.Seen, t.list.Pages
	t.m.Base, t.m.Walk, t.phase = nil, w, phaseBack
}

// below returns the cursor of the page below a post.
func below(id string) string { return url.Values{"max_id": {id}}.Encode() }

// Done reports whether the reading has ended.
func (t *Timeline) Done() bool { return t.phase == phaseOver }

// Mark returns how far the feed is read, including the last Batch. The caller stores both together.
func (t *Timeline) Mark() service.Mark {
	m := t.m // its lists are replaced, never changed
	if m.Walk != nil {
		w := *m.Walk
		w.Trail.Known = service.Known{}
		m.Walk = &w
	}
	return m
}

// Listing returns the progress of the reading.
func (t *Timeline) Listing() service.Listing {
	l := t.list
	l.Complete = t.phase == phaseOver && l.Why == ""
	return l
}

// Paging returns how the server treats the parameters, as far as known.
func (t *Timeline) Paging() Paging { return t.how.Paging }

// Absent returns the posts that were read before and that the reading did not deliver again. They
// may be deleted; only Client.Post can tell. Call it when the reading is Done.
func (t *Timeline) Absent() (ids []string) {
	for _, s := range t.expect {
		if !t.met[s.ID] {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Empty reports whether the feed has no post at all, new or known. Call it when the reading is
// Done.
func (t *Timeline) Empty() bool { return t.empty && t.Listing().Complete }

// Next returns the next page, empty after the end. If a Fault is Again, the caller may retry the
// same page. After any other error the reading is Done and incomplete.
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
		if query.Has("since_id") { // all newer posts are gone; check whether older ones remain
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

// newestFirst reverses a page that is oldest first. Ids do not show the order, and pinned posts may
// be out of order. So the ends of the page and most of its steps decide.
func newestFirst(posts []Post) {
	if n := len(posts); n > 1 && posts[0].Created.Before(posts[n-1].Created) && !posts[0].Created.IsZero() &&
		ascending(posts) {
		slices.Reverse(posts)
	}
}

// ascending reports whether most steps of a page lead to a later post.
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

// split divides a page into new posts and posts that were read before. Posts older than everything
// in the Mark count as read: pinned posts, or older posts after many deletions.
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

// order returns a page in the form of Recent. Posts out of order, like pinned ones at the head of a
// page, go behind the rest. If they are older than the rest of an account's page, they are left
// out.
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

// inOrder divides a page into posts that are not older than any post after them, and the others.
func inOrder(posts []Post) (in, out []service.Seen) {
	seen := make([]service.Seen, len(posts))
	for i, p := range posts {
		seen[i] = service.Seen{ID: p.ID, At: p.Created}
	}
	return service.Descending(seen)
}

// forwardPage applies a page that was requested with min_id.
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
		t.whole() // the page joins the posts read before, for any meaning of min_id
	}
	t.m.Base = t.start
	switch {
	case len(posts) < postPage/2, len(b.Posts) == 0:
		t.end("") // no more posts now; the next reading starts here
	case stop == service.MaxPages || stop == service.MaxItems:
		t.end(stop)
	// check whether the page joins the posts read before
	case t.how.Paging.Min == "" && len(b.Posts) == len(posts):
		t.check = true
		t.back(lastOf(posts), t.m.Recent)
		t.from = next
	default:
		t.from = next
	}
	return b
}

// ignoresMin reports whether a forward page contains a post that is not after the requested one:
// that post itself, or one that was read before it.
func (t *Timeline) ignoresMin(ids []string) bool {
	i := slices.IndexFunc(t.m.Recent, func(s service.Seen) bool { return s.ID == t.from })
	return i >= 0 && slices.ContainsFunc(ids, func(got string) bool { return service.Has(t.m.Recent[i:], got) })
}

// turn applies a page for which the server ignored min_id, so it contains the newest posts. The
// reading continues backward below it, unless it already joins the posts read before.
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

// backPage applies a page of the backward phase.
func (t *Timeline) backPage(posts []Post, a answer) Batch {
	w, ids, next := t.m.Walk, idsOf(posts), ""
	switch {
	case len(posts) == 0 && a.next != "":
		next = onlyMax(a.next) // a page may be empty if its posts are not public
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

// ignoresMax reports whether a backward page contains the post above it, or mostly posts that are
// above that one.
func ignoresMax(w *service.Walk, posts []Post) bool {
	asked, above := maxOf(w.Trail.Cursor), 0
	if asked == "" {
		return false
	}
	over := w.Top // the posts read above it
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

// ignoredMax applies a backward page from a server that ignores max_id and so has one page only.
// Its posts were read, or belong to the next reading.
func (t *Timeline) ignoredMax(posts []Post) Batch {
	t.how.Paging.Max = service.Ignored
	b, top := t.split(posts, make([]bool, len(posts))), t.m.Walk.Top
	switch {
	case t.reached(posts):
		t.joined(false)
	case t.check && !slices.ContainsFunc(posts, func(p Post) bool { return service.Has(top, p.ID) }):
		t.obeyed() // the newest posts differ from those of min_id, so min_id works
	default:
		t.single()
	}
	t.check = false
	return b
}

// whole moves start to the newest post read, because there is no gap up to it. A Mark has only
// service.MaxRecent posts. After a resume, exactly these are known when the next page is checked.
func (t *Timeline) whole() {
	if !t.gapless {
		return
	}
	t.start = t.m.Recent
	if t.feed.class == ClassPosts {
		t.oldest, t.newest = service.Span(t.start)
	}
}

// obeyed continues forward: min_id returns the next posts.
func (t *Timeline) obeyed() {
	t.how.Paging.Min = service.Obeyed
	t.whole()
	t.m.Base, t.m.Walk, t.phase = t.start, nil, phaseForward
}

// single ends the reading of a server with one page only. It is complete if the feed was never read
// and the page has all claimed posts.
func (t *Timeline) single() {
	if t.list.Claimed > 0 && t.list.Seen >= t.list.Claimed && len(t.start) == 0 {
		t.end("")
		return
	}
	t.end(service.NothingNew)
}

// onlyMax keeps max_id of the query of a Link.
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

// reached reports whether a page ends among the posts that were read before. Its last post is one
// of them, or is older than the newest of them.
func (t *Timeline) reached(posts []Post) bool {
	if len(posts) == 0 || len(t.start) == 0 {
		return false
	}
	last := posts[len(posts)-1]
	return service.Has(t.start, last.ID) || !last.Created.IsZero() && last.Created.Before(t.newest)
}

// joined ends a reading that reached the posts that were read before. It sets the posts that the
// pages should have contained. These are all newer than the oldest one found again, or all if
// nothing is below.
func (t *Timeline) joined(bottom bool) {
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
	if bottom {
		t.expect = t.start
	}
	t.end("")
}

// checked ends the check of the page behind the first forward page.
func (t *Timeline) checked(b Batch, reached bool, stop service.Word, over bool) {
	t.check = false
	switch {
	case len(b.Posts) > 0: // min_id returned the newest posts: read the gap backward
		t.how.Paging.Min = service.Newest
		if reached || over {
			t.end(stop)
		}
	default: // no gap: min_id returned the next posts
		t.obeyed()
	}
}

// end ends the reading. The end of a walk backward moves the mark even if the walk is incomplete.
// The ledger of gaps records what is missing.
func (t *Timeline) end(why service.Word) {
	t.list.Why, t.phase, t.m.Base = why, phaseOver, nil
	if w := t.m.Walk; w != nil {
		t.m.Recent, t.m.Walk = service.Renewed(w.Top, t.m.Recent), nil
	}
}
