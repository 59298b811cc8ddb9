package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Backup makes a consistent copy of the store in dir, which must not exist, by
// hard links where the file system has them. Open opens it. The store goes on
// meanwhile; what is committed after the call may be missing.
func (s *Engine) Backup(dir string) error {
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	if err := s.Ready(); err != nil {
		return err
	}
	if err := copyTo(s.DB, DBDir(s.Options.FS, dir)); err != nil {
		return fmt.Errorf("store: backup to %s: %w", dir, err)
	}
	return s.Ready() // the log it copied may have been refused meanwhile
}

// copyTo is a checkpoint of Pebble's, which panics where it cannot sync a directory of the
// copy. That is the copy's disk, which need not be the store's; nothing is held
// after it.
func copyTo(db *pebble.DB, dir string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	return db.Checkpoint(dir, pebble.WithFlushedWAL())
}
