package engine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

func IsAbsent(err error) bool { return errors.Is(err, pebble.ErrNotFound) }

// Scan calls fn for the rows from lower up to upper until it answers false.
// The slices given to fn are Pebble's: copy what is kept.
func (s *Engine) Scan(lower, upper []byte, fn func(key, value []byte) (bool, error)) error {
	return Scan(s.DB, lower, upper, fn)
}

func Scan(r pebble.Reader, lower, upper []byte, fn func(key, value []byte) (bool, error)) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := fn(it.Key(), v); err != nil || !more {
			return err
		}
	}
	return it.Error()
}
