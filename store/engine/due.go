package engine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// IsAbsent reports whether err is Pebble's error for a missing row.
func IsAbsent(err error) bool { return errors.Is(err, pebble.ErrNotFound) }

// Scan calls fn for each row from lower up to, but not including, upper, until fn returns false.
// The slices that fn gets belong to Pebble: fn must copy what it keeps.
func (s *Engine) Scan(lower, upper []byte, fn func(key, value []byte) (bool, error)) error {
	return Scan(s.DB, lower, upper, fn)
}

// Scan is Engine.Scan for any reader of Pebble.
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
