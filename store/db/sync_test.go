package db

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/echo-node/echo-node/store"
)

// TestI2NothingGetsAheadOfTheDisk delays the sync of a commit. Until it is done, no caller gets an
// answer that depends on the commit, not even Known, and no reader of the logs sees it.
func TestI2NothingGetsAheadOfTheDisk(t *testing.T) {
	var hold atomic.Bool
	release := make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(o errorfs.Op) error {
		if hold.Load() && strings.HasSuffix(o.Path, ".log") &&
			(o.Kind == errorfs.OpFileSync || o.Kind == errorfs.OpFileSyncData || o.Kind == errorfs.OpFileSyncTo) {
			<-release
		}
		return nil
	}))
	s := create(t, fs)
	defer closeStore(t, s)
	a, link := key("a.example", 1), key("a.example", 2)
	admit(t, s, a)
	last := s.LastSeq()
	hold.Store(true)
	answers := make(chan store.Answer, 2)
	go func() {
		if err := s.Commit(done(a, "t", epoch(), link, key("far.example", 1))); err != nil {
			t.Error(err)
		}
		answers <- store.Admitted
	}()
	for s.Stats().Records == 0 { // until the batch is visible
		time.Sleep(time.Millisecond)
	}
	go func() { answers <- admit(t, s, link)[0] }()
	select {
	case x := <-answers:
		t.Errorf("answered %d before the disk", x)
	case <-time.After(50 * time.Millisecond):
	}
	changes, _ := s.Changes(last, 10)
	rows, _, _ := s.Queue.Outbox(last, 10, nil)
	if len(changes)+len(rows) != 0 {
		t.Errorf("read before it is durable: %v %v", changes, rows)
	}
	hold.Store(false)
	close(release)
	if x, y := <-answers, <-answers; x+y != store.Admitted+store.Known {
		t.Errorf("answers %d and %d", x, y)
	}
	if changes, err := s.Changes(last, 10); err != nil || len(changes) != 1 {
		t.Errorf("%v %v", changes, err)
	}
}
