package calls

import (
	"errors"
)

// ErrEnough ends a fetch that has used its number of calls. The next fetch continues.
var ErrEnough = errors.New("social: enough for one fetch")

// StoreError is a failure of this peer's store, as opposed to a server's error.
type StoreError struct{ Err error }

// Error returns the text of the store's error.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// GateError wraps an error of Task.Gate or Task.Judge. The Source returns that error unchanged.
type GateError struct{ Err error }

// Error returns the text of the gate's error.
func (e *GateError) Error() string { return e.Err.Error() }

// Unwrap returns the gate's error.
func (e *GateError) Unwrap() error { return e.Err }
