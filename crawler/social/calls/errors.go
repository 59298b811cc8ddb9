package calls

import (
	"errors"
)

// ErrEnough ends a fetch that has made its calls; the next one goes on.
var ErrEnough = errors.New("social: enough for one fetch")

// StoreError is a failure of this peer's store, which no answer of a server is.
type StoreError struct{ Err error }

// Error is the store's.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap is the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// GateError is what Task.Gate or Task.Judge said; the Source gives it back as it was.
type GateError struct{ Err error }

// Error is the gate's.
func (e *GateError) Error() string { return e.Err.Error() }

// Unwrap is the gate's error.
func (e *GateError) Unwrap() error { return e.Err }
