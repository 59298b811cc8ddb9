package crawler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/store"
)

// plan is what is stored with a Key: the last decision, as far as the Meter counts it, the hints,
// and the history.
type plan struct {
	tau, age, even float32        // in days: schedule.Decision's Tau, Age and EvenAge
	hint           store.Hint     // came after the last visit; no visit has checked it yet
	moved          bool           // hint made the next visit sooner
	told           byte           // a bit for each HintKind that was right about this Key
	list           store.HintKind // the kind of hints that its entries are; 0 = it is no list
	history        schedule.History
}

// A stored plan, version 1 (big-endian): the byte 1; tau, age and even as float32; the history.
// Version 2 is for a list, and for a Key that had a hint. Before the history it adds told (1 byte),
// and one byte with kind of hint | list<<3 | moved<<7. If there is a hint, its time in Unix seconds
// follows as a varint.
const (
	planVersion = 1
	planHinted  = 2
	movedBit    = 1 << 7
)

// sentKinds are the bits that plan.told may have.
const sentKinds = 1<<store.HintSitemap | 1<<store.HintFeed | 1<<store.HintElsewhere

// encode returns the stored form of p.
func (p *plan) encode() []byte {
	b := make([]byte, 1, 64)
	b[0] = planVersion
	for _, f := range [...]float32{p.tau, p.age, p.even} {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(f))
	}
	if p.told != 0 || p.hint.Kind != 0 || p.list != 0 {
		b[0] = planHinted
		flags := byte(p.hint.Kind) | byte(p.list)<<3
		if p.moved {
			flags |= movedBit
		}
		b = append(b, p.told, flags)
		if p.hint.Kind != 0 {
			b = binary.AppendUvarint(b, uint64(p.hint.At.Unix()))
		}
	}
	return p.history.Append(b)
}

// decodePlan reads what encode wrote. The bytes may come from another peer, so it checks them. No
// bytes are the plan of a Key that was never visited.
func decodePlan(b []byte) (p plan, err error) {
	if len(b) == 0 {
		return p, nil
	}
	version := b[0]
	if version != planVersion && version != planHinted {
		return p, fmt.Errorf("plan of version %d, this program knows %d", version, planHinted)
	}
	if b = b[1:]; len(b) < 12 {
		return p, errors.New("half a plan")
	}
	for _, f := range [...]*float32{&p.tau, &p.age, &p.even} {
		*f = math.Float32frombits(binary.BigEndian.Uint32(b))
		if !(*f >= 0 && *f <= maxPlanned) {
			return plan{}, fmt.Errorf("a plan of %g days", *f)
		}
		b = b[4:]
	}
	if version == planHinted {
		if b, err = p.decodeHint(b); err != nil {
			return plan{}, err
		}
	}
	if err := p.history.Decode(b); err != nil {
		return plan{}, err
	}
	return p, nil
}

// decodeHint reads the hint part of version 2, and returns the bytes behind it.
func (p *plan) decodeHint(b []byte) (rest []byte, err error) {
	if len(b) < 2 {
		return nil, errors.New("half a hint")
	}
	told, flags := b[0], b[1]
	b = b[2:]
	p.told, p.list, p.moved = told, store.HintKind(flags>>3&7), flags&movedBit != 0
	kind := flags & 7
	if told&^sentKinds != 0 || p.list > store.HintFeed || flags&(1<<6) != 0 || p.moved && kind == 0 {
		return nil, fmt.Errorf("hints %x %x", told, flags)
	}
	if kind == 0 {
		return b, nil
	}
	unix, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, errors.New("a hint of no time")
	}
	if p.hint = store.ParseHint(uint64(kind), int64(unix)); p.hint.Kind == 0 {
		return nil, fmt.Errorf("hint of kind %d at %d", kind, unix)
	}
	return b[n:], nil
}

// maxPlanned is how far a plan may look ahead, in days.
const maxPlanned = 1e6

// decision returns the stored decision, as far as the Meter counts it.
func (p *plan) decision() schedule.Decision {
	return schedule.Decision{Tau: float64(p.tau), Age: float64(p.age), EvenAge: float64(p.even)}
}

// waited returns the share of Tau after which the visit due at that time was planned. It is 1
// unless a hint made the visit sooner.
func (p *plan) waited(due time.Time) float64 {
	if p.hint.Kind == 0 || !p.moved || !(p.tau > 0) {
		return 1
	}
	return max(0, due.Sub(p.history.Last()).Hours()/24/float64(p.tau))
}
