package format

import (
	"cmp"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A slice stores each body once, under its sum, with a row for each capture that uses it. When the
// last of these captures is deleted, so is the body. There is no reference count: importing a
// capture twice must count only once, so the rows are counted. Each replica makes its own rows from
// its captures. Slices share no bodies, because each slice moves, is copied and is dropped alone.

// BodySum is the SHA-256 of a stored body, 32 bytes; "" = no body.
type BodySum string

// BodyID identifies a body of a slice.
type BodyID struct {
	Slice partition.Slice
	Sum   BodySum
}

// BodyKey returns the key of the row of a body.
func BodyKey(sl partition.Slice, sum BodySum) []byte {
	return append(SlicePrefix(TabBody, sl), sum...)
}

// UseKey returns the key of the row that says that a capture uses a body; row is the capture's key.
func UseKey(sl partition.Slice, sum BodySum, row []byte) []byte {
	return append(append(SlicePrefix(TabUse, sl), sum...), row[9:]...)
}

// CutCapture is the inverse of replog's outgoingCapture: it splits a capture into its row and its
// body.
func CutCapture(v []byte) (value, body []byte, err error) {
	d := NewDecoder(v)
	value, body = []byte(d.text(store.MaxLogChunkBytes)), []byte(d.text(store.MaxLogChunkBytes))
	return value, body, d.End("capture")
}

// SortCaptures sorts the captures of one Key by class, then time.
func SortCaptures(names []CaptureID) {
	slices.SortFunc(names,
		func(a, b CaptureID) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.At, b.At)) })
}
