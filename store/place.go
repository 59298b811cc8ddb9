package store

import (
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Placement, in geo mode. A unit is a host, an instance, or an account that stands alone. Its Keys
// begin in their hash slice. When the place of the unit is known, it is crawled in a geo slice. It
// moves to another one when its place changes.
//
// A Placement is a row of the slice that the unit leaves. Commit writes it, when no fetch of the
// site is under way. From then on, the slice fetches none of the unit's Keys. When the owner finds
// such a Key due, it calls Move. Move turns a number of them into StatePlaced and outbox rows to
// the other slice, in one batch. After a crash, some of them are still pending, and the next one
// that is due continues the move. So Keys that arrive or are merged later move in the same way.
//
// A record stays where it was fetched, because a record is in one slice. The old slice does not
// revisit it. An owner may fetch a Key and lose it before any other peer knows. Then the Key is due
// again, may be placed, and is fetched in its new slice. Where it is StatePlaced, it has no record,
// even if another peer had one.
//
// Gen grows by one with each move, so the later of two placements of a unit in one slice is known.
// A Placement that names its own slice means that the unit has come back. Keys placed before are
// then admitted again when they are sent back.

// Placement says where the Keys of a unit of one slice are crawled.
type Placement struct {
	Unit partition.Unit
	To   partition.Slice // the slice itself = crawled here
	Gen  uint64          // 1 for the first
	At   time.Time
	Why  string // evidence, for display; at most MaxWhy bytes
}

// MaxWhy is the maximum length of Placement.Why in bytes.
const (
	MaxWhy  = 4 << 10
	MaxGen  = 1 << 40        // of Placement.Gen: no unit moves that often
	MaxWait = 24 * time.Hour // of a Pace
)

// Clamp limits the values of another peer: a wait of more than a day could switch a site off.
func (p Pace) Clamp(now time.Time) Pace {
	p.Wait, p.BackOff = min(max(p.Wait, 0), MaxWait), min(max(p.BackOff, 0), MaxWait)
	p.Fetched = max(p.Fetched, 0)
	if most := now.Add(MaxWait); p.Next.After(most) {
		p.Next = most
	}
	return p
}

// Latest returns the later of a and b.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
