package store

import (
	"errors"
)

// ErrDamaged says that a file of the trash is not as it was written.
var ErrDamaged = errors.New("store: damaged file")
