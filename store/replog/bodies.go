package replog

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// outgoingCapture returns the value of a capture row as it is sent: the row and its whole body. The
// body is included because the receiver's slice may not have it.
func (s *Log) outgoingCapture(from pebble.Reader, sl partition.Slice, rest, value []byte) ([]byte, error) {
	site, rest, ok := format.CutSite(rest)
	if !ok {
		return nil, format.ErrBadRow
	}
	k, class, at, err := format.SplitCapture(rest)
	if err != nil {
		return nil, err
	}
	_, sum, err := s.engine.Packer.DecodeCapture(format.CaptureID{SiteID: format.SiteID{Slice: sl, Site: site},
		Key: k, Class: class, At: at}, value)
	if err != nil {
		return nil, err
	}
	var body []byte
	if sum != "" {
		if body, err = engine.Get(from, format.BodyKey(sl, sum)); engine.IgnoreAbsent(err) != nil {
			return nil, err
		}
	}
	e := format.Encoder{B: make([]byte, 0, 16+len(value)+len(body))}
	e.Byte(format.RowVersion)
	e.Text(string(value))
	e.Text(string(body))
	return e.B, nil
}

// capture validates a capture of another peer.
func (v *validator) capture(i *incoming, rest, value []byte) error {
	k, class, at, err := format.SplitCapture(rest)
	if err != nil {
		return err
	}
	if i.key, err = partition.KeyFromWire(string(k)); err != nil {
		return err
	}
	n := format.CaptureID{SiteID: i.id, Key: i.key, Class: class, At: at}
	i.capture = &n
	if err := v.timely(n.Time()); err != nil {
		return err
	}
	if i.sent = len(value) == 0; i.sent {
		return v.home(i)
	}
	row, body, err := format.CutCapture(value)
	if err != nil {
		return err
	}
	b, err := v.unpack(row, format.MaxCaptureRow)
	if err != nil {
		return err
	}
	_, sum, err := format.ParseCapture(n, b)
	if err != nil {
		return err
	}
	if i.body, i.sum = row, sum; len(body) > 0 {
		raw, err := v.unpack(body, store.MaxBodyBytes)
		if err != nil {
			return err
		}
		if got := sha256.Sum256(raw); string(sum) != string(got[:]) {
			return errors.New("a body that is not its own")
		}
		i.kept = &archive.KeptBody{Sum: sum, Row: body}
	}
	return v.home(i)
}

// capture writes a capture that is missing, or drops one that its owner has dropped. Of two
// captures of the same time, it keeps the one with the greater bytes. Later, end trims the captures
// of each Key to the caps. Every replica does this in the same way: the newest stay.
func (m *merger) capture(i incoming) error {
	n := *i.capture
	m.visited[sliceKey{n.Slice, n.Key}] = n.SiteID
	if i.sent {
		delete(m.captures, string(n.Row()))
		return m.t.DropCapture(n)
	}
	// end checks whether the Key is placed elsewhere or withdrawn
	if m.t.s.engine.Charter().Mode == partition.ModeGeo || n.Key.Kind() == partition.KindFile {
		if _, err := m.stateOf(n.SiteID, n.Key); err != nil {
			return err
		}
	}
	row := string(n.Row())
	old, there := m.captures[row]
	if _, touched := m.t.Captured[row]; !touched {
		var err error
		if old, err = m.t.s.engine.Get([]byte(row)); engine.IgnoreAbsent(err) != nil {
			return err
		}
		there = err == nil
	}
	if there {
		if bytes.Compare(old, i.body) >= 0 {
			return nil
		}
		if err := m.t.DropCapture(n); err != nil {
			return err
		}
	}
	m.captures[row] = i.body
	return m.t.SetCapture(n, i.body, i.sum, i.kept)
}
