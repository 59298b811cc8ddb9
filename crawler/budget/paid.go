package budget

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Paid remembers which resources were paid for in the present UTC day. A service that charges for
// each post or profile (X) charges it once a day. So another request for it costs nothing, and a
// stored copy needs no request at all.
//
// A resource is stored as a hash of 8 bytes. Two of a million collide in one day with a chance of 3
// in 10⁸; then one of them is wrongly treated as paid. A resource that is forgotten, after a crash
// or because of Max, is treated as unpaid: more is reserved than is charged, never less. A Paid
// belongs to one credential. It is not safe for concurrent use. The zero value is empty.
type Paid struct {
	Max  int // resources remembered; 0 or less means DefaultMaxPaid
	day  int64
	seen map[uint64]struct{}
}

// DefaultMaxPaid is ten times what a day's money buys.
const DefaultMaxPaid = 1_000_000

// dayEdge is a safety margin before midnight. In this time the server's clock may already be in the
// next day when the call arrives, and the server may charge again.
const dayEdge = 2*time.Minute + 30*time.Second

const dayNanos = int64(24 * time.Hour)

// turn starts an empty set if now is in another UTC day.
func (p *Paid) turn(now time.Time) {
	if d := floor(now.UnixNano(), dayNanos); d != p.day || p.seen == nil {
		p.day, p.seen = d, map[uint64]struct{}{}
	}
}

// resource returns the hash of a resource in Paid.seen.
func resource(kind, id string) uint64 { return xxhash.Sum64String(kind + "\x00" + id) }

// Has reports whether a request for a resource at now is free. kind is the unit of the charge:
// "user", "post".
func (p *Paid) Has(now time.Time, kind, id string) bool {
	p.turn(now)
	_, ok := p.seen[resource(kind, id)]
	return ok && floor(now.Add(dayEdge).UnixNano(), dayNanos) == p.day
}

// Count returns how many of ids are free at now. The caller uses it as Ask.Paid.
func (p *Paid) Count(now time.Time, kind string, ids []string) (n int64) {
	for _, id := range ids {
		if p.Has(now, kind, id) {
			n++
		}
	}
	return n
}

// Add records that the response to a call reserved at reserved contained the resource. It counts as
// paid on the day of the reservation. If the server charges it in the next day, it is reserved
// again.
func (p *Paid) Add(reserved time.Time, kind, id string) {
	if p.seen == nil || floor(reserved.UnixNano(), dayNanos) > p.day {
		p.turn(reserved)
	}
	if floor(reserved.UnixNano(), dayNanos) < p.day || len(p.seen) >= max(p.Max, 0) && p.Max > 0 ||
		len(p.seen) >= DefaultMaxPaid && p.Max <= 0 {
		return
	}
	p.seen[resource(kind, id)] = struct{}{}
}

// Len returns how many resources are remembered.
func (p *Paid) Len() int { return len(p.seen) }

// Format of a stored Paid, version 1: a byte for the version, then the day since 1970 and the
// number of hashes as varints. The hashes follow in ascending order, as varints: the first, then
// the differences.

// MarshalBinary returns the stored form, about 6 bytes per resource.
func (p *Paid) MarshalBinary() ([]byte, error) {
	all := make([]uint64, 0, len(p.seen))
	for h := range p.seen {
		all = append(all, h)
	}
	slices.Sort(all)
	b := binary.AppendUvarint([]byte{snapshotTag}, uint64(max(p.day, 0)))
	b = binary.AppendUvarint(b, uint64(len(all)))
	last := uint64(0)
	for _, h := range all {
		b = binary.AppendUvarint(b, h-last)
		last = h
	}
	return b, nil
}

// UnmarshalBinary reads the stored form. On error, which wraps ErrSnapshot, p is empty.
func (p *Paid) UnmarshalBinary(b []byte) error {
	p.day, p.seen = 0, nil
	d := decoder{b: b}
	d.version()
	day := d.num(maxTime / dayNanos)
	n := int(d.num(DefaultMaxPaid))
	if n > len(d.b) {
		d.fail("cut short")
	}
	seen := map[uint64]struct{}{}
	last := uint64(0)
	for i := 0; i < n && d.err == nil; i++ {
		v, size := binary.Uvarint(d.b)
		if size <= 0 || size > 1 && d.b[size-1] == 0 || i > 0 && (v == 0 || last+v < last) {
			d.fail("hash %d", i)
			break
		}
		d.b = d.b[size:]
		last += v
		seen[last] = struct{}{}
	}
	if err := d.end(); err != nil {
		return fmt.Errorf("budget: paid: %w", err)
	}
	p.day, p.seen = day, seen
	return nil
}
