package budget

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Paid remembers which resources were paid for in the present UTC day: a service
// that charges for each post or profile charges it once a day (X), so asking
// again costs nothing, and what was kept of it need not be asked at all.
//
// A resource is 8 bytes, a hash: two of a million coincide in one day with
// a chance of 3 in 10⁸, and then one of them is thought paid. What was forgotten,
// in a crash or over Max, is thought unpaid: more is reserved than is charged, never
// less. A Paid belongs to one credential. It is not safe for concurrent use. The
// zero value is empty.
type Paid struct {
	Max  int // resources remembered, default DefaultMaxPaid
	day  int64
	seen map[uint64]struct{}
}

// DefaultMaxPaid is what a day's money buys ten times over.
const DefaultMaxPaid = 1_000_000

// dayEdge: that long before midnight what was paid today may already be charged
// anew by the server's clock when the call arrives.
const dayEdge = 2*time.Minute + 30*time.Second

const dayNanos = int64(24 * time.Hour)

func (p *Paid) turn(now time.Time) {
	if d := floor(now.UnixNano(), dayNanos); d != p.day || p.seen == nil {
		p.day, p.seen = d, map[uint64]struct{}{}
	}
}

func resource(kind, id string) uint64 { return xxhash.Sum64String(kind + "\x00" + id) }

// Has says whether asking for a resource at now is not charged. kind is what the
// service charges for: "user", "post".
func (p *Paid) Has(now time.Time, kind, id string) bool {
	p.turn(now)
	_, ok := p.seen[resource(kind, id)]
	return ok && floor(now.Add(dayEdge).UnixNano(), dayNanos) == p.day
}

// Count is how many of ids are not charged at now: Ask.Paid of a call for them.
func (p *Paid) Count(now time.Time, kind string, ids []string) (n int64) {
	for _, id := range ids {
		if p.Has(now, kind, id) {
			n++
		}
	}
	return n
}

// Add notes that an answer to a call reserved at reserved had the resource. It is
// paid for the day of the reservation: were it charged in the next one, it would
// be reserved again.
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

// Len is how many resources are remembered.
func (p *Paid) Len() int { return len(p.seen) }

// A stored Paid, version 1: byte version, varint day since 1970, varint number,
// and the hashes ascending, the first and then the differences as varints.

// MarshalBinary is the stored form, some 6 bytes a resource.
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

// UnmarshalBinary reads it; on error, which wraps ErrSnapshot, p is empty.
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
