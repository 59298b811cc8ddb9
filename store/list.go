package store

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// A list is kept as one row an account, with the spans of time in which it was
// met, and one row a walk. That an account is gone is not written: it follows
// from a complete walk that began after the account was last met, so that a walk
// of a list of millions writes what it met and nothing else, page by page. It is
// written when the account comes back, as the end of its span.
//
// Clocks: a walk judges by its own Began what the walks before met. If the peer
// before was ahead by more than the time between its last page and this walk,
// what is gone is found so by the next walk.

// edge is the state of one account in a list: its spans by First, in order.
type edge []Span

func (x edge) encode() []byte {
	var e encoder
	e.byte(rowVersion)
	e.uint(uint64(len(x)))
	for _, s := range x {
		e.time(s.First)
		e.time(s.Last)
		e.time(s.Gone)
	}
	return e.b
}

func parseEdge(b []byte) (edge, error) {
	d := newDecoder(b)
	n := d.uint(MaxEdgeSpans)
	var x edge
	for range n {
		s := Span{First: d.time(), Last: d.time(), Gone: d.time()}
		if d.bad || s.First.IsZero() || s.Last.Before(s.First) || len(x) > 0 && !s.First.After(x[len(x)-1].First) {
			d.bad = true
			break
		}
		x = append(x, s)
	}
	d.bad = d.bad || n == 0
	return x, d.end("edge")
}

func checkEdge(id itemID, b []byte) ([]byte, time.Time, error) {
	x, err := parseEdge(b)
	if err == nil {
		err = checkList(id)
	}
	if err == nil {
		_, err = partition.KeyFromWire(id.part)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return x.encode(), x.last(), nil
}

// checkList refuses what is no list.
func checkList(id itemID) error {
	if k := id.key.Kind(); k != partition.KindFollowers && k != partition.KindFollowing {
		return fmt.Errorf("%.80q is no list", id.key)
	}
	return nil
}

// last is when the account was met last.
func (x edge) last() (at time.Time) {
	for _, s := range x {
		at = last(at, s.Last)
	}
	return at
}

// join has the spans of both; of two that begin at one moment, the later ends.
func (x edge) join(y edge) edge {
	by := map[int64]Span{}
	for _, s := range append(slices.Clone(x), y...) {
		had := by[s.First.UnixMicro()]
		by[s.First.UnixMicro()] = Span{First: s.First, Last: last(s.Last, had.Last), Gone: last(s.Gone, had.Gone)}
	}
	out := make(edge, 0, len(by))
	for _, at := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[at])
	}
	return out[max(len(out)-MaxEdgeSpans, 0):]
}

func joinEdges(a, b []byte) ([]byte, error) {
	x, err := parseEdge(a)
	if err != nil {
		return nil, err
	}
	y, err := parseEdge(b)
	if err != nil {
		return nil, err
	}
	return x.join(y).encode(), nil
}

// met is x with a meeting at a time no earlier than the last.
func (x edge) met(at time.Time, ws walks) edge {
	if len(x) == 0 {
		return edge{{First: at, Last: at}}
	}
	out := slices.Clone(x)
	i := out.latest()
	at = last(at, out[i].Last)
	if gone := ws.missed(out[i].Last); !gone.IsZero() && at.After(out[i].Last) && at.After(out[len(out)-1].First) {
		out[i].Gone = gone
		return append(out, Span{First: at, Last: at})
	}
	out[i].Last = at
	return out
}

// latest is the span that was met last.
func (x edge) latest() (best int) {
	for i, s := range x {
		if !s.Last.Before(x[best].Last) {
			best = i
		}
	}
	return best
}

// show is x as an Edge.
func (x edge) show(to partition.Key, ws walks, doubted time.Time) Edge {
	spans := slices.Clone(x)
	i := x.latest()
	spans[i].Gone = ws.missed(spans[i].Last)
	for j := range spans { // what another peer met later is no end
		if j != i && spans[j].Gone.Before(spans[j].Last) {
			spans[j].Gone = spans[j].Last
		}
	}
	e := Edge{To: to, FirstSeen: spans[0].First, LastSeen: spans[i].Last}
	if gone := spans[i].Gone; !gone.IsZero() {
		e.GoneAt = &gone
	}
	if len(spans) > 1 {
		e.Spans = spans
	}
	switch met := spans[i]; {
	case !doubted.IsZero() && !doubted.Before(met.Last):
		e.Sure = SureDoubted
	case slices.ContainsFunc(ws, func(w Walk) bool {
		return !met.Last.Before(w.Began) && !met.First.After(w.At) &&
			w.At.After(doubted)
	}):
		e.Sure = SureWhole
	default:
		e.Sure = SurePart
	}
	return e
}

// doubted is the end of the newest reading of list that found it to be that of another account, zero = none did.
func (s *Store) doubted(id siteID, list partition.Key) (at time.Time, err error) {
	err = s.eachWalk(id, list, func(w Walk) (bool, error) {
		if w.Ended && !w.Complete && (w.Why == WhyNotTheirs || w.Why == WhyDoubted) {
			at = last(at, w.At)
		}
		return true, nil
	})
	return at, err
}

// At says whether e was in its list at a time, as far as is known: from when it was
// first met until a complete walk missed it.
func (e Edge) At(t time.Time) bool {
	return slices.ContainsFunc(e.Times(), func(s Span) bool {
		return !t.Before(s.First) && (s.Gone.IsZero() || t.Before(s.Gone) || !t.After(s.Last))
	})
}

// Times are the spans of e, one or more.
func (e Edge) Times() []Span {
	if len(e.Spans) > 0 {
		return e.Spans
	}
	s := Span{First: e.FirstSeen, Last: e.LastSeen}
	if e.GoneAt != nil {
		s.Gone = *e.GoneAt
	}
	return []Span{s}
}

// walks are the complete walks of a list, by Began.
type walks []Walk

// missed is the end of the first walk that began after a time.
func (ws walks) missed(after time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(ws, after, func(w Walk, t time.Time) int {
		return cmp.Or(w.Began.Compare(t), -1) // the one that began then saw it
	})
	if i == len(ws) {
		return time.Time{}
	}
	return ws[i].At
}

func (w Walk) encode() []byte {
	var e encoder
	e.byte(rowVersion)
	e.time(w.At)
	e.uint(uint64(max(w.Seen, 0)))
	e.uint(uint64(max(w.Claimed, -1) + 1))
	e.flag(w.Ended)
	e.flag(w.Complete)
	e.text(w.Why)
	return e.b
}

func parseWalk(id itemID, b []byte) (Walk, error) {
	d := newDecoder(b)
	w := Walk{List: id.key, At: d.time(), Seen: int64(d.uint(math.MaxInt64)), Claimed: int64(d.uint(math.MaxInt64)) - 1}
	w.Ended, w.Complete, w.Why = d.byte() == 1, d.byte() == 1, d.text(maxHeader)
	var err error
	if w.Began, err = partTime(id.part); err == nil && (len(id.part) != 8 || w.At.Before(w.Began) || w.Complete &&
		!w.Ended) {
		err = errBadRow
	}
	if err := d.end("walk"); err != nil {
		return w, err
	}
	return w, err
}

func checkWalk(id itemID, b []byte) ([]byte, time.Time, error) {
	w, err := parseWalk(id, b)
	if err == nil {
		err = checkList(id)
	}
	return w.encode(), w.At, err
}

// list writes a page of a commit.
func (t *txn) list(id siteID, p ListPage, now time.Time) error {
	if p.At.IsZero() {
		p.At = now
	}
	began := p.Walk.UTC().Truncate(tick)
	at := last(p.At.UTC().Truncate(tick), began)
	wid := itemID{siteID: id, table: tabWalk, key: p.List, part: string(timePart(began))}
	had, err := t.state(wid)
	if err != nil {
		return err
	}
	w := Walk{List: p.List, Began: began, At: at}
	if had != nil {
		if w, err = parseWalk(wid, had); err != nil {
			return err
		}
		if w.At = last(w.At, at); w.At.After(at) {
			at = w.At
		}
	}
	ws, err := t.walks(id, p.List)
	if err != nil {
		return err
	}
	for _, to := range p.Accounts {
		if _, err := partition.KeyFromWire(string(to)); err != nil {
			continue
		}
		w.Seen++
		eid := itemID{siteID: id, table: tabEdge, key: p.List, part: string(to)}
		var x edge
		b, err := t.state(eid)
		if err == nil && b != nil {
			x, err = parseEdge(b)
		}
		if err == nil {
			err = t.item(eid, x.met(at, ws).encode())
		}
		if err != nil {
			return err
		}
	}
	w.Claimed = max(p.Claimed, -1)
	if p.End {
		w.Ended, w.Complete, w.Why = true, p.Complete, ""
		if !p.Complete {
			w.Why = clip(p.Why, maxHeader)
		}
	}
	if had != nil { // a page later than those before, if in the same moment
		if old, err := parseWalk(wid, had); err != nil || !w.At.After(old.At) && !bytes.Equal(w.encode(), had) {
			w.At = old.At.Add(tick)
		}
	}
	return t.item(wid, w.encode())
}

// walks are the complete walks of list before this batch, and those in it.
func (t *txn) walks(id siteID, list partition.Key) (walks, error) {
	out, err := t.s.walks(id, list)
	if err != nil {
		return nil, err
	}
	prefix := itemKey(tabWalk, id, list)
	for row, b := range t.items {
		part, ok := bytes.CutPrefix([]byte(row), prefix)
		if !ok {
			continue
		}
		w, err := parseWalk(itemID{siteID: id, table: tabWalk, key: list, part: string(part)}, b)
		if err != nil {
			return nil, err
		}
		out = slices.DeleteFunc(out, func(o Walk) bool { return o.Began.Equal(w.Began) })
		if w.Complete {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b Walk) int { return a.Began.Compare(b.Began) })
	return out, nil
}

func (s *Store) walks(id siteID, list partition.Key) (walks, error) {
	var out walks
	err := s.eachWalk(id, list, func(w Walk) (bool, error) {
		if w.Complete {
			out = append(out, w)
		}
		return true, nil
	})
	return out, err
}

func (s *Store) eachWalk(id siteID, list partition.Key, fn func(Walk) (bool, error)) error {
	prefix := itemKey(tabWalk, id, list)
	return s.scan(prefix, after(prefix), func(key, value []byte) (bool, error) {
		w, err := parseWalk(itemID{siteID: id, table: tabWalk, key: list, part: string(key[len(prefix):])}, value)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		return fn(w)
	})
}

// Walks calls fn for what is kept of the readings of list in sl (0: its hash
// slice), in order of Began, until it answers false.
func (s *Store) Walks(sl partition.Slice, list partition.Key, fn func(Walk) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.eachWalk(s.idIn(sl, list), list, fn); err != nil {
		return fmt.Errorf("store: walks of %s: %w", list, err)
	}
	return nil
}

// Edges calls fn for the accounts that were ever met in list in sl (0: its hash
// slice), in order of To after from, until it answers false. The list as it was at
// a time are those of which Edge.At is true.
func (s *Store) Edges(sl partition.Slice, list, from partition.Key, fn func(Edge) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	id := s.idIn(sl, list)
	ws, err := s.walks(id, list)
	var doubted time.Time
	if err == nil {
		doubted, err = s.doubted(id, list)
	}
	prefix := itemKey(tabEdge, id, list)
	if err == nil {
		err = s.scan(lowerItem(prefix, string(from)), after(prefix), func(key, value []byte) (bool, error) {
			x, err := parseEdge(value)
			if err != nil {
				return false, fmt.Errorf("row %q: %w", key, err)
			}
			return fn(x.show(partition.Key(key[len(prefix):]), ws, doubted))
		})
	}
	if err != nil {
		return fmt.Errorf("store: edges of %s: %w", list, err)
	}
	return nil
}

// SliceLists calls fn for the lists of sl of which there is a walk, in order of
// site and Key after from, until it answers false.
func (s *Store) SliceLists(sl partition.Slice, from partition.Key, fn func(partition.Key) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := slicePrefix(tabWalk, sl)
	lower := p
	if from != "" {
		lower = after(itemKey(tabWalk, s.idIn(sl, from), from))
	}
	for more := true; more; {
		more = false
		var list partition.Key
		err := s.scan(lower, after(p), func(key, _ []byte) (bool, error) {
			id, err := splitItem(tabWalk, key)
			list, lower = id.key, after(itemKey(tabWalk, id.siteID, id.key))
			return false, err
		})
		if err == nil && list != "" {
			more, err = fn(list)
		}
		if err != nil {
			return fmt.Errorf("store: lists of %s: %w", sl, err)
		}
	}
	return nil
}
