package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Caps of Meta.
const (
	maxMetaName  = 64
	maxMetaValue = 1 << 20
)

// Meta is a small named value of the node; ErrNotExist when it was never set.
func (s *Store) Meta(name string) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	v, err := s.get(valueKey(name))
	if err != nil {
		return nil, fmt.Errorf("store: value %q: %w", name, err)
	}
	return v, nil
}

// SetMeta makes a small named value durable: a name of 1 to 64 bytes, a value
// of at most 1 MiB. The last of two concurrent calls wins.
func (s *Store) SetMeta(name string, value []byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := checkMeta(name, value); err != nil {
		return err
	}
	return s.write(nil, func(t *txn) error { return t.b.Set(valueKey(name), value, nil) })
}

func checkMeta(name string, value []byte) error {
	if name == "" || len(name) > maxMetaName || len(value) > maxMetaValue {
		return fmt.Errorf("store: value %.64q: name of %d bytes (1 to %d), value of %d (at most %d)", name, len(name),
			maxMetaName, len(value), maxMetaValue)
	}
	return nil
}

// SetMetas is SetMeta for several values at once, as one batch: all of them or,
// after a crash, none. A nil value deletes.
func (s *Store) SetMetas(rows map[string][]byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	for name, value := range rows {
		if err := checkMeta(name, value); err != nil {
			return err
		}
	}
	return s.write(nil, func(t *txn) error {
		for name, value := range rows {
			var err error
			if value == nil {
				err = t.b.Delete(valueKey(name), nil)
			} else {
				err = t.b.Set(valueKey(name), value, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Metas calls each for every value whose name begins with prefix, in order of
// name, until it answers an error, which is returned. v is each's own.
func (s *Store) Metas(prefix string, each func(name string, v []byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := valueKey(prefix)
	return s.scan(p, after(p), func(key, value []byte) (bool, error) {
		return true, each(string(key[1:]), append([]byte{}, value...))
	})
}

// Backup makes a consistent copy of the store in dir, which must not exist, by
// hard links where the file system has them. Open opens it. The store goes on
// meanwhile; what is committed after the call may be missing.
func (s *Store) Backup(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.ready(); err != nil {
		return err
	}
	if err := s.checkpoint(dbDir(s.opts.FS, dir)); err != nil {
		return fmt.Errorf("store: backup to %s: %w", dir, err)
	}
	return s.ready() // the log it copied may have been refused meanwhile
}

// checkpoint is Pebble's, which panics where it cannot sync a directory of the
// copy. That is the copy's disk, which need not be the store's; nothing is held
// after it.
func (s *Store) checkpoint(dir string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	return s.db.Checkpoint(dir, pebble.WithFlushedWAL())
}
