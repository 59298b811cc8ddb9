package store

import (
	"errors"
	"time"
)

// ErrRow is wrapped by the error for every refused row of another peer.
var ErrRow = errors.New("store: refused row")

// Limits of one ImportRows, and of what is produced for one.
const (
	// MaxLogChunkBytes is the maximum size of one row, key and value. So it is also the maximum
	// that ReadLog and SliceRows return for any maxBytes up to it.
	MaxLogChunkBytes = MaxRecordBytes + 512<<10
	MaxImportRows    = 1 << 16
	MaxImportBytes   = 64 << 20 // of the rows as sent, and separately of their expanded size
	// MaxAhead is the maximum by which the fetched or seen time of a row may be ahead of this
	// peer's clock. The later of two rows wins, so a row from next year would win for a year. Such
	// a row is skipped, whoever sends it, and the others are accepted: a sender with a wrong clock
	// does not block anything. Repair brings the row when its time has come.
	MaxAhead = 5 * time.Minute
)
