package db

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// TestUnreplicatedRows: a peer that owned a slice for a moment admits a Key that no other peer has.
// Its log is cut, it follows another owner, and owns the slice again. Then the log contains the
// Key, whose answer is Known, also after a crash in between.
func TestUnreplicatedRows(t *testing.T) {
	later := epoch().Add(time.Hour)
	a, b, c := key("a.example", 1), key("a.example", 2), key("a.example", 3)
	mem := vfs.NewCrashableMem()
	s, other := create(t, mem), create(t, vfs.NewMem())
	defer func() { closeStore(t, s); closeStore(t, other) }()
	sl := s.SliceOf(a)
	all := func(partition.Slice) bool { return true }
	ship := func(from, to *Store) {
		t.Helper()
		p, err := from.Log.ReadLog(sl, to.Log.LogHead(sl), 1<<20)
		if err == nil {
			err = to.Log.ApplyLog(later, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Log.SetLogged(true, sl)
	admit(t, s, a)
	ship(s, other)
	admit(t, s, b)
	s.Log.SetLogged(false, sl)
	other.Log.SetLogged(true, sl)
	admit(t, other, c)
	if err := s.Log.ResetLog(sl, 1); err != nil {
		t.Fatal(err)
	}
	ship(other, s)
	if err := s.Log.Relog(all); err != nil || s.Log.LogHead(sl) != 2 {
		t.Fatalf("relogged a slice that is another's: head %d, %v", s.Log.LogHead(sl), err)
	}
	s = reopen(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	s.Log.SetLogged(true, sl)
	other.Log.SetLogged(false, sl)
	for range 2 { // the second time, there is nothing left to do
		if err := s.Log.Relog(all); err != nil || s.Log.LogHead(sl) != 3 {
			t.Fatalf("head %d, %v", s.Log.LogHead(sl), err)
		}
	}
	if _, err := other.Queue.DueOf(b); !errors.Is(err, store.ErrNotExist) {
		t.Fatalf("it was there before: %v", err)
	}
	ship(s, other)
	for _, k := range []partition.Key{a, b, c} {
		if _, err := other.Queue.DueOf(k); err != nil {
			t.Errorf("%s is not replicated: %v", k, err)
		}
	}
	audit(t, s)
	audit(t, other)
	sameSlice(t, s, other, sl)
}
