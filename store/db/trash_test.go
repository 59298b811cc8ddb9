package db

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/trash"
)

const trashDays = 7 * 24 * time.Hour

func openTrash(t *testing.T, disk vfs.FS, o trash.Options) *trash.Trash {
	t.Helper()
	tr, err := trash.Open(disk, filepath.Join("data", "trash"), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// takeBack imports everything in the trash into a new store.
func takeBack(t *testing.T, tr *trash.Trash) *Store {
	t.Helper()
	s := newStore(t)
	for _, x := range tr.List() {
		if err := tr.Rows(x, func(rows []store.Row) error { return s.Log.ImportRows(x.Slice, rows) }); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Rows come out of the trash as they were put in. The same copy is there only once. A damaged file
// returns an error before any of its rows.
func TestTrashGivesBack(t *testing.T) {
	disk, s, sl := vfs.NewMem(), filled(t), slice(t)
	tr := openTrash(t, disk, trash.Options{Keep: trashDays, MaxBytes: 1 << 30})
	for range 2 {
		if err := tr.Put(s.Log, sl, "surplus", epoch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Put(s.Log, sl+2, "nothing is there", epoch()); err != nil {
		t.Fatal(err)
	}
	all := openTrash(t, disk, trash.Options{}).List()
	if len(all) != 1 || all[0].Slice != sl || !all[0].At.Equal(epoch()) || all[0].Wanted {
		t.Fatalf("%+v", all)
	}
	want := sliceRows(t, s, sl, 1<<20)
	var got []store.Row
	if err := tr.Rows(all[0], func(rows []store.Row) error { got = append(got, rows...); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	marked, err := openTrash(t, disk, trash.Options{}).Want(sl)
	if err != nil || len(marked) != 1 {
		t.Fatal(marked, err)
	}
	if err := tr.Tidy(epoch().Add(2 * trashDays)); err != nil { // it is too old, but wanted
		t.Fatal(err)
	}
	if all = tr.List(); len(all) != 1 || !all[0].Wanted {
		t.Fatalf("%+v", all)
	}
	name := filepath.Join("data", "trash", all[0].Name)
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, all[0].Bytes)
	if _, err := f.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{whole[:len(whole)-1], append(bytes.Clone(whole[:200]), whole[201:]...), whole[:5],
		{}} {
		w, err := disk.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bad); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := tr.Rows(all[0],
			func([]store.Row) error { t.Error("rows of a damaged file"); return nil }); !errors.Is(err,
			store.ErrDamaged) {
			t.Errorf("%d of %d bytes: %v", len(bad), len(whole), err)
		}
	}
	if err := tr.Remove(all[0]); err != nil || len(tr.List()) != 0 {
		t.Fatal(err)
	}
}

// The trash keeps its limits and deletes the oldest copies first. A copy that is too large is an
// error.
func TestTrashIsBounded(t *testing.T) {
	disk, s, sl := vfs.NewMem(), filled(t), slice(t)
	one := openTrash(t, vfs.NewMem(), trash.Options{Keep: trashDays, MaxBytes: 1 << 30})
	if err := one.Put(s.Log, sl, "", epoch()); err != nil {
		t.Fatal(err)
	}
	size := one.List()[0].Bytes
	tr := openTrash(t, disk, trash.Options{Keep: trashDays, MaxBytes: 2*size + size/2})
	for i := range 4 {
		// another copy, of about that size
		if err := s.Queue.PutSite(store.Site{Site: "web:a.example", Slice: sl, Fetched: int64(i + 10)}); err != nil {
			t.Fatal(err)
		}
		if err := tr.Put(s.Log, sl, "", epoch().Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	all := tr.List()
	if len(all) != 2 || !all[0].At.Equal(epoch().Add(2*time.Hour)) {
		t.Fatalf("%+v", all)
	}
	if err := tr.Tidy(all[0].At.Add(trashDays)); err != nil {
		t.Fatal(err)
	}
	if all = tr.List(); len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	for _, o := range []trash.Options{{Keep: trashDays, MaxBytes: size / 2}, {Keep: -1, MaxBytes: 1 << 30}} {
		small := openTrash(t, vfs.NewMem(), o)
		if err := small.Put(s.Log, sl, "", epoch()); !errors.Is(err, trash.ErrFull) || len(small.List()) != 0 {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The power is cut at any moment while a copy is put into the trash and its slice is dropped. The
// rows are then in the store or in the trash. When this is done again after the cut, the rows are
// in the trash once.
func TestTrashThroughCrashes(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var mu sync.Mutex
	var on bool
	var clones []*vfs.MemFS
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if on && o.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}),
				mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG()}))
		}
		return nil
	}))
	s, sl := create(t, disk), slice(t)
	rows := sliceRows(t, filled(t), sl, 1<<20)
	if err := s.Log.ImportRows(sl, rows); err != nil {
		t.Fatal(err)
	}
	want := sliceRows(t, s, sl, 1<<20)
	bounds := trash.Options{Keep: trashDays, MaxBytes: 1 << 30}
	discard := func(s *Store, disk vfs.FS) *trash.Trash {
		tr := openTrash(t, disk, bounds)
		if err := tr.Put(s.Log, sl, "surplus", epoch()); err != nil {
			t.Fatal(err)
		}
		if err := s.Log.DropSlice(sl); err != nil {
			t.Fatal(err)
		}
		return tr
	}
	mu.Lock()
	on = true
	mu.Unlock()
	discard(s, disk)
	mu.Lock()
	on = false
	clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}))
	mu.Unlock()
	closeStore(t, s)
	in := map[string]int{}
	for i, fs := range clones {
		s := reopen(t, fs)
		left := len(sliceRows(t, s, sl, 1<<20))
		kept := len(openTrash(t, fs, bounds).List())
		in[fmt.Sprint(left > 0, kept)]++
		if left == 0 && kept != 1 || left != 0 && left != len(want) {
			t.Fatalf("crash %d of %d: %d of %d rows in the store, %d copies in the trash", i, len(clones), left,
				len(want), kept)
		}
		tr := discard(s, fs)
		if err := tr.Tidy(epoch()); err != nil {
			t.Fatal(err)
		}
		if all := tr.List(); len(all) != 1 {
			t.Fatalf("crash %d of %d: %+v", i, len(clones), all)
		}
		back := takeBack(t, tr)
		if d := cmp.Diff(names(want), names(sliceRows(t, back, sl, 1<<20))); d != "" {
			t.Fatalf("crash %d: other rows are back: %s", i, d)
		}
		closeStore(t, s)
	}
	if in["true 0"] == 0 || in["true 1"] == 0 || in["false 1"] == 0 {
		t.Errorf("crashes met %v: one state was missed", in)
	}
}

func names(rows []store.Row) (out []string) {
	for _, r := range rows {
		out = append(out, string(r.Key))
	}
	return out
}

// Rows with a time in the future are left out, whichever way they come. The others are taken, and
// Options.Ahead is called.
func TestRowsAheadAreLeftOut(t *testing.T) {
	from := newStore(t)
	now := time.Now()
	near, far := key("a.example", 1), key("a.example", 2)
	sl := from.SliceOf(near)
	for k, at := range map[partition.Key]time.Time{near: now.Add(store.MaxAhead / 2),
		far: now.Add(store.MaxAhead + time.Hour)} {
		if _, err := from.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		commit(t, from, captured(done(k, "text", at), "text"))
	}
	o := testOptions(vfs.NewMem())
	told, most := 0, time.Duration(0)
	o.Ahead = func(got partition.Slice, rows int, by time.Duration) {
		if told, most = told+rows, max(most, by); got != sl {
			t.Errorf("of %s", got)
		}
	}
	s, err := Create("d", o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if err := s.Log.ImportRows(sl, sliceRows(t, from, sl, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Archive.Record(near); err != nil {
		t.Error(err)
	}
	if r, err := s.Archive.Record(far); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("%+v %v", r, err)
	}
	if told < 3 || most < time.Hour || most > 2*time.Hour { // its state, record, capture
		t.Errorf("told of %d rows, %s ahead", told, most)
	}
	audit(t, s)
}
