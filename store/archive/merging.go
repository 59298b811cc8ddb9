package archive

import (
	"bytes"

	"github.com/echo-node/echo-node/store"
)

// Version is a record and its row. Above orders the versions of one Key.
type Version struct {
	Record store.Record
	Body   []byte
}

// Above reports whether a is kept when a and b meet: the later fetch, then the greater digest, then
// the greater bytes.
func (a Version) Above(b Version) bool {
	if c := a.Record.FetchedAt.Compare(b.Record.FetchedAt); c != 0 {
		return c > 0
	}
	if a.Record.Digest != b.Record.Digest {
		return a.Record.Digest > b.Record.Digest
	}
	return bytes.Compare(a.Body, b.Body) > 0
}
