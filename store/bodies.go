package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// Bodies are kept once a slice, under their sum, with a row for each capture that
// has the body: the last of those takes it along. What is counted are rows and
// no number, so that to import a capture twice counts once; and each replica has
// its own, made from the captures that it has. Slices share none, as each moves,
// is copied and dropped alone.

// bodySum is the SHA-256 of a body as it is kept, 32 bytes; "" = no body.
type bodySum string

type bodyID struct {
	slice partition.Slice
	sum   bodySum
}

func bodyKey(sl partition.Slice, sum bodySum) []byte {
	return append(slicePrefix(tabBody, sl), sum...)
}

// useKey is the row that says that a capture has a body; row is the capture's.
func useKey(sl partition.Slice, sum bodySum, row []byte) []byte {
	return append(append(slicePrefix(tabUse, sl), sum...), row[9:]...)
}

// keptBody is a body on its way into the store.
type keptBody struct {
	sum  bodySum
	raw  []byte // nil when value is there
	row  []byte // packed, nil = not yet
	pack func([]byte) []byte
}

// value is the row.
func (b *keptBody) value() []byte {
	if b.row == nil {
		b.row = b.pack(b.raw)
	}
	return b.row
}

// size is about that of the row.
func (b *keptBody) size() int {
	if b == nil {
		return 0
	}
	if b.row == nil {
		return len(b.raw)
	}
	return len(b.row)
}

// kept brings c's Capture within its caps and makes its body ready, before any
// lock is taken: one that seems to be new is packed here.
func (s *Store) kept(sl partition.Slice, c *Commit) (*keptBody, error) {
	if c.Capture == nil {
		return nil, nil
	}
	now := *c.Capture
	now.clip()
	if c.Capture = &now; len(now.Body) == 0 {
		return nil, nil
	}
	sum := sha256.Sum256(now.Body)
	b := &keptBody{sum: bodySum(sum[:]), raw: now.Body, pack: s.packer.pack}
	_, err := s.get(bodyKey(sl, b.sum))
	if errors.Is(err, ErrNotExist) {
		b.value()
		err = nil
	}
	return b, err
}

// bodyUse is what a batch does to the uses of one body.
type bodyUse struct {
	added, removed map[string]bool // rows of captures
	body           *keptBody
}

func (t *txn) bodyUse(n captureID, sum bodySum) *bodyUse {
	id := bodyID{n.slice, sum}
	u := t.bodies[id]
	if u == nil {
		u = &bodyUse{added: map[string]bool{}, removed: map[string]bool{}}
		t.bodies[id] = u
	}
	return u
}

func (t *txn) useBody(n captureID, sum bodySum, body *keptBody) {
	u, row := t.bodyUse(n, sum), string(n.row())
	u.added[row] = true
	delete(u.removed, row)
	if body != nil {
		u.body = body
	}
}

func (t *txn) leaveBody(n captureID, sum bodySum) {
	u, row := t.bodyUse(n, sum), string(n.row())
	u.removed[row] = true
	delete(u.added, row)
}

// endBodies writes the rows of the bodies that the batch took up or left.
func (t *txn) endBodies() error {
	for id, u := range t.bodies {
		used := len(u.added) > 0
		if !used {
			prefix := append(slicePrefix(tabUse, id.slice), id.sum...)
			err := t.s.scan(prefix, after(prefix), func(key, _ []byte) (bool, error) {
				used = !u.removed[string(append(slicePrefix(tabCapture, id.slice), key[len(prefix):]...))]
				return !used, nil
			})
			if err != nil {
				return err
			}
		}
		for row := range u.removed {
			_ = t.b.Delete(useKey(id.slice, id.sum, []byte(row)), nil)
		}
		for row := range u.added {
			_ = t.b.Set(useKey(id.slice, id.sum, []byte(row)), nil, nil)
		}
		_, err := t.s.get(bodyKey(id.slice, id.sum))
		switch {
		case ignoreAbsent(err) != nil:
			return err
		case err == nil && !used:
			_ = t.b.Delete(bodyKey(id.slice, id.sum), nil)
		case err != nil && used && u.body != nil:
			_ = t.b.Set(bodyKey(id.slice, id.sum), u.body.value(), nil)
		}
	}
	return nil
}

// A capture on its way to another peer has its body with it, whole, so that it
// needs nothing else: the receiver's slice may have that body or not.

func (s *Store) outgoingCapture(from pebble.Reader, sl partition.Slice, rest, value []byte) ([]byte, error) {
	site, rest, ok := cutSite(rest)
	if !ok {
		return nil, errBadRow
	}
	k, class, at, err := splitCapture(rest)
	if err != nil {
		return nil, err
	}
	_, sum, err := s.packer.decodeCapture(captureID{siteID{sl, site}, k, class, at}, value)
	if err != nil {
		return nil, err
	}
	var body []byte
	if sum != "" {
		if body, err = get(from, bodyKey(sl, sum)); ignoreAbsent(err) != nil {
			return nil, err
		}
	}
	e := encoder{b: make([]byte, 0, 16+len(value)+len(body))}
	e.byte(rowVersion)
	e.text(string(value))
	e.text(string(body))
	return e.b, nil
}

// cutCapture undoes outgoingCapture.
func cutCapture(v []byte) (value, body []byte, err error) {
	d := newDecoder(v)
	value, body = []byte(d.text(MaxLogChunkBytes)), []byte(d.text(MaxLogChunkBytes))
	return value, body, d.end("capture")
}

// capture is the gate for one of another peer.
func (v *validator) capture(i *incoming, rest, value []byte) error {
	k, class, at, err := splitCapture(rest)
	if err != nil {
		return err
	}
	if i.key, err = partition.KeyFromWire(string(k)); err != nil {
		return err
	}
	n := captureID{i.id, i.key, class, at}
	i.capture = &n
	if err := v.timely(n.time()); err != nil {
		return err
	}
	if i.sent = len(value) == 0; i.sent {
		return v.home(i)
	}
	row, body, err := cutCapture(value)
	if err != nil {
		return err
	}
	b, err := v.unpack(row, maxCaptureRow)
	if err != nil {
		return err
	}
	_, sum, err := parseCapture(n, b)
	if err != nil {
		return err
	}
	if i.body, i.sum = row, sum; len(body) > 0 {
		raw, err := v.unpack(body, MaxBodyBytes)
		if err != nil {
			return err
		}
		if got := sha256.Sum256(raw); string(sum) != string(got[:]) {
			return errors.New("a body that is not its own")
		}
		i.kept = &keptBody{sum: sum, row: body}
	}
	return v.home(i)
}

// capture puts one where it is not, or leaves one that its owner has left. Of
// two of the same moment the greater bytes stay. What was put for a Key is
// brought within the caps by end, which every replica does alike: the newest stay.
func (m *merger) capture(i incoming) error {
	n := *i.capture
	m.visited[sliceKey{n.slice, n.key}] = n.siteID
	if i.sent {
		delete(m.captures, string(n.row()))
		return m.t.dropCapture(n)
	}
	// end asks whether it is placed, or withdrawn
	if m.t.s.charter.Mode == partition.ModeGeo || n.key.Kind() == partition.KindFile {
		if _, err := m.stateOf(n.siteID, n.key); err != nil {
			return err
		}
	}
	row := string(n.row())
	old, there := m.captures[row]
	if _, touched := m.t.captured[row]; !touched {
		var err error
		if old, err = m.t.s.get([]byte(row)); ignoreAbsent(err) != nil {
			return err
		}
		there = err == nil
	}
	if there {
		if bytes.Compare(old, i.body) >= 0 {
			return nil
		}
		if err := m.t.dropCapture(n); err != nil {
			return err
		}
	}
	m.captures[row] = i.body
	return m.t.setCapture(n, i.body, i.sum, i.kept)
}

func sortCaptures(names []captureID) {
	slices.SortFunc(names,
		func(a, b captureID) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.at, b.at)) })
}
