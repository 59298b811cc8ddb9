package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/node/backup"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// backedUp returns a store on disk with n records, and a function that writes more of them.
func backedUp(t *testing.T, disk vfs.FS, n int) (*db.Store, func(from, to int)) {
	t.Helper()
	charter := partition.DefaultCharter("test", "founder")
	charter.SliceBits = 4
	s, err := db.Create("data/store", store.Options{FS: disk, Charter: charter})
	if err != nil {
		t.Fatal(err)
	}
	write := func(from, to int) {
		for i := from; i < to; i++ {
			k := mustKey(t, fmt.Sprintf("https://s%d.org/%d", i%7, i))
			if _, err := s.Queue.Admit([]store.Admission{{Key: k, Seed: true}}, time.Now()); err != nil {
				t.Error(err)
				return
			}
			rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(),
				FetchedAt: time.Now().UTC(), Source: "test", Status: 200, Text: fmt.Sprint("text ", i)}
			if err := s.Commit(store.Commit{Key: k, Now: time.Now(), Record: rec,
				Next: store.Next{State: store.StateDone}}); err != nil {
				t.Error(err)
				return
			}
		}
	}
	write(0, n)
	return s, write
}

func texts(t *testing.T, s *db.Store) map[partition.Key]string {
	t.Helper()
	out := map[partition.Key]string{}
	if err := s.Archive.Records("", func(r store.Record) (bool, error) {
		out[r.Key] = r.Text
		return true,
			nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// A backup made during writes has everything that was there when it started. A directory restored
// from it has the same records, a new identity and no agreement. Neither is written over existing
// data.
func TestBackupAndRestore(t *testing.T) {
	disk := vfs.NewMem()
	s, write := backedUp(t, disk, 100)
	defer s.Close()
	if err := s.SetMetas(map[string][]byte{replica.MetaSets + "x": []byte("a promise"),
		replica.MetaPlacement: []byte("who lives"), "budget": []byte("3")}); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() { write(100, 300) })
	if err := backup.Make(disk, s, "backups/one", "data", backup.Info{Peer: "me"}); err != nil {
		t.Fatal(err)
	}
	writing.Wait()
	if err := backup.Make(disk, s, "backups/one", "data", backup.Info{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another: %v", err)
	}
	o := datadir.Options{Dir: t.TempDir() + "/new", FS: disk, Key: testKey(t)}
	info, err := datadir.Restore(t.Context(), o, "backups/one", false)
	if err != nil {
		t.Fatal(err)
	}
	if info.Peer != "me" || info.Swarm != "test" || info.Records < 100 {
		t.Errorf("%+v", info)
	}
	got, err := db.Open(filepath.Join(o.Dir, "store"), store.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	had, now := texts(t, got), texts(t, s)
	if len(had) != int(info.Records) || len(now) != 300 {
		t.Errorf("%d records restored, %d said, %d in the store", len(had), info.Records, len(now))
	}
	for i := range 100 {
		if k := mustKey(t, fmt.Sprintf("https://s%d.org/%d", i%7, i)); had[k] != fmt.Sprint("text ", i) {
			t.Errorf("%s: %q", k, had[k])
		}
	}
	for name, want := range map[string]string{replica.MetaSets + "x": "", replica.MetaPlacement: "", "budget": "3",
		datadir.MetaRestored: "new"} {
		b, err := got.Meta(name)
		if string(b) != want || (want == "") != isNotExist(err) {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if _, err := datadir.Restore(t.Context(), o, "backups/one", false); err == nil ||
		!strings.Contains(err.Error(), "not empty") {
		t.Errorf("over another: %v", err)
	}
}

// Restore refuses a directory that is no backup, has another format, or does not match its Info. It
// leaves nothing behind.
func TestRestoreRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		harm       func(disk vfs.FS) error
	}{
		{"cut short", "no backup, or was cut short", func(disk vfs.FS) error { return disk.Remove("b/backup.json") }},
		{"format", "format 9",
			func(disk vfs.FS) error { return writeSynced(disk, "b/backup.json", []byte(`{"v":9}`)) }},
		{"another store", "not what backup.json says",
			func(disk vfs.FS) error { return writeSynced(disk, "b/backup.json", []byte(`{"v":1}`)) }},
		{"no store", "no store", func(disk vfs.FS) error { return disk.RemoveAll("b/store") }},
		{"damaged", "new.part", func(disk vfs.FS) error {
			names, err := disk.List("b/store/pebble")
			for _, n := range names {
				if strings.HasPrefix(n, "MANIFEST-") {
					err = errors.Join(err, writeSynced(disk, "b/store/pebble/"+n, []byte("no manifest")))
				}
			}
			return err
		}},
	} {
		disk := vfs.NewMem()
		s, _ := backedUp(t, disk, 3)
		if err := errors.Join(backup.Make(disk, s, "b", "data", backup.Info{}), c.harm(disk)); err != nil {
			t.Fatal(err)
		}
		_, err := datadir.Restore(t.Context(), datadir.Options{Dir: "new", FS: disk, Key: testKey(t)}, "b", false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, name := range []string{"new", "new.part"} {
			if _, err := disk.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s is left: %v", c.name, name, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If any operation of a backup fails, or is the last one before a crash, the previous backup can
// still be restored. No unfinished backup has the name of a complete one.
func TestBackupCutShort(t *testing.T) {
	steps := 0
	for at, ok := 0, false; !ok && at < 2000; at += 1 + at/12 {
		mem := vfs.NewCrashableMem()
		var mu sync.Mutex
		left, armed := at, false
		var crashed *vfs.MemFS
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !armed || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !strings.HasPrefix(op.Path, "b/") {
				return nil
			}
			if left--; left >= 0 {
				return nil
			}
			if crashed == nil {
				crashed = mem.CrashClone(vfs.CrashCloneCfg{})
			}
			return syscall.ENOSPC
		}))
		s, write := backedUp(t, disk, 5)
		if err := backup.Make(disk, s, "b/one", "data", backup.Info{}); err != nil {
			t.Fatal(err)
		}
		write(5, 10)
		mu.Lock()
		armed = true
		mu.Unlock()
		err := backup.Make(disk, s, "b/two", "data", backup.Info{})
		mu.Lock()
		armed = false
		mu.Unlock()
		ok = err == nil && crashed == nil
		steps = at
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("after %d operations: %v", at, err)
		}
		if crashed == nil {
			crashed = mem.CrashClone(vfs.CrashCloneCfg{})
		}
		for name, disk := range map[string]*vfs.MemFS{"as it is": mem, "crashed": crashed} {
			if _, err := datadir.Restore(t.Context(), datadir.Options{Dir: "new", FS: disk, Key: testKey(t)}, "b/one",
				false); err != nil {
				t.Errorf("%s after %d operations, the one before: %v", name, at, err)
			}
			if _, err := disk.Stat("b/two"); err == nil {
				if info, err := datadir.Restore(t.Context(),
					datadir.Options{Dir: "new2", FS: disk, Key: testKey(t)}, "b/two",
					false); err != nil || info.Records != 10 {
					t.Errorf("%s after %d operations, a half one: %+v %v", name, at, info, err)
				}
			} else if ok && name == "as it is" {
				t.Error("a backup that was made is not there")
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if steps < 20 || steps > 1500 {
		t.Errorf("a backup was whole after %d operations", steps)
	}
}

// Prune keeps the newest backups. It removes unfinished ones and leaves files that are not backups.
func TestPruneBackups(t *testing.T) {
	disk := vfs.NewMem()
	s, _ := backedUp(t, disk, 1)
	defer s.Close()
	for _, name := range []string{"echo-20260101T000000Z", "echo-20260102T000000Z", "echo-20260103T000000Z",
		"echo-20260104T000000Z", "mine"} {
		if err := backup.Make(disk, s, "b/"+name, "data", backup.Info{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"b/echo-20260105T000000Z.part/store", "b/echo-20260106T000000Z", "b/echo-notes"} {
		if err := disk.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := backup.Prune(disk, "b", 2); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("b")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if want := []string{"echo-20260103T000000Z", "echo-20260104T000000Z", "echo-20260106T000000Z", "echo-notes",
		"mine"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// A copy that would fill the disk is refused before it starts.
func TestBackupWantsRoom(t *testing.T) {
	mem := vfs.NewMem()
	s, _ := backedUp(t, mem, 1)
	defer s.Close()
	disk := smallDisk{mem, vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: 100 << 20}}
	err := backup.Make(disk, s, "b", "data", backup.Info{})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "disk full") ||
		!strings.Contains(err.Error(), "100 MiB are free") {
		t.Errorf("%v", err)
	}
	if names, err := mem.List(""); err != nil || !slices.Equal(names, []string{"data"}) {
		t.Errorf("left: %v %v", names, err)
	}
}

// smallDisk is a file system without hard links and with little space.
type smallDisk struct {
	vfs.FS
	usage vfs.DiskUsage
}

func (smallDisk) Link(string, string) error                    { return errors.ErrUnsupported }
func (d smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) { return d.usage, nil }

func testKey(t *testing.T) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeSynced(disk vfs.FS, name string, b []byte) error {
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
