package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// loadChanged reads the newest number of the change log from disk.
func (s *Engine) loadChanged() error {
	it, err := s.DB.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(format.TabLog)},
		UpperBound: format.After([]byte{byte(format.TabLog)})})
	if err != nil {
		return err
	}
	if it.Last() {
		s.Newest.Store(binary.BigEndian.Uint64(it.Key()[1:]))
	}
	return it.Close()
}

// Number returns the 8-byte number in the meta row name, or 0 when there is no such row.
func (s *Engine) Number(name string) (uint64, error) {
	v, err := s.Get(format.MetaKey(name))
	if errors.Is(err, store.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%s: %w", name, format.ErrBadRow)
	}
	return binary.BigEndian.Uint64(v), nil
}
