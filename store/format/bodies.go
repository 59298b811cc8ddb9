package format

import (
	"cmp"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Bodies are kept once a slice, under their sum, with a row for each capture that
// has the body: the last of those takes it along. What is counted are rows and
// no number, so that to import a capture twice counts once; and each replica has
// its own, made from the captures that it has. Slices share none, as each moves,
// is copied and dropped alone.

// BodySum is the SHA-256 of a body as it is kept, 32 bytes; "" = no body.
type BodySum string

type BodyID struct {
	Slice partition.Slice
	Sum   BodySum
}

func BodyKey(sl partition.Slice, sum BodySum) []byte {
	return append(SlicePrefix(TabBody, sl), sum...)
}

// UseKey is the row that says that a capture has a body; row is the capture's.
func UseKey(sl partition.Slice, sum BodySum, row []byte) []byte {
	return append(append(SlicePrefix(TabUse, sl), sum...), row[9:]...)
}

// CutCapture undoes outgoingCapture.
func CutCapture(v []byte) (value, body []byte, err error) {
	d := NewDecoder(v)
	value, body = []byte(d.text(store.MaxLogChunkBytes)), []byte(d.text(store.MaxLogChunkBytes))
	return value, body, d.End("capture")
}

func SortCaptures(names []CaptureID) {
	slices.SortFunc(names,
		func(a, b CaptureID) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.At, b.At)) })
}
