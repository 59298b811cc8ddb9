package schedule

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Format of a stored history, version 1 (numbers are unsigned LEB128 varints):
//
//	byte    version = 1
//	varint  unix seconds of the first visit, 0 = never visited (and nothing follows)
//	byte    number of runs
//	run*    varint span in seconds<<3 | kind
//	          kind 0..4  one visit with that Outcome; Changed: one post
//	          kind 5     one visit that found posts: varint posts-2
//	          kind 6     folded: byte outcome, varint visits, varint changes,
//	                     varint posts-changes
//
// An unchanged visit one day after the last takes 3 bytes, one month after it 4 bytes.
const (
	kindPosts  = 5
	kindFolded = 6
)

// Append appends the stored form of h to b.
func (h *History) Append(b []byte) []byte {
	b = append(b, historyTag)
	b = binary.AppendUvarint(b, uint64(h.first))
	if h.first == 0 {
		return b
	}
	b = append(b, byte(len(h.runs)))
	for _, r := range h.runs {
		span := uint64(r.Span/time.Second) << 3
		switch {
		case r.Visits == 1 && r.Posts <= 1:
			b = binary.AppendUvarint(b, span|uint64(r.Outcome))
		case r.Visits == 1:
			b = binary.AppendUvarint(b, span|kindPosts)
			b = binary.AppendUvarint(b, uint64(r.Posts-2))
		default:
			b = binary.AppendUvarint(b, span|kindFolded)
			b = append(b, byte(r.Outcome))
			b = binary.AppendUvarint(b, uint64(r.Visits))
			b = binary.AppendUvarint(b, uint64(r.Changes))
			b = binary.AppendUvarint(b, uint64(r.Posts-r.Changes))
		}
	}
	return b
}

// MarshalBinary returns the stored form.
func (h *History) MarshalBinary() ([]byte, error) { return h.Append(nil), nil }

// UnmarshalBinary calls Decode.
func (h *History) UnmarshalBinary(b []byte) error { return h.Decode(b) }

// Decode replaces h by the history stored in b and reuses h's memory. b may come from another peer
// (hand-over), so everything is checked and capped. On error, which wraps ErrHistory, h is empty.
// Empty input is the empty history: an item that was never visited.
func (h *History) Decode(b []byte) error {
	*h = History{runs: h.runs[:0]}
	if len(b) == 0 {
		return nil
	}
	d := decoder{b: b}
	if err := d.history(h); err != nil {
		*h = History{runs: h.runs[:0]}
		return fmt.Errorf("schedule: decode: %w: %w", ErrHistory, err)
	}
	return nil
}

// decoder reads the stored form; b is the rest that is not read yet.
type decoder struct{ b []byte }

// history reads all of b into h. It fails if bytes remain.
func (d *decoder) history(h *History) error {
	version, err := d.byte()
	if err != nil {
		return err
	}
	if version != historyTag {
		return fmt.Errorf("version %d", version)
	}
	first, err := d.uvarint(maxUnixTime)
	if err != nil {
		return err
	}
	if first > 0 {
		if err := d.runs(h, int64(first)); err != nil {
			return err
		}
	}
	if len(d.b) > 0 {
		return fmt.Errorf("%d bytes too many", len(d.b))
	}
	return nil
}

// runs reads the runs of a history whose first visit was at first.
func (d *decoder) runs(h *History, first int64) error {
	n, err := d.byte()
	if err != nil {
		return err
	}
	if n == 0 || n > MaxRuns {
		return fmt.Errorf("%d runs", n)
	}
	h.first, h.last = first, first
	for range n {
		r, err := d.run()
		if err != nil {
			return err
		}
		h.last += int64(r.Span / time.Second)
		h.runs = append(h.runs, r)
	}
	return nil
}

// run reads one run, of any kind.
func (d *decoder) run() (Run, error) {
	v, err := d.uvarint(uint64(maxSpan/time.Second)<<3 | 7)
	if err != nil {
		return Run{}, err
	}
	kind := v & 7
	r := Run{Outcome: Outcome(kind), Visits: 1, Span: time.Duration(v>>3) * time.Second}
	switch {
	case kind == uint64(Changed):
		r.Changes, r.Posts = 1, 1
	case kind <= uint64(Redirect):
	case kind == kindPosts:
		posts, err := d.uvarint(maxCount - 2)
		if err != nil {
			return r, err
		}
		r.Outcome, r.Changes, r.Posts = Changed, 1, int(posts)+2
	case kind == kindFolded:
		return d.folded(r)
	default:
		return r, fmt.Errorf("kind %d", kind)
	}
	return r, nil
}

// folded reads the rest of a folded run. It refuses counts that fold never makes.
func (d *decoder) folded(r Run) (Run, error) {
	outcome, err := d.byte()
	if err != nil {
		return r, err
	}
	visits, err := d.uvarint(maxCount)
	if err != nil {
		return r, err
	}
	changes, err := d.uvarint(visits)
	if err != nil {
		return r, err
	}
	more, err := d.uvarint(maxCount - changes)
	if err != nil {
		return r, err
	}
	r.Outcome, r.Visits, r.Changes, r.Posts = Outcome(outcome), int(visits), int(changes), int(changes+more)
	switch {
	case outcome > uint8(Redirect), visits < 2,
		(changes > 0) != (r.Outcome == Changed), changes == 0 && more > 0:
		return r, fmt.Errorf("folded run %+v", r)
	}
	return r, nil
}

func (d *decoder) byte() (byte, error) {
	if len(d.b) == 0 {
		return 0, fmt.Errorf("cut short")
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c, nil
}

// uvarint reads a number of at most limit, which must be in its shortest form. So a history has
// only one encoding, and replicas can be compared by digest.
func (d *decoder) uvarint(limit uint64) (uint64, error) {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, fmt.Errorf("bad number")
	}
	if v > limit {
		return 0, fmt.Errorf("number %d over %d", v, limit)
	}
	if n > 1 && d.b[n-1] == 0 {
		return 0, fmt.Errorf("number not in shortest form")
	}
	d.b = d.b[n:]
	return v, nil
}
