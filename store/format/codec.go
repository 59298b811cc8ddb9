package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// RowVersion is the first byte of every value.
const RowVersion = 1

// KeyState is the row of a Key: what is known about it, its place in the frontier, and the
// validators of its last fetch.
type KeyState struct {
	State    store.State
	Seed     bool
	At       time.Time // zero = never
	Priority uint8
	Depth    int
	Attempts int
	Seq      uint64    // order of admission on this peer
	Admitted time.Time // on this peer
	Fetched  time.Time // of the last Commit on any peer, zero = none
	Referrer partition.Key
	Reason   string
	Etag     string
	Modified string
	Digest   string
	History  string
}

// Due returns k as a row of the frontier.
func (k KeyState) Due(key partition.Key) store.Due {
	d := store.Due{Key: key, State: k.State, At: k.At, Priority: int(k.Priority), Depth: k.Depth, Attempts: k.Attempts,
		Reason: k.Reason, ETag: k.Etag, Modified: k.Modified, Digest: k.Digest, Referrer: k.Referrer}
	if k.History != "" {
		d.History = []byte(k.History)
	}
	return d
}

// Encoder appends fields. Decoder reads them back and remembers the first error, so callers check
// only once. Neither allocates for a length that exceeds the input.
type Encoder struct{ B []byte }

func (e *Encoder) Byte(v byte) { e.B = append(e.B, v) }

func (e *Encoder) uint(v uint64) { e.B = binary.AppendUvarint(e.B, v) }

func (e *Encoder) Text(v string) { e.uint(uint64(len(v))); e.B = append(e.B, v...) }

func (e *Encoder) Time(t time.Time) {
	if t.IsZero() {
		e.B = binary.AppendVarint(e.B, math.MinInt64)
		return
	}
	e.B = binary.AppendVarint(e.B, t.UnixMicro())
}

func (e *Encoder) flag(v bool) {
	if v {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
}

// Decoder reads the fields of a value, see Encoder. Bad is set at the first error.
type Decoder struct {
	b   []byte
	Bad bool
}

// NewDecoder returns a Decoder of b, after its version.
func NewDecoder(b []byte) *Decoder {
	d := &Decoder{b: b}
	if v := d.byte(); v != RowVersion {
		d.Bad = true
	}
	return d
}

func (d *Decoder) byte() byte {
	if d.Bad || len(d.b) == 0 {
		d.Bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// Uint reads a varint of at most limit.
func (d *Decoder) Uint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if d.Bad || n <= 0 || v > limit {
		d.Bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *Decoder) text(limit int) string {
	n := d.Uint(uint64(limit))
	if d.Bad || n > uint64(len(d.b)) {
		d.Bad = true
		return ""
	}
	v := string(d.b[:n])
	d.b = d.b[n:]
	return v
}

// Times are stored in microseconds, in the years 0 to 9999, the range of JSON.
const (
	MinTime = -62167219200 * 1_000_000
	MaxTime = 253402300799 * 1_000_000
)

// Time reads a time between MinTime and MaxTime, or the zero time.
func (d *Decoder) Time() time.Time {
	v, n := binary.Varint(d.b)
	if d.Bad || n <= 0 {
		d.Bad = true
		return time.Time{}
	}
	d.b = d.b[n:]
	if v == math.MinInt64 {
		return time.Time{}
	}
	if v < MinTime || v > MaxTime {
		d.Bad = true
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

// End returns an error if a field was invalid or bytes are left over.
func (d *Decoder) End(what string) error {
	if d.Bad || len(d.b) != 0 {
		return fmt.Errorf("%s: %w", what, ErrBadRow)
	}
	return nil
}

// Encode returns the row of k.
func (k KeyState) Encode() []byte {
	e := Encoder{B: make([]byte, 0, 96+len(k.Referrer)+len(k.Digest)+len(k.Etag))}
	e.Byte(RowVersion)
	e.Byte(byte(k.State))
	if k.Seed {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
	e.Byte(k.Priority)
	e.Time(k.At)
	e.uint(uint64(k.Depth))
	e.uint(uint64(k.Attempts))
	e.uint(k.Seq)
	e.Time(k.Admitted)
	e.Time(k.Fetched)
	e.Text(string(k.Referrer))
	e.Text(k.Reason)
	e.Text(k.Etag)
	e.Text(k.Modified)
	e.Text(k.Digest)
	if k.History != "" {
		e.Text(k.History)
	}
	return e.B
}

// DecodeKeyState is the inverse of KeyState.Encode.
func DecodeKeyState(b []byte) (KeyState, error) {
	d := NewDecoder(b)
	k := KeyState{State: store.State(d.byte()), Seed: d.byte() == 1, Priority: d.byte(), At: d.Time(),
		Depth: int(d.Uint(store.MaxDepth)), Attempts: int(d.Uint(store.MaxAttempts)), Seq: d.Uint(math.MaxUint64),
		Admitted: d.Time(), Fetched: d.Time(), Referrer: partition.Key(d.text(store.MaxKeyBytes)),
		Reason: d.text(store.MaxReason),
		Etag:   d.text(store.MaxHeader), Modified: d.text(store.MaxHeader), Digest: d.text(store.MaxHeader)}
	if len(d.b) > 0 {
		k.History = d.text(store.MaxHistory)
		d.Bad = d.Bad || k.History == ""
	}
	if k.State < store.StatePending || k.State > store.StateQuarantined || k.State >= store.StatePlaced &&
		!k.At.IsZero() {
		d.Bad = true
	}
	return k, d.End("key state")
}

// Counts are the totals of one site in one slice.
type Counts struct {
	State   [7]int64 // by State
	Due     int64    // rows in TabDue
	Records int64
	Fetches int64
	Posts   int64
	Files   int64 // fetched files of accounts
	Bytes   int64 // of these, as received
}

// Encode returns the row of c.
func (c Counts) Encode() []byte {
	e := Encoder{B: make([]byte, 0, 24)}
	e.Byte(RowVersion)
	for _, n := range c.State[store.StatePending:store.StatePlaced] {
		e.uint(uint64(n))
	}
	e.uint(uint64(c.Due))
	e.uint(uint64(c.Records))
	e.uint(uint64(c.Fetches))
	quarantined := c.State[store.StateQuarantined]
	if n := c.State[store.StatePlaced]; n != 0 || c.Posts != 0 || c.Files != 0 || quarantined != 0 {
		e.uint(uint64(n))
	}
	if c.Posts != 0 || c.Files != 0 || quarantined != 0 {
		e.uint(uint64(c.Posts))
	}
	if c.Files != 0 || quarantined != 0 {
		e.uint(uint64(c.Files))
		e.uint(uint64(c.Bytes))
	}
	if quarantined != 0 {
		e.uint(uint64(quarantined))
	}
	return e.B
}

// DecodeCounts is the inverse of Counts.Encode.
func DecodeCounts(b []byte) (Counts, error) {
	d := NewDecoder(b)
	var c Counts
	for i := store.StatePending; i < store.StatePlaced; i++ {
		c.State[i] = int64(d.Uint(math.MaxInt64))
	}
	c.Due, c.Records, c.Fetches = int64(d.Uint(math.MaxInt64)), int64(d.Uint(math.MaxInt64)),
		int64(d.Uint(math.MaxInt64))
	if len(d.b) > 0 {
		c.State[store.StatePlaced] = int64(d.Uint(math.MaxInt64))
	}
	if len(d.b) > 0 {
		c.Posts = int64(d.Uint(math.MaxInt64))
	}
	if len(d.b) > 0 {
		c.Files, c.Bytes = int64(d.Uint(math.MaxInt64)), int64(d.Uint(math.MaxInt64))
	}
	if len(d.b) > 0 {
		c.State[store.StateQuarantined] = int64(d.Uint(math.MaxInt64))
	}
	return c, d.End("counts")
}

// EncodeOutboxRow returns the row of r, without Seq.
func EncodeOutboxRow(r store.OutboxRow) []byte {
	e := Encoder{B: make([]byte, 0, 40+len(r.Key)+len(r.Referrer))}
	e.Byte(RowVersion)
	e.uint(uint64(r.Slice))
	e.uint(uint64(r.To))
	e.Text(string(r.Key))
	e.Text(string(r.Referrer))
	e.uint(uint64(r.Depth))
	e.Byte(byte(r.Priority))
	if r.Seed {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
	hint := r.Hint.Sent()
	if r.Gen != 0 || hint.Kind != 0 {
		e.uint(r.Gen)
		e.pace(r.Pace)
	}
	if hint.Kind != 0 {
		e.hint(hint)
	}
	return e.B
}

// DecodeOutboxRow does not set Seq; the caller gets it from the row's key.
func DecodeOutboxRow(b []byte) (store.OutboxRow, error) {
	d := NewDecoder(b)
	r := store.OutboxRow{Slice: partition.Slice(d.Uint(math.MaxUint64)), To: partition.Slice(d.Uint(math.MaxUint64))}
	r.Key = partition.Key(d.text(store.MaxKeyBytes))
	r.Referrer = partition.Key(d.text(store.MaxKeyBytes))
	r.Depth = int(d.Uint(store.MaxDepth))
	r.Priority = int(d.byte())
	r.Seed = d.byte() == 1
	placed := len(d.b) > 0
	if placed {
		if r.Gen, r.Pace = d.Uint(store.MaxGen), d.pace(); r.Gen != 0 {
			r.In = r.To
		}
	}
	if len(d.b) > 0 {
		r.Hint = d.hint()
	}
	if placed && r.Gen == 0 && (r.Hint.Kind == 0 || r.Pace != (store.Pace{})) {
		d.Bad = true // one row has only one valid encoding
	}
	return r, d.End("outbox row")
}
