package store

import (
	"errors"
)

// ErrClosed is the answer of a Store after Close.
var ErrClosed = errors.New("store: closed")
