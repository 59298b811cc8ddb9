package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Backup makes a consistent copy of the store in dir, which must not exist. It uses hard links
// where the file system has them. Open opens the copy. The store keeps working during the call;
// what is committed after the call began may be missing.
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
	return s.Ready() // the log that was copied may have been refused during the copy
}

// copyTo makes a checkpoint of Pebble. Pebble panics when it cannot sync a directory of the copy;
// copyTo returns this as an error. The copy may be on another disk than the store, and Pebble holds
// no locks after the panic.
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
