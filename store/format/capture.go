package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Classes of captures: the letter after the Key in a row's key.
const (
	ClassVersion byte = 1
	ClassRevisit byte = 2
)

// ClassOf returns the class of c.
func ClassOf(c *store.Capture) byte {
	if c.Revisit == "" {
		return ClassVersion
	}
	return ClassRevisit
}

// CaptureID identifies a capture.
type CaptureID struct {
	SiteID
	Key   partition.Key
	Class byte
	At    int64 // microseconds since 1970
}

// PartLen is the length of the row's key after the Key and a zero byte: class and time.
const PartLen = 9

// Row returns the key of the capture's row.
func (id CaptureID) Row() []byte {
	return append(CaptureKey(id.SiteID, id.Key), id.Part()...)
}

// Part returns the end of the key of the capture's row, PartLen bytes. Parts of one class sort by
// time, before 1970 too.
func (id CaptureID) Part() []byte {
	return binary.BigEndian.AppendUint64([]byte{id.Class}, uint64(id.At)^1<<63) // in order of time
}

// Time returns the time of the visit.
func (id CaptureID) Time() time.Time { return time.UnixMicro(id.At).UTC() }

// CaptureKey returns the prefix of all capture rows of k.
func CaptureKey(id SiteID, k partition.Key) []byte {
	return append(KeyRow(TabCapture, id, k), SepByte)
}

// SplitCapture parses the part of a row's key after the site.
func SplitCapture(rest []byte) (k partition.Key, class byte, at int64, err error) {
	n := len(rest) - PartLen - 1
	if n < 0 || rest[n] != SepByte || bytes.IndexByte(rest[:n], SepByte) >= 0 {
		return "", 0, 0, ErrBadRow
	}
	class, at = rest[n+1], int64(binary.BigEndian.Uint64(rest[n+2:])^1<<63)
	if class != ClassVersion && class != ClassRevisit || at < MinTime || at > MaxTime {
		return "", 0, 0, ErrBadRow
	}
	return partition.Key(rest[:n]), class, at, nil
}

// EncodeCapture returns the row of c. Its body is a separate row; this row has the body's sum.
func (p *Packer) EncodeCapture(c *store.Capture, sum BodySum) ([]byte, error) {
	e := Encoder{B: make([]byte, 0, 256+len(c.Request)+len(c.Response))}
	e.Byte(RowVersion)
	e.Text(c.Revisit)
	e.Time(c.Of)
	e.uint(uint64(max(c.Status, 0)))
	e.Text(c.Digest)
	e.Text(string(c.Redirect))
	e.Text(c.Peer)
	e.Text(c.Addr)
	e.Text(c.Protocol)
	e.Text(string(c.Request))
	e.Text(string(c.Response))
	e.Text(string(sum))
	e.flag(c.Cut)
	var record []byte
	if c.Record != nil {
		var err error
		if _, record, err = c.Record.Fit(); err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
	}
	e.Text(string(record))
	return p.Pack(e.B), nil
}

// MaxCaptureRow is the maximum expanded size of a capture's row.
const MaxCaptureRow = store.MaxRecordBytes + 2*store.MaxHeadBytes + 32<<10

// DecodeCapture is the inverse of EncodeCapture. The caller reads the body.
func (p *Packer) DecodeCapture(id CaptureID, v []byte) (c store.Capture, sum BodySum, err error) {
	b, err := p.Unpack(v, MaxCaptureRow)
	if err != nil {
		return c, "", fmt.Errorf("capture: %w", err)
	}
	return ParseCapture(id, b)
}

// ParseCapture decodes the unpacked row of a capture.
func ParseCapture(id CaptureID, b []byte) (c store.Capture, sum BodySum, err error) {
	d := NewDecoder(b)
	c = store.Capture{Key: id.Key, At: id.Time(), Revisit: d.text(store.MaxHeader), Of: d.Time(),
		Status: int(d.Uint(math.MaxInt32)), Digest: d.text(store.MaxHeader),
		Redirect: partition.Key(d.text(store.MaxKeyBytes)), Peer: d.text(store.MaxHeader), Addr: d.text(store.MaxAddr),
		Protocol: d.text(store.MaxAddr),
		Request:  []byte(d.text(store.MaxHeadBytes)), Response: []byte(d.text(store.MaxHeadBytes))}
	sum, c.Cut = BodySum(d.text(sha256.Size)), d.byte() == 1
	record := d.text(store.MaxRecordBytes)
	if err := d.End("capture"); err != nil {
		return c, "", err
	}
	if ClassOf(&c) != id.Class || len(sum) != 0 && (len(sum) != sha256.Size || id.Class != ClassVersion) {
		return c, "", fmt.Errorf("capture: %w", ErrBadRow)
	}
	if record != "" {
		r, err := ParseRecord([]byte(record))
		if err != nil {
			return c, "", err
		}
		if r.Key != id.Key {
			return c, "", fmt.Errorf("capture: a record of %.80q: %w", r.Key, ErrBadRow)
		}
		c.Record = &r
	}
	return c, sum, nil
}
