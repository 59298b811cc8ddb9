package format

import (
	"math"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func UnitKey(sl partition.Slice, u partition.Unit) []byte {
	return append(SlicePrefix(TabUnit, sl), u...)
}

func WhereKey(k partition.Key) []byte { return append([]byte{byte(TabWhere)}, k...) }

func EncodePlacement(p store.Placement) []byte {
	e := Encoder{B: make([]byte, 0, 40+len(p.Why))}
	e.Byte(RowVersion)
	e.uint(uint64(p.To))
	e.uint(p.Gen)
	e.Time(p.At)
	e.Text(p.Why)
	return e.B
}

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

// PlacementAbove says that p is later than old; of two of one generation the greater row
// is, so that the order of imports does not matter.
func PlacementAbove(p, old store.Placement) bool {
	if p.Gen != old.Gen {
		return p.Gen > old.Gen
	}
	return string(EncodePlacement(p)) > string(EncodePlacement(old))
}

// Moved is k at now, later than it was, so that every replica takes it.
func (k KeyState) Moved(now time.Time) KeyState {
	at := now.UTC().Truncate(store.Tick)
	if !at.After(k.Fetched) {
		at = k.Fetched.Add(store.Tick)
	}
	k.Fetched = at
	return k
}
