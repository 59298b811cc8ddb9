package db

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// With a tick every 100 ms, this year would have 315 million of them.
func TestAStoreAtRestDoesNotTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := create(t, vfs.NewMem())
		time.Sleep(365 * 24 * time.Hour)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
