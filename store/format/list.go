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

// A list is kept as one row an account, with the spans of time in which it was
// met, and one row a walk. That an account is gone is not written: it follows
// from a complete walk that began after the account was last met, so that a walk
// of a list of millions writes what it met and nothing else, page by page. It is
// written when the account comes back, as the end of its span.
//
// Clocks: a walk judges by its own Began what the walks before met. If the peer
// before was ahead by more than the time between its last page and this walk,
// what is gone is found so by the next walk.

// Edge is the state of one account in a list: its spans by First, in order.
type Edge []store.Span

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

// checkList refuses what is no list.
func checkList(id ItemID) error {
	if k := id.Key.Kind(); k != partition.KindFollowers && k != partition.KindFollowing {
		return fmt.Errorf("%.80q is no list", id.Key)
	}
	return nil
}

// last is when the account was met last.
func (x Edge) last() (at time.Time) {
	for _, s := range x {
		at = store.Latest(at, s.Last)
	}
	return at
}

// join has the spans of both; of two that begin at one moment, the later ends.
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

// Met is x with a meeting at a time no earlier than the last.
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

// latest is the span that was met last.
func (x Edge) latest() (best int) {
	for i, s := range x {
		if !s.Last.Before(x[best].Last) {
			best = i
		}
	}
	return best
}

// Show is x as an Edge.
func (x Edge) Show(to partition.Key, ws Walks, doubted time.Time) store.Edge {
	spans := slices.Clone(x)
	i := x.latest()
	spans[i].Gone = ws.missed(spans[i].Last)
	for j := range spans { // what another peer met later is no end
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

// missed is the end of the first walk that began after a time.
func (ws Walks) missed(after time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(ws, after, func(w store.Walk, t time.Time) int {
		return cmp.Or(w.Began.Compare(t), -1) // the one that began then saw it
	})
	if i == len(ws) {
		return time.Time{}
	}
	return ws[i].At
}

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

func checkWalk(id ItemID, b []byte) ([]byte, time.Time, error) {
	w, err := ParseWalk(id, b)
	if err == nil {
		err = checkList(id)
	}
	return EncodeWalk(w), w.At, err
}
