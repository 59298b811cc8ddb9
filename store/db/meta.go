package db

import (
	"fmt"

	"github.com/echo-node/echo-node/store/format"
)

// Caps of Meta, in bytes.
const (
	maxMetaName  = 64
	maxMetaValue = 1 << 20
)

// Meta returns a small named value of the node. It returns ErrNotExist when the value was never
// set.
func (s *Store) Meta(name string) ([]byte, error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	defer s.engine.Leave()
	v, err := s.engine.Get(format.ValueKey(name))
	if err != nil {
		return nil, fmt.Errorf("store: value %q: %w", name, err)
	}
	return v, nil
}

// SetMeta makes a small named value durable. The name has 1 to 64 bytes, the value at most 1 MiB.
// The last of two concurrent calls wins.
func (s *Store) SetMeta(name string, value []byte) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	if err := checkMeta(name, value); err != nil {
		return err
	}
	return s.write(nil, func(t *batch) error { return t.Rows.Set(format.ValueKey(name), value, nil) })
}

func checkMeta(name string, value []byte) error {
	if name == "" || len(name) > maxMetaName || len(value) > maxMetaValue {
		return fmt.Errorf("store: value %.64q: name of %d bytes (1 to %d), value of %d (at most %d)", name, len(name),
			maxMetaName, len(value), maxMetaValue)
	}
	return nil
}

// SetMetas sets several values, as one batch: after a crash, all of them are set or none. A nil
// value deletes.
func (s *Store) SetMetas(rows map[string][]byte) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	for name, value := range rows {
		if err := checkMeta(name, value); err != nil {
			return err
		}
	}
	return s.write(nil, func(t *batch) error {
		for name, value := range rows {
			var err error
			if value == nil {
				err = t.Rows.Delete(format.ValueKey(name), nil)
			} else {
				err = t.Rows.Set(format.ValueKey(name), value, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Metas calls each for every value whose name begins with prefix, in order of name, until each
// returns an error. Metas returns this error. each may keep v.
func (s *Store) Metas(prefix string, each func(name string, v []byte) error) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.ValueKey(prefix)
	return s.engine.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
		return true, each(string(key[1:]), append([]byte{}, value...))
	})
}
