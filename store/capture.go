package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Caps of what is kept of the visits to one Key.
const (
	MaxVersions  = 8  // the latest included when its body is kept
	MaxRevisits  = 16 // visits that found nothing new
	MaxCaptures  = MaxVersions + MaxRevisits
	MaxBodyBytes = 2 << 20  // of a body; the rest is not kept
	MaxHeadBytes = 16 << 10 // of a request's or an answer's line and header; further fields are not kept
	maxAddr      = 64
)

// Words of Capture.Revisit.
const (
	Identical   = "identical"    // the answer had the digest of the version before
	NotModified = "not-modified" // the answer was a 304
)

// Capture is one visit to a Key. A version (Revisit "") is either the exchange
// with its body, or, where bodies are not kept, the Record as it was when the
// next version took its place.
type Capture struct {
	Key      partition.Key `json:"key"`
	At       time.Time     `json:"at"`                // unique among those of the Key; UTC, microseconds
	Revisit  string        `json:"revisit,omitempty"` // "" is a version
	Of       time.Time     `json:"of,omitzero"`       // of a revisit: At of its version; zero = that is not kept
	Status   int           `json:"status"`
	Digest   string        `json:"digest,omitempty"` // that of the Record
	Redirect partition.Key `json:"redirect,omitempty"`
	Peer     string        `json:"peer,omitempty"`
	Addr     string        `json:"addr,omitempty"`     // IP address that answered
	Protocol string        `json:"protocol,omitempty"` // as HTTP/2.0
	Request  []byte        `json:"request,omitempty"`  // line and header fields as of HTTP/1.1, each ended by CR LF
	Response []byte        `json:"response,omitempty"` // the same of the answer
	Body     []byte        `json:"body,omitempty"`     // without Content-Encoding
	Cut      bool          `json:"cut,omitempty"`      // Body is not whole
	Record   *Record       `json:"record,omitempty"`
}

// of says whether c shows the page as r does.
func (c *Capture) of(r *Record) bool {
	return c.Status == r.Status && c.Digest == r.Digest && c.Redirect == r.Redirect
}

// clip brings c within the caps.
func (c *Capture) clip() {
	c.Request, c.Response = clipHead(c.Request), clipHead(c.Response)
	if len(c.Body) > MaxBodyBytes {
		c.Body, c.Cut = c.Body[:MaxBodyBytes], true
	}
}

// clipHead cuts between two lines.
func clipHead(b []byte) []byte {
	if len(b) > MaxHeadBytes {
		b = b[:bytes.LastIndexByte(b[:MaxHeadBytes], '\n')+1]
	}
	return b
}

// Classes of captures: the letter after the Key in a row's key.
const (
	classVersion byte = 1
	classRevisit byte = 2
)

func (c *Capture) class() byte {
	if c.Revisit == "" {
		return classVersion
	}
	return classRevisit
}

// captureID names a capture among all.
type captureID struct {
	siteID
	key   partition.Key
	class byte
	at    int64 // microseconds since 1970
}

// partLen is what follows the Key and a zero byte in the key of a row: class, time.
const partLen = 9

func (id captureID) row() []byte {
	return append(captureKey(id.siteID, id.key), id.part()...)
}

func (id captureID) part() []byte {
	return binary.BigEndian.AppendUint64([]byte{id.class}, uint64(id.at)^1<<63) // in order of time, before 1970 too
}

func (id captureID) time() time.Time { return time.UnixMicro(id.at).UTC() }

// captureKey is what all rows of k begin with.
func captureKey(id siteID, k partition.Key) []byte {
	return append(keyRow(tabCapture, id, k), sepByte)
}

// splitCapture takes what follows the site in a row's key apart.
func splitCapture(rest []byte) (k partition.Key, class byte, at int64, err error) {
	n := len(rest) - partLen - 1
	if n < 0 || rest[n] != sepByte || bytes.IndexByte(rest[:n], sepByte) >= 0 {
		return "", 0, 0, errBadRow
	}
	class, at = rest[n+1], int64(binary.BigEndian.Uint64(rest[n+2:])^1<<63)
	if class != classVersion && class != classRevisit || at < minTime || at > maxTime {
		return "", 0, 0, errBadRow
	}
	return partition.Key(rest[:n]), class, at, nil
}

// encodeCapture is the row of c. Its body is a row of its own, of which this has
// the sum.
func (p *packer) encodeCapture(c *Capture, sum bodySum) ([]byte, error) {
	e := encoder{b: make([]byte, 0, 256+len(c.Request)+len(c.Response))}
	e.byte(rowVersion)
	e.text(c.Revisit)
	e.time(c.Of)
	e.uint(uint64(max(c.Status, 0)))
	e.text(c.Digest)
	e.text(string(c.Redirect))
	e.text(c.Peer)
	e.text(c.Addr)
	e.text(c.Protocol)
	e.text(string(c.Request))
	e.text(string(c.Response))
	e.text(string(sum))
	e.flag(c.Cut)
	var record []byte
	if c.Record != nil {
		var err error
		if _, record, err = c.Record.fit(); err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
	}
	e.text(string(record))
	return p.pack(e.b), nil
}

// maxCaptureRow is the most that the row of a capture expands to.
const maxCaptureRow = MaxRecordBytes + 2*MaxHeadBytes + 32<<10

// decodeCapture undoes encodeCapture; the body is left to the caller.
func (p *packer) decodeCapture(id captureID, v []byte) (c Capture, sum bodySum, err error) {
	b, err := p.unpack(v, maxCaptureRow)
	if err != nil {
		return c, "", fmt.Errorf("capture: %w", err)
	}
	return parseCapture(id, b)
}

func parseCapture(id captureID, b []byte) (c Capture, sum bodySum, err error) {
	d := newDecoder(b)
	c = Capture{Key: id.key, At: id.time(), Revisit: d.text(maxHeader), Of: d.time(),
		Status: int(d.uint(math.MaxInt32)), Digest: d.text(maxHeader),
		Redirect: partition.Key(d.text(MaxKeyBytes)), Peer: d.text(maxHeader), Addr: d.text(maxAddr),
		Protocol: d.text(maxAddr),
		Request:  []byte(d.text(MaxHeadBytes)), Response: []byte(d.text(MaxHeadBytes))}
	sum, c.Cut = bodySum(d.text(sha256.Size)), d.byte() == 1
	record := d.text(MaxRecordBytes)
	if err := d.end("capture"); err != nil {
		return c, "", err
	}
	if c.class() != id.class || len(sum) != 0 && (len(sum) != sha256.Size || id.class != classVersion) {
		return c, "", fmt.Errorf("capture: %w", errBadRow)
	}
	if record != "" {
		r, err := parseRecord([]byte(record))
		if err != nil {
			return c, "", err
		}
		if r.Key != id.key {
			return c, "", fmt.Errorf("capture: a record of %.80q: %w", r.Key, errBadRow)
		}
		c.Record = &r
	}
	return c, sum, nil
}

// Captures calls fn for what is kept of the visits to k in sl (0: its hash
// slice), versions before revisits and each in order of time, until it answers
// false. part is where to go on: captures up to and with it are left out; nil
// begins. A body that is not there any more is left out.
func (s *Store) Captures(sl partition.Slice, k partition.Key, part []byte,
	fn func(part []byte, c Capture) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	id := s.idIn(sl, k)
	prefix := captureKey(id, k)
	lower := prefix
	if len(part) > 0 {
		lower = append(append(bytes.Clone(prefix), part...), 0)
	}
	err := s.scan(lower, after(prefix), func(key, value []byte) (bool, error) {
		_, class, at, err := splitCapture(key[len(prefix)-len(k)-1:])
		if err != nil {
			return false, err
		}
		cid := captureID{id, k, class, at}
		c, sum, err := s.packer.decodeCapture(cid, value)
		if err != nil {
			return false, err
		}
		if sum != "" {
			v, err := s.get(bodyKey(id.slice, sum))
			if err == nil {
				c.Body, err = s.packer.unpack(v, MaxBodyBytes)
			}
			if ignoreAbsent(err) != nil {
				return false, fmt.Errorf("body: %w", err)
			}
		}
		return fn(cid.part(), c)
	})
	if err != nil {
		return fmt.Errorf("store: captures of %s: %w", k, err)
	}
	return nil
}

// visit keeps c's visit, and the version that it ends. It is called before the
// record is written; body is that of c.Capture. The first visit of a Key, which
// most are, costs no more than to see that there is no record yet: captures come
// with one.
func (t *txn) visit(id siteID, c Commit, body *keptBody) error {
	r := c.Record
	if r == nil && (c.Capture == nil || c.Capture.Revisit == "") {
		return nil
	}
	had, err := t.s.get(keyRow(tabRecord, id, c.Key))
	if ignoreAbsent(err) != nil {
		return err
	}
	v := visiting{t: t, id: id, key: c.Key}
	var old *Record
	if err == nil {
		now, err := t.s.packer.decodeRecord(had)
		if err != nil {
			return err
		}
		if old = &now; v.load() != nil {
			return v.err
		}
	}
	if c.Key.Kind() == partition.KindFile { // fetched once: it has no versions
		if err := v.forget(); err != nil {
			return err
		}
		v.names, v.last, old = nil, nil, nil
	}
	switch {
	case r == nil && old == nil:
		return nil // not modified since nobody knows
	case r != nil && !r.archived():
		return v.forget()
	case r != nil && old != nil && !old.shows(r) && old.archived() && (v.last == nil || !v.last.of(old)):
		v.put(Capture{At: old.FetchedAt, Status: old.Status, Digest: old.Digest, Redirect: old.Redirect, Peer: old.Peer,
			Record: old}, nil)
	}
	var now Capture
	if c.Capture != nil {
		now = *c.Capture
	}
	if now.Record = nil; now.At.IsZero() {
		now.At = c.Now
	}
	if r != nil {
		now.At, now.Peer, now.Status, now.Digest, now.Redirect, now.Revisit = r.FetchedAt, r.Peer, r.Status, r.Digest,
			r.Redirect, ""
		if old != nil && old.shows(r) && (v.last != nil && v.last.of(r) || len(now.Response) == 0) {
			now.Revisit = Identical
		}
	}
	switch {
	case now.Revisit != "":
		now.Body, now.Cut, now.Of = nil, false, time.Time{}
		if v.last != nil && (r == nil || v.last.of(r)) {
			now.Of = v.last.At
		}
		v.put(now, nil)
	case len(now.Response) > 0: // else the record is kept, when it ends
		v.put(now, body)
	}
	return v.trim()
}

// shows says whether r and b show the same page.
func (r *Record) shows(b *Record) bool {
	return r.Status == b.Status && r.Digest == b.Digest && r.Redirect == b.Redirect
}

// archived says whether what r is of may be kept: its site does not ask
// otherwise.
func (r *Record) archived() bool { return !r.NoIndex && !r.NoArchive }

// visiting is what a visit does to the captures of a Key.
type visiting struct {
	t     *txn
	id    siteID
	key   partition.Key
	names []captureID // in order
	last  *Capture    // the newest version there was, without its body
	err   error       // the first
}

// load finds what there is.
func (v *visiting) load() error {
	if v.names, v.err = v.t.captureNames(v.id, v.key); v.err != nil {
		return v.err
	}
	for i := len(v.names) - 1; i >= 0 && v.last == nil; i-- {
		if n := v.names[i]; n.class == classVersion {
			var b []byte
			if b, v.err = v.t.s.get(n.row()); v.err != nil {
				return v.err
			}
			var c Capture
			if c, _, v.err = v.t.s.packer.decodeCapture(n, b); v.err != nil {
				return v.err
			}
			v.last = &c
		}
	}
	return nil
}

// forget drops all: the site asks that the page is not kept, and so not as it
// was before.
func (v *visiting) forget() error {
	for _, n := range v.names {
		if err := v.t.dropCapture(n); err != nil {
			return err
		}
	}
	return nil
}

// put writes c as the newest: a clock that was set back must not make it an
// older one.
func (v *visiting) put(c Capture, body *keptBody) {
	c.Key = v.key
	n := captureID{v.id, v.key, c.class(), max(c.At.UnixMicro(), minTime)}
	for _, had := range v.names {
		n.at = max(n.at, had.at+1)
	}
	if v.err != nil || n.at > maxTime { // there is no later moment
		return
	}
	var sum bodySum
	if body != nil {
		sum = body.sum
	}
	var value []byte
	if value, v.err = v.t.s.packer.encodeCapture(&c, sum); v.err != nil {
		return
	}
	v.names = append(v.names, n)
	v.err = v.t.setCapture(n, value, sum, body)
}

// trim leaves the newest of each class.
func (v *visiting) trim() error {
	if v.err != nil {
		return v.err
	}
	sortCaptures(v.names)
	left := map[byte]int{classVersion: MaxVersions, classRevisit: MaxRevisits}
	if v.key.Kind() == partition.KindFile {
		left = map[byte]int{classVersion: 1}
	}
	for i := len(v.names) - 1; i >= 0; i-- {
		if left[v.names[i].class]--; left[v.names[i].class] < 0 {
			if err := v.t.dropCapture(v.names[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// setCapture writes a row as it is.
func (t *txn) setCapture(n captureID, value []byte, sum bodySum, body *keptBody) error {
	row := n.row()
	size := len(value)
	if sum != "" {
		t.useBody(n, sum, body)
		size += body.size()
	}
	t.captured[string(row)] = true
	t.name(n.slice, nameCapture, row[9:], size, time.Time{})
	return t.b.Set(row, value, nil)
}

// dropCapture forgets one, and its body if no other has that. That it is gone is
// in the log, as a name without a row.
func (t *txn) dropCapture(n captureID) error {
	row := n.row()
	if there, err := t.hasCapture(n); err != nil || !there {
		return err
	}
	v, err := t.s.get(row)
	if ignoreAbsent(err) != nil {
		return err
	}
	if err == nil {
		_, sum, err := t.s.packer.decodeCapture(n, v)
		if err != nil {
			return err
		}
		if sum != "" {
			t.leaveBody(n, sum)
		}
	}
	for id, u := range t.bodies { // one that this batch put
		if id.slice == n.slice && u.added[string(row)] {
			t.leaveBody(n, id.sum)
		}
	}
	t.captured[string(row)] = false
	t.name(n.slice, nameCapture, row[9:], 0, time.Time{})
	return t.b.Delete(row, nil)
}

func (t *txn) hasCapture(n captureID) (bool, error) {
	row := n.row()
	if put, ok := t.captured[string(row)]; ok {
		return put, nil
	}
	_, err := t.s.get(row)
	return err == nil, ignoreAbsent(err)
}

// captureNames are the captures of k as this batch leaves them so far, in order.
func (t *txn) captureNames(id siteID, k partition.Key) (out []captureID, err error) {
	prefix := captureKey(id, k)
	add := func(row []byte) error {
		_, class, at, err := splitCapture(row[len(prefix)-len(k)-1:])
		out = append(out, captureID{id, k, class, at})
		return err
	}
	err = t.s.scan(prefix, after(prefix), func(key, _ []byte) (bool, error) {
		if _, touched := t.captured[string(key)]; touched {
			return true, nil
		}
		return true, add(key)
	})
	for row, put := range t.captured {
		if err == nil && put && strings.HasPrefix(row, string(prefix)) {
			err = add([]byte(row))
		}
	}
	sortCaptures(out)
	return out, err
}
