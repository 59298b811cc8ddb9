package format

import (
	"math"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// UnitKey returns the key of the row of a unit's placement.
func UnitKey(sl partition.Slice, u partition.Unit) []byte {
	return append(SlicePrefix(TabUnit, sl), u...)
}

// WhereKey returns the key of k's row in TabWhere.
func WhereKey(k partition.Key) []byte { return append([]byte{byte(TabWhere)}, k...) }

// EncodePlacement returns the row of p, without Unit.
func EncodePlacement(p store.Placement) []byte {
	e := Encoder{B: make([]byte, 0, 40+len(p.Why))}
	e.Byte(RowVersion)
	e.uint(uint64(p.To))
	e.uint(p.Gen)
	e.Time(p.At)
	e.Text(p.Why)
	return e.B
}

// DecodePlacement is the inverse of EncodePlacement.
func DecodePlacement(u partition.Unit, b []byte) (store.Placement, error) {
	d := NewDecoder(b)
	p := store.Placement{Unit: u, To: partition.Slice(d.Uint(math.MaxUint64)), Gen: d.Uint(store.MaxGen), At: d.Time(),
		Why: d.text(store.MaxWhy)}
	return p, d.End("placement")
}

func (e *Encoder) pace(p store.Pace) {
	e.Time(p.Next)
	e.uint(uint64(max(p.Wait, 0)))
	e.uint(uint64(max(p.BackOff, 0)))
	e.uint(uint64(max(p.Fetched, 0)))
}

func (d *Decoder) pace() store.Pace {
	return store.Pace{Next: d.Time(), Wait: time.Duration(d.Uint(uint64(store.MaxWait))),
		BackOff: time.Duration(d.Uint(uint64(store.MaxWait))), Fetched: int64(d.Uint(math.MaxInt64))}
}

// PlacementAbove reports whether p is later than old. If both have the same generation, the greater
// row counts as later, so the order of imports does not matter.
func PlacementAbove(p, old store.Placement) bool {
	if p.Gen != old.Gen {
		return p.Gen > old.Gen
	}
	return string(EncodePlacement(p)) > string(EncodePlacement(old))
}

// Moved returns k with a Fetched of now, or later if needed, so that every replica accepts it as
// newer.
func (k KeyState) Moved(now time.Time) KeyState {
	at := now.UTC().Truncate(store.Tick)
	if !at.After(k.Fetched) {
		at = k.Fetched.Add(store.Tick)
	}
	k.Fetched = at
	return k
}
