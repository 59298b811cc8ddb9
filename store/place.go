package store

import (
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Placement, in geo mode: a unit (a host, an instance, an account that stands
// alone) whose Keys begin in their hash slice is crawled in a geo slice once it
// is known where it belongs, and in another one when that changes.
//
// A Placement is a row of the slice that the unit leaves. It is made by Commit,
// when no fetch of the site is under way; from then on the slice fetches none of
// the unit's Keys: whoever finds one due there calls Move, which turns a number
// of them into StatePlaced and outbox rows to the other slice, in one batch. A
// crash leaves some of them pending, and the next to be found due goes on. So
// Keys that come later, or are merged in, are moved in the same way.
//
// What was fetched before stays, with its record, where it was fetched: a record
// is in one slice. Revisits of it are given up. A Key that an owner has fetched
// and lost before anybody else knew is due again, may be placed, and is fetched
// there: where it is StatePlaced it has no record, whoever had one.
//
// Gen grows by one with each move, so of two placements of a unit in one slice
// the later is known. One that names its own slice says that the unit has come
// back; Keys placed before are then admitted again when they are sent back.

// Placement says where the Keys of a unit of one slice are crawled.
type Placement struct {
	Unit partition.Unit
	To   partition.Slice // the slice itself: here
	Gen  uint64          // 1 for the first
	At   time.Time
	Why  string // evidence, to be shown; at most MaxWhy bytes
}

// MaxWhy is the length of the longest Placement.Why in bytes.
const (
	MaxWhy  = 4 << 10
	MaxGen  = 1 << 40        // of Placement.Gen: nobody moves so often
	MaxWait = 24 * time.Hour // of a Pace
)

// Clamp bounds what another peer says: a wait of more than a day would be a way
// to switch a site off.
func (p Pace) Clamp(now time.Time) Pace {
	p.Wait, p.BackOff = min(max(p.Wait, 0), MaxWait), min(max(p.BackOff, 0), MaxWait)
	p.Fetched = max(p.Fetched, 0)
	if most := now.Add(MaxWait); p.Next.After(most) {
		p.Next = most
	}
	return p
}

func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
