package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// rowVersion is the first byte of every value.
const rowVersion = 1

// keyState is the row of a Key: what is known of it, its place in the
// frontier, and the validators of its last fetch.
type keyState struct {
	state    State
	seed     bool
	at       time.Time // zero = never
	priority uint8
	depth    int
	attempts int
	seq      uint64    // order of admission on this peer
	admitted time.Time // on this peer
	fetched  time.Time // of the last Commit anywhere, zero = none
	referrer partition.Key
	reason   string
	etag     string
	modified string
	digest   string
	history  string
}

func (k keyState) due(key partition.Key) Due {
	d := Due{Key: key, State: k.state, At: k.at, Priority: int(k.priority), Depth: k.depth, Attempts: k.attempts,
		Reason: k.reason, ETag: k.etag, Modified: k.modified, Digest: k.digest, Referrer: k.referrer}
	if k.history != "" {
		d.History = []byte(k.history)
	}
	return d
}

// encoder appends fields; decoder reads them back and remembers the first
// fault, so that callers check once. Neither allocates from a length that the
// input does not hold.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)   { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) text(v string) { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.b = binary.AppendVarint(e.b, math.MinInt64)
		return
	}
	e.b = binary.AppendVarint(e.b, t.UnixMicro())
}

func (e *encoder) flag(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

type decoder struct {
	b   []byte
	bad bool
}

func newDecoder(b []byte) *decoder {
	d := &decoder{b: b}
	if v := d.byte(); v != rowVersion {
		d.bad = true
	}
	return d
}

func (d *decoder) byte() byte {
	if d.bad || len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 || v > limit {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) text(limit int) string {
	n := d.uint(uint64(limit))
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return ""
	}
	v := string(d.b[:n])
	d.b = d.b[n:]
	return v
}

// Times are kept to the microsecond, in years 0 to 9999 (those that JSON has).
const (
	minTime = -62167219200 * 1_000_000
	maxTime = 253402300799 * 1_000_000
)

func (d *decoder) time() time.Time {
	v, n := binary.Varint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return time.Time{}
	}
	d.b = d.b[n:]
	if v == math.MinInt64 {
		return time.Time{}
	}
	if v < minTime || v > maxTime {
		d.bad = true
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

func (d *decoder) end(what string) error {
	if d.bad || len(d.b) != 0 {
		return fmt.Errorf("%s: %w", what, errBadRow)
	}
	return nil
}

func (k keyState) encode() []byte {
	e := encoder{b: make([]byte, 0, 96+len(k.referrer)+len(k.digest)+len(k.etag))}
	e.byte(rowVersion)
	e.byte(byte(k.state))
	if k.seed {
		e.byte(1)
	} else {
		e.byte(0)
	}
	e.byte(k.priority)
	e.time(k.at)
	e.uint(uint64(k.depth))
	e.uint(uint64(k.attempts))
	e.uint(k.seq)
	e.time(k.admitted)
	e.time(k.fetched)
	e.text(string(k.referrer))
	e.text(k.reason)
	e.text(k.etag)
	e.text(k.modified)
	e.text(k.digest)
	if k.history != "" {
		e.text(k.history)
	}
	return e.b
}

func decodeKeyState(b []byte) (keyState, error) {
	d := newDecoder(b)
	k := keyState{state: State(d.byte()), seed: d.byte() == 1, priority: d.byte(), at: d.time(),
		depth: int(d.uint(maxDepth)), attempts: int(d.uint(maxAttempts)), seq: d.uint(math.MaxUint64),
		admitted: d.time(), fetched: d.time(), referrer: partition.Key(d.text(MaxKeyBytes)), reason: d.text(maxReason),
		etag: d.text(maxHeader), modified: d.text(maxHeader), digest: d.text(maxHeader)}
	if len(d.b) > 0 {
		k.history = d.text(MaxHistory)
		d.bad = d.bad || k.history == ""
	}
	if k.state < StatePending || k.state > StateQuarantined || k.state >= StatePlaced && !k.at.IsZero() {
		d.bad = true
	}
	return k, d.end("key state")
}

// counts are the totals of one site of one slice.
type counts struct {
	state   [7]int64 // by State
	due     int64    // rows in tabDue
	records int64
	fetches int64
	posts   int64
	files   int64 // of accounts that were had
	bytes   int64 // of these, as they came
}

func (c counts) encode() []byte {
	e := encoder{b: make([]byte, 0, 24)}
	e.byte(rowVersion)
	for _, n := range c.state[StatePending:StatePlaced] {
		e.uint(uint64(n))
	}
	e.uint(uint64(c.due))
	e.uint(uint64(c.records))
	e.uint(uint64(c.fetches))
	quarantined := c.state[StateQuarantined]
	if n := c.state[StatePlaced]; n != 0 || c.posts != 0 || c.files != 0 || quarantined != 0 {
		e.uint(uint64(n))
	}
	if c.posts != 0 || c.files != 0 || quarantined != 0 {
		e.uint(uint64(c.posts))
	}
	if c.files != 0 || quarantined != 0 {
		e.uint(uint64(c.files))
		e.uint(uint64(c.bytes))
	}
	if quarantined != 0 {
		e.uint(uint64(quarantined))
	}
	return e.b
}

func decodeCounts(b []byte) (counts, error) {
	d := newDecoder(b)
	var c counts
	for i := StatePending; i < StatePlaced; i++ {
		c.state[i] = int64(d.uint(math.MaxInt64))
	}
	c.due, c.records, c.fetches = int64(d.uint(math.MaxInt64)), int64(d.uint(math.MaxInt64)),
		int64(d.uint(math.MaxInt64))
	if len(d.b) > 0 {
		c.state[StatePlaced] = int64(d.uint(math.MaxInt64))
	}
	if len(d.b) > 0 {
		c.posts = int64(d.uint(math.MaxInt64))
	}
	if len(d.b) > 0 {
		c.files, c.bytes = int64(d.uint(math.MaxInt64)), int64(d.uint(math.MaxInt64))
	}
	if len(d.b) > 0 {
		c.state[StateQuarantined] = int64(d.uint(math.MaxInt64))
	}
	return c, d.end("counts")
}

func (r OutboxRow) encode() []byte {
	e := encoder{b: make([]byte, 0, 40+len(r.Key)+len(r.Referrer))}
	e.byte(rowVersion)
	e.uint(uint64(r.Slice))
	e.uint(uint64(r.To))
	e.text(string(r.Key))
	e.text(string(r.Referrer))
	e.uint(uint64(r.Depth))
	e.byte(byte(r.Priority))
	if r.Seed {
		e.byte(1)
	} else {
		e.byte(0)
	}
	hint := r.Hint.sent()
	if r.Gen != 0 || hint.Kind != 0 {
		e.uint(r.Gen)
		e.pace(r.Pace)
	}
	if hint.Kind != 0 {
		e.hint(hint)
	}
	return e.b
}

// decodeOutboxRow leaves Seq to the caller, who has it from the row's key.
func decodeOutboxRow(b []byte) (OutboxRow, error) {
	d := newDecoder(b)
	r := OutboxRow{Slice: partition.Slice(d.uint(math.MaxUint64)), To: partition.Slice(d.uint(math.MaxUint64))}
	r.Key = partition.Key(d.text(MaxKeyBytes))
	r.Referrer = partition.Key(d.text(MaxKeyBytes))
	r.Depth = int(d.uint(maxDepth))
	r.Priority = int(d.byte())
	r.Seed = d.byte() == 1
	placed := len(d.b) > 0
	if placed {
		if r.Gen, r.Pace = d.uint(MaxGen), d.pace(); r.Gen != 0 {
			r.In = r.To
		}
	}
	if len(d.b) > 0 {
		r.Hint = d.hint()
	}
	if placed && r.Gen == 0 && (r.Hint.Kind == 0 || r.Pace != (Pace{})) {
		d.bad = true // one row has one encoding
	}
	return r, d.end("outbox row")
}

// clip cuts s to n bytes without leaving half a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
