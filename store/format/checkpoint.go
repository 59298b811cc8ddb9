package format

import (
	"time"

	"github.com/echo-node/echo-node/store"
)

// Checkpoint is what a source left of a Key, and when. An empty one says that
// there is none any more.
type Checkpoint struct {
	At    time.Time
	Bytes []byte
}

func (c Checkpoint) Encode() []byte {
	var e Encoder
	e.Byte(RowVersion)
	e.Time(c.At)
	e.Text(string(c.Bytes))
	return e.B
}

func ParseCheckpoint(b []byte) (Checkpoint, error) {
	d := NewDecoder(b)
	c := Checkpoint{At: d.Time(), Bytes: []byte(d.text(store.MaxCheckpointBytes))}
	return c, d.End("checkpoint")
}

func checkCheckpoint(id ItemID, b []byte) ([]byte, time.Time, error) {
	c, err := ParseCheckpoint(b)
	if err == nil && id.Part != "" {
		err = ErrBadRow
	}
	return c.Encode(), c.At, err
}
