package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// failing returns a disk whose log file can be made to refuse writes or syncs.
func failing(mem *vfs.MemFS, with error, kinds ...errorfs.OpKind) (fs vfs.FS, on *atomic.Bool) {
	on = &atomic.Bool{}
	return errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if on.Load() && strings.HasSuffix(o.Path, ".log") {
			for _, k := range kinds {
				if o.Kind == k {
					return with
				}
			}
		}
		return nil
	})), on
}

// TestFullDisk: a write or sync of the log returns ENOSPC. Every writer gets ErrFull, the process
// stays alive and reads work. Everything acknowledged is there after a restart.
func TestFullDisk(t *testing.T) {
	for name, kinds := range map[string][]errorfs.OpKind{
		"write": {errorfs.OpFileWrite}, "sync": {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			fs, on := failing(mem, syscall.ENOSPC, kinds...)
			o := testOptions(fs)
			o.Fatal = func(err error) { t.Errorf("fatal: %v", err) }
			s, err := Create("d", o)
			if err != nil {
				t.Fatal(err)
			}
			acked := []partition.Key{key("a.example", 1), key("b.example", 1)}
			admit(t, s, acked...)
			commit(t, s, done(acked[0], "kept", epoch()))
			var wg sync.WaitGroup
			var busy atomic.Int64
			for n := range 32 { // each in its own slice, so that they meet in Pebble
				wg.Go(func() {
					var err error
					for i := 0; err == nil; i++ {
						some := make([]store.Admission, 300) // more than a block of the log
						for j := range some {
							some[j].Key = key(fmt.Sprintf("c%d.example", n), i*len(some)+j)
						}
						_, err = s.Queue.Admit(some, epoch())
						if busy.Add(1) == 50 {
							on.Store(true)
						}
					}
					if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "free space") {
						t.Errorf("admit on a full disk: %v", err)
					}
				})
			}
			wg.Wait()
			on.Store(false) // there is space again, but the store still does not trust its log
			if err := s.SetMeta("x", nil); !errors.Is(err, store.ErrFull) {
				t.Errorf("after: %v", err)
			}
			if r, err := s.Archive.Record(acked[0]); err != nil || r.Text != "kept" {
				t.Errorf("read on a full disk: %v", err)
			}
			closeStore(t, s)
			s = reopen(t, mem.CrashClone(vfs.CrashCloneCfg{}))
			defer closeStore(t, s)
			audit(t, s)
			for _, k := range acked {
				if _, err := s.Queue.DueOf(k); err != nil {
					t.Errorf("lost: %v", err)
				}
			}
			admit(t, s, key("c.example", 99))
		})
	}
}

// TestLogSyncRefused: any other error of the log is fatal.
func TestLogSyncRefused(t *testing.T) {
	mem := vfs.NewCrashableMem()
	fs, on := failing(mem, syscall.EIO, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo)
	o := testOptions(fs)
	var told atomic.Pointer[error]
	o.Fatal = func(err error) { told.Store(&err); panic(err) }
	s, err := Create("d", o)
	if err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Admit returned")
			}
		}()
		_, err := s.Queue.Admit([]store.Admission{{Key: key("a.example", 1)}}, epoch())
		t.Errorf("Admit answered %v", err)
	}()
	if p := told.Load(); p == nil || !errors.Is(*p, syscall.EIO) {
		t.Errorf("Fatal was told %v", p)
	}
	closeStore(t, s) // does not hang
}

// TestDiskNearlyFull: writes stop before the disk is full and continue when there is space.
func TestDiskNearlyFull(t *testing.T) {
	const reserve = 64 << 20 // kept free on a large disk
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		s := create(t, mem)
		defer closeStore(t, s)
		admit(t, s, key("a.example", 1))
		usage := func(avail uint64) {
			mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: avail, TotalBytes: 1 << 40, UsedBytes: 1<<40 - avail})
			time.Sleep(time.Minute) // the disk is checked every few seconds
		}
		usage(reserve - 1)
		_, err := s.Queue.Admit([]store.Admission{{Key: key("a.example", 2)}}, epoch())
		if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "free space") {
			t.Errorf("%v", err)
		}
		if err := s.Queue.PutSite(store.Site{Site: "web:a.example"}); !errors.Is(err, store.ErrFull) {
			t.Errorf("%v", err)
		}
		usage(reserve)
		admit(t, s, key("a.example", 2))
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "store")
	o := testOptions(vfs.Default)
	if _, err := Open(dir, o); !errors.Is(err, store.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("none: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open made %s", dir)
	}
	bad := o
	bad.Charter.SliceBits = 99
	if _, err := Create(dir, bad); err == nil {
		t.Error("a charter that is not valid")
	}
	s, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, o); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("locked: %v", err)
	}
	if _, err := Create(dir, o); !errors.Is(err, store.ErrLocked) {
		t.Errorf("create a locked one: %v", err)
	}
	closeStore(t, s)
	if _, err := Create(dir, o); !errors.Is(err, store.ErrExist) {
		t.Errorf("exists: %v", err)
	}
	other := o
	other.Charter.Name = "other"
	if _, err := Open(dir, other); !errors.Is(err, store.ErrCharter) || !strings.Contains(err.Error(), "other") {
		t.Errorf("charter: %v", err)
	}
	o.Charter = partition.Charter{} // not checked
	if s, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	if s.Charter().Name != "test" || len(s.ID()) != 32 {
		t.Errorf("charter %+v, id %q", s.Charter(), s.ID())
	}
	if err := s.engine.DB.Set(format.MetaKey(format.MetaFormat), []byte{7}, nil); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if _, err := Open(dir, o); !errors.Is(err, store.ErrVersion) || !strings.Contains(err.Error(), "format 7") ||
		!strings.Contains(err.Error(), "knows 1") {
		t.Errorf("version: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "pebble", "MANIFEST*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("these are not the bytes you are looking for"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, o); err == nil || !strings.Contains(err.Error(), "damaged") ||
		!strings.Contains(err.Error(), "restore a backup") {
		t.Errorf("corrupt: %v", err)
	}
}

func TestBackup(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := create(t, mem)
	defer closeStore(t, s)
	a := key("a.example", 1)
	admit(t, s, a)
	commit(t, s, done(a, "text", epoch(), key("b.example", 1)))
	if err := s.Queue.PutSite(store.Site{Site: a.Site(), Slice: s.SliceOf(a), Fetched: 5}); err != nil {
		t.Fatal(err)
	}
	want := dumpOf(t, s)
	if err := s.Backup("copies/one"); err != nil {
		t.Fatal(err)
	}
	admit(t, s, key("a.example", 2))
	c, err := Open("copies/one", testOptions(mem.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, c)
	got := dumpOf(t, c)
	if len(got.Keys) != 1 || len(got.Records) != len(want.Records) || c.ID() != s.ID() {
		t.Errorf("copy %+v, want %+v", got, want)
	}
	if st, err := c.Queue.Site(a.Site()); err != nil || st.Fetched != 5 {
		t.Errorf("the unsynced row: %+v %v", st, err)
	}
	if err := s.Backup("copies/one"); err == nil {
		t.Error("a backup over another")
	}
}

func TestClosed(t *testing.T) {
	s := create(t, vfs.NewMem())
	a := key("a.example", 1)
	admit(t, s, a)
	commit(t, s, done(a, "t", epoch()))
	inside := make(chan error, 1)
	err := s.Archive.Records("", func(store.Record) (bool, error) {
		go func() { inside <- s.Close() }()
		for s.engine.Enter() == nil { // until Close has begun
			s.engine.Leave()
		}
		_, err := s.Queue.DueOf(a)
		return true, err
	})
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("a call inside a call: %v", err)
	}
	if err := <-inside; err != nil {
		t.Error(err)
	}
	if _, err := s.Queue.Admit(nil, epoch()); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	if s.Stats() != (store.Stats{}) || s.Close() != nil {
		t.Error("after Close")
	}
}
