package store

import (
	"errors"
)

// ErrClosed is returned by the methods of a Store after Close.
var ErrClosed = errors.New("store: closed")
