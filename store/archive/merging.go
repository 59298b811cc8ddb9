package archive

import (
	"bytes"

	"github.com/echo-node/echo-node/store"
)

// Version is the order of a record among those of its Key.
type Version struct {
	Record store.Record
	Body   []byte
}

func (a Version) Above(b Version) bool {
	if c := a.Record.FetchedAt.Compare(b.Record.FetchedAt); c != 0 {
		return c > 0
	}
	if a.Record.Digest != b.Record.Digest {
		return a.Record.Digest > b.Record.Digest
	}
	return bytes.Compare(a.Body, b.Body) > 0
}
