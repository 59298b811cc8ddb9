package store

import (
	"errors"
	"time"
)

// ErrRow is wrapped by every refusal of a row that another peer sent.
var ErrRow = errors.New("store: refused row")

// Caps of one ImportRows, and of what is made for one.
const (
	// MaxLogChunkBytes is the most that one row has, key and value, and so the most
	// that ReadLog and SliceRows answer for any maxBytes up to it.
	MaxLogChunkBytes = MaxRecordBytes + 512<<10
	MaxImportRows    = 1 << 16
	MaxImportBytes   = 64 << 20 // of the rows as sent, and again of what they expand to
	// MaxAhead is by how much the time at which a row says that it was fetched or seen may
	// be ahead of this peer's clock: the later of two rows wins, so one of next year would
	// win for a year. Such a row is left out, whoever sends it, and the others are taken: a
	// sender whose clock is wrong stalls nothing. Repair brings the row when its time has come.
	MaxAhead = 5 * time.Minute
)
