package store

import (
	"errors"
)

// ErrDamaged means that a file does not contain what was written to it.
var ErrDamaged = errors.New("store: damaged file")
