package format

import (
	"time"

	"github.com/echo-node/echo-node/store"
)

// Checkpoint is what a source stored for a Key, and when. An empty one means that there is none any
// more.
type Checkpoint struct {
	At    time.Time
	Bytes []byte
}

// Encode returns the unpacked row of c.
func (c Checkpoint) Encode() []byte {
	var e Encoder
	e.Byte(RowVersion)
	e.Time(c.At)
	e.Text(string(c.Bytes))
	return e.B
}

// ParseCheckpoint is the inverse of Checkpoint.Encode.
func ParseCheckpoint(b []byte) (Checkpoint, error) {
	d := NewDecoder(b)
	c := Checkpoint{At: d.Time(), Bytes: []byte(d.text(store.MaxCheckpointBytes))}
	return c, d.End("checkpoint")
}

// checkCheckpoint is CheckItem for checkpoints.
func checkCheckpoint(id ItemID, b []byte) ([]byte, time.Time, error) {
	c, err := ParseCheckpoint(b)
	if err == nil && id.Part != "" {
		err = ErrBadRow
	}
	return c.Encode(), c.At, err
}
