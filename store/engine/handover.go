package engine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/store"
)

func IgnoreAbsent(err error) error {
	if errors.Is(err, store.ErrNotExist) || errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	return err
}
