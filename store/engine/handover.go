package engine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/store"
)

// IgnoreAbsent returns err, or nil when err says that the row does not exist.
func IgnoreAbsent(err error) error {
	if errors.Is(err, store.ErrNotExist) || errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	return err
}
