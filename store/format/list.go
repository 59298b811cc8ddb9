package format

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A list is stored as one row for each account, with the periods in which it was in the list, and
// one row for each walk. No row says that an account is gone. That follows from a complete walk
// that began after the account was last seen. So a walk of a list of millions writes only what it
// saw, page by page. When the account comes back, its row gets the end of its earlier span.
//
// Clocks: a walk compares its own Began with the times that earlier walks wrote. An earlier peer's
// clock may have been ahead by more than the time between its last page and this walk. Then only
// the next walk finds what is gone.

// Edge is the state of one account in a list: its spans, ordered by First.
type Edge []store.Span

// Encode returns the row of x.
func (x Edge) Encode() []byte {
	var e Encoder
	e.Byte(RowVersion)
	e.uint(uint64(len(x)))
	for _, s := range x {
		e.Time(s.First)
		e.Time(s.Last)
		e.Time(s.Gone)
	}
	return e.B
}

// ParseEdge is the inverse of Edge.Encode. It checks the spans and their order.
func ParseEdge(b []byte) (Edge, error) {
	d := NewDecoder(b)
	n := d.Uint(store.MaxEdgeSpans)
	var x Edge
	for range n {
		s := store.Span{First: d.Time(), Last: d.Time(), Gone: d.Time()}
		if d.Bad || s.First.IsZero() || s.Last.Before(s.First) || len(x) > 0 && !s.First.After(x[len(x)-1].First) {
			d.Bad = true
			break
		}
		x = append(x, s)
	}
	d.Bad = d.Bad || n == 0
	return x, d.End("edge")
}

// checkEdge is CheckItem for accounts of a list.
func checkEdge(id ItemID, b []byte) ([]byte, time.Time, error) {
	x, err := ParseEdge(b)
	if err == nil {
		err = checkList(id)
	}
	if err == nil {
		_, err = partition.KeyFromWire(id.Part)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return x.Encode(), x.last(), nil
}

// checkList returns an error if the Key is not a list.
func checkList(id ItemID) error {
	if k := id.Key.Kind(); k != partition.KindFollowers && k != partition.KindFollowing {
		return fmt.Errorf("%.80q is no list", id.Key)
	}
	return nil
}

// last returns when the account was last seen.
func (x Edge) last() (at time.Time) {
	for _, s := range x {
		at = store.Latest(at, s.Last)
	}
	return at
}

// join returns the spans of both. If two spans begin at the same moment, it takes the later end.
func (x Edge) join(y Edge) Edge {
	by := map[int64]store.Span{}
	for _, s := range append(slices.Clone(x), y...) {
		had := by[s.First.UnixMicro()]
		by[s.First.UnixMicro()] = store.Span{First: s.First, Last: store.Latest(s.Last, had.Last),
			Gone: store.Latest(s.Gone, had.Gone)}
	}
	out := make(Edge, 0, len(by))
	for _, at := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[at])
	}
	return out[max(len(out)-store.MaxEdgeSpans, 0):]
}

// joinEdges joins two encoded Edges.
func joinEdges(a, b []byte) ([]byte, error) {
	x, err := ParseEdge(a)
	if err != nil {
		return nil, err
	}
	y, err := ParseEdge(b)
	if err != nil {
		return nil, err
	}
	return x.join(y).Encode(), nil
}

// Met returns x after the account was seen at a time, which counts as no earlier than the last one.
func (x Edge) Met(at time.Time, ws Walks) Edge {
	if len(x) == 0 {
		return Edge{{First: at, Last: at}}
	}
	out := slices.Clone(x)
	i := out.latest()
	at = store.Latest(at, out[i].Last)
	if gone := ws.missed(out[i].Last); !gone.IsZero() && at.After(out[i].Last) && at.After(out[len(out)-1].First) {
		out[i].Gone = gone
		return append(out, store.Span{First: at, Last: at})
	}
	out[i].Last = at
	return out
}

// latest returns the span with the latest end.
func (x Edge) latest() (best int) {
	for i, s := range x {
		if !s.Last.Before(x[best].Last) {
			best = i
		}
	}
	return best
}

// Show returns x as a store.Edge.
func (x Edge) Show(to partition.Key, ws Walks, doubted time.Time) store.Edge {
	spans := slices.Clone(x)
	i := x.latest()
	spans[i].Gone = ws.missed(spans[i].Last)
	for j := range spans { // a span that another peer saw for longer has not ended
		if j != i && spans[j].Gone.Before(spans[j].Last) {
			spans[j].Gone = spans[j].Last
		}
	}
	e := store.Edge{To: to, FirstSeen: spans[0].First, LastSeen: spans[i].Last}
	if gone := spans[i].Gone; !gone.IsZero() {
		e.GoneAt = &gone
	}
	if len(spans) > 1 {
		e.Spans = spans
	}
	switch met := spans[i]; {
	case !doubted.IsZero() && !doubted.Before(met.Last):
		e.Sure = store.SureDoubted
	case slices.ContainsFunc(ws, func(w store.Walk) bool {
		return !met.Last.Before(w.Began) && !met.First.After(w.At) &&
			w.At.After(doubted)
	}):
		e.Sure = store.SureWhole
	default:
		e.Sure = store.SurePart
	}
	return e
}

// Walks are the complete walks of a list, by Began.
type Walks []store.Walk

// missed returns the end of the first walk that began after a time.
func (ws Walks) missed(after time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(ws, after, func(w store.Walk, t time.Time) int {
		return cmp.Or(w.Began.Compare(t), -1) // a walk that began at that time saw it
	})
	if i == len(ws) {
		return time.Time{}
	}
	return ws[i].At
}

// EncodeWalk returns the row of w, without List and Began.
func EncodeWalk(w store.Walk) []byte {
	var e Encoder
	e.Byte(RowVersion)
	e.Time(w.At)
	e.uint(uint64(max(w.Seen, 0)))
	e.uint(uint64(max(w.Claimed, -1) + 1))
	e.flag(w.Ended)
	e.flag(w.Complete)
	e.Text(w.Why)
	return e.B
}

// ParseWalk decodes and checks a walk. List and Began come from id.
func ParseWalk(id ItemID, b []byte) (store.Walk, error) {
	d := NewDecoder(b)
	w := store.Walk{List: id.Key, At: d.Time(), Seen: int64(d.Uint(math.MaxInt64)),
		Claimed: int64(d.Uint(math.MaxInt64)) - 1}
	w.Ended, w.Complete, w.Why = d.byte() == 1, d.byte() == 1, d.text(store.MaxHeader)
	var err error
	if w.Began, err = partTime(id.Part); err == nil && (len(id.Part) != 8 || w.At.Before(w.Began) || w.Complete &&
		!w.Ended) {
		err = ErrBadRow
	}
	if err := d.End("walk"); err != nil {
		return w, err
	}
	return w, err
}

// checkWalk is CheckItem for walks.
func checkWalk(id ItemID, b []byte) ([]byte, time.Time, error) {
	w, err := ParseWalk(id, b)
	if err == nil {
		err = checkList(id)
	}
	return EncodeWalk(w), w.At, err
}
