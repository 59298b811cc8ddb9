package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
	"github.com/echo-node/echo-node/store/trash"
)

// onDisk returns a closed store and its rows as they are on disk. The store has tables on two
// levels, rows that were changed and deleted, and a log that was not flushed.
func onDisk(t testing.TB) (disk *vfs.MemFS, rows []store.Row) {
	t.Helper()
	disk = vfs.NewMem()
	s := create(t, disk)
	s.Log.SetLogged(true, s.Charter().Slices()...)
	for round := range 4 {
		for i := range 120 {
			k := key(fmt.Sprintf("s%d.example", i%9), i)
			admit(t, s, k)
			if (i+round)%2 == 0 {
				commit(t, s, done(k, fmt.Sprintf("text %d %d %s", i, round, strings.Repeat(strconv.Itoa(i*7919), 40)),
					epoch().Add(time.Duration(round)*time.Hour), key("far.example", i), key("near.example", i+round)))
			}
		}
		if err := s.SetMeta(fmt.Sprint("value ", round), bytes.Repeat([]byte{byte(round)}, 100)); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			if err := s.Log.DropSlice(s.SliceOf(key("s3.example", 3))); err != nil {
				t.Fatal(err)
			}
		}
		if round < 3 {
			if err := s.engine.DB.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			if err := s.engine.DB.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows = rawRows(t, s)
	closeStore(t, s)
	return disk, rows
}

// rawRows returns all rows except the one with the sequence numbers in use, which each Open writes.
func rawRows(t tb, s *Store) (rows []store.Row) {
	t.Helper()
	err := s.engine.Scan([]byte{0}, []byte{0xff}, func(k, v []byte) (bool, error) {
		if string(k) != string(format.MetaKey(format.MetaSeq)) {
			rows = append(rows, store.Row{Key: slices.Clone(k), Value: slices.Clone(v)})
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return rows
}

func cloneDisk(t tb, disk vfs.FS) *vfs.MemFS {
	t.Helper()
	out := vfs.NewMem()
	if _, err := vfs.Clone(disk, out, "d", "d"); err != nil {
		t.Fatalf("clone: %v", err)
	}
	return out
}

// filesOf returns the paths of a store's files that are not empty.
func filesOf(t tb, disk vfs.FS, dir string) (out []string) {
	t.Helper()
	names, err := disk.List(dir)
	if err != nil {
		t.Fatalf("%v", err)
	}
	slices.Sort(names)
	for _, n := range names {
		path := disk.PathJoin(dir, n)
		info, err := disk.Stat(path)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if info.IsDir() {
			out = append(out, filesOf(t, disk, path)...)
		} else if info.Size() > 0 {
			out = append(out, path)
		}
	}
	return out
}

// flip changes a bit of one byte of a file.
func flip(t tb, disk vfs.FS, path string, at func(size int) int, bit byte) {
	t.Helper()
	f, err := disk.Open(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatalf("%v", err)
	}
	b[at(len(b))] ^= bit
	f, err = disk.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// kind returns a file's name without its number.
func kind(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, path)
}

func mendOptions(fs vfs.FS, all bool) MendOptions {
	return MendOptions{Options: testOptions(fs), All: all, Slices: func(c partition.Charter) ([]partition.Slice,
		error) {
		return c.AllSlices(nil)
	}}
}

// mendAll mends the store and puts the saved rows back, as a peer without other replicas does.
func mendAll(t tb, disk vfs.FS, all bool) (*Mending, error) {
	t.Helper()
	m, err := Mend(context.Background(), "d", mendOptions(disk, all))
	if err != nil {
		return nil, err
	}
	trash, err := trash.Open(disk, "trash", trash.Options{Keep: time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, sl := range m.Slices {
		if err := m.SetAside(trash, sl, epoch()); err != nil {
			t.Fatalf("set aside: %v", err)
		}
		for _, x := range trash.List() {
			err := trash.Rows(x, func(rows []store.Row) error { return m.Store().Log.ImportRows(sl, rows) })
			if err = errors.Join(err, trash.Remove(x)); err != nil {
				t.Fatalf("put back: %v", err)
			}
		}
	}
	if err := m.Done(); err != nil {
		t.Fatalf("done: %v", err)
	}
	return m, nil
}

// A changed byte in any file of a store never causes a wrong answer or a panic. The store is as it
// was, or reports damage. After mending, it has nothing that it did not have before, and its tables
// agree with each other.
func TestFlippedBytes(t *testing.T) {
	flips := racetest.Flips(t, 60, 12)
	disk, truth := onDisk(t)
	records := map[string]string{}
	for _, r := range truth {
		records[string(r.Key)] = string(r.Value)
	}
	byKind := map[string][]string{}
	var kinds []string
	for _, f := range filesOf(t, disk, "d") {
		if byKind[kind(f)] == nil {
			kinds = append(kinds, kind(f))
		}
		byKind[kind(f)] = append(byKind[kind(f)], f)
	}
	rng := rand.New(rand.NewPCG(18, 7))
	seen := map[string]map[string]int{}
	for i := range flips {
		of := kinds[i%len(kinds)]
		file := byKind[of][rng.IntN(len(byKind[of]))]
		where := 0
		hurt := cloneDisk(t, disk)
		flip(t, hurt, file, func(size int) int { where = rng.IntN(size); return where }, 1<<rng.IntN(8))
		got := afterFlip(t, hurt, truth, records)
		if seen[of] == nil {
			seen[of] = map[string]int{}
		}
		seen[of][got]++
		if t.Failed() {
			t.Fatalf("flip %d: byte %d of %s: %s", i, where, file, got)
		}
	}
	for _, of := range kinds {
		t.Log(of, seen[of])
	}
}

// afterFlip opens, reads, mends and reads again. It returns the outcome.
func afterFlip(t *testing.T, disk *vfs.MemFS, truth []store.Row, records map[string]string) string {
	t.Helper()
	s, err := Open("d", testOptions(disk))
	said := "refused"
	if err == nil {
		said = readsRight(t, s, truth)
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	} else if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("open: %v", err)
	}
	if said == "as it was" {
		return said
	}
	if strings.Contains(fmt.Sprint(err), "\n") {
		t.Errorf("it is not said in a line: %v", err)
	}
	_, err = mendAll(t, disk, true)
	if errors.Is(err, store.ErrDamaged) {
		return said + ", for good"
	}
	if err != nil {
		t.Errorf("mend: %v", err)
		return said
	}
	s = reopen(t, disk)
	defer closeStore(t, s)
	audit(t, s)
	lost := len(truth)
	for _, r := range rawRows(t, s) {
		switch format.Table(r.Key[0]) {
		case format.TabKey, format.TabRecord, format.TabCapture, format.TabPost:
		case format.TabValue:
			if records[string(r.Key)] != string(r.Value) {
				t.Errorf("%q is another value", r.Key)
			}
		}
		if format.Table(r.Key[0]) == format.TabRecord {
			had, ok := records[string(r.Key)]
			a, err := s.engine.Packer.DecodeRecord([]byte(had))
			b, err2 := s.engine.Packer.DecodeRecord(r.Value)
			if !ok || errors.Join(err, err2) != nil || a.Text != b.Text || !a.FetchedAt.Equal(b.FetchedAt) {
				t.Errorf("%q is another record: %v", r.Key, errors.Join(err, err2))
			}
		}
		lost--
	}
	if lost > len(truth)/2 {
		return said + ", mended, most lost"
	}
	return said + ", mended"
}

// readsRight reads all rows. They must be those of truth in order, up to an error that reports
// damage.
func readsRight(t *testing.T, s *Store, truth []store.Row) string {
	t.Helper()
	n := 0
	err := s.engine.Scan([]byte{0}, []byte{0xff}, func(k, v []byte) (bool, error) {
		if string(k) == string(format.MetaKey(format.MetaSeq)) {
			return true, nil
		}
		if n >= len(truth) || !bytes.Equal(k, truth[n].Key) || !bytes.Equal(v, truth[n].Value) {
			return false, fmt.Errorf("row %d is %q", n, k)
		}
		n++
		return true, nil
	})
	switch {
	case err != nil && !errors.Is(s.engine.Explain(err), store.ErrDamaged):
		t.Errorf("read: %v", err)
	case err == nil && n != len(truth):
		t.Errorf("%d of %d rows", n, len(truth))
	case err == nil && s.Damaged() == nil:
		for _, r := range truth { // reads through the filters
			if v, err := s.engine.Get(r.Key); err != nil && !errors.Is(s.engine.Explain(err), store.ErrDamaged) ||
				err == nil &&
					!bytes.Equal(v, r.Value) {
				t.Errorf("get %q: %v", r.Key, err)
			}
		}
		if s.Damaged() == nil {
			return "as it was"
		}
	}
	return "found"
}

// Scrub finds a damaged table and names it. The next Open refuses the store, and Mend removes the
// table.
func TestScrub(t *testing.T) {
	disk, truth := onDisk(t)
	var table string
	for _, f := range filesOf(t, disk, "d") {
		if strings.HasSuffix(f, ".sst") {
			table = f
		}
	}
	s := reopen(t, disk)
	if err := s.Scrub(t.Context(), 1<<40); err != nil {
		t.Errorf("scrub of a store that is whole: %v", err)
	}
	closeStore(t, s)
	flip(t, disk, table, func(size int) int { return size / 2 }, 1)
	var told error
	o := testOptions(disk)
	o.Damaged = func(err error) { told = err }
	s, err := Open("d", o)
	if err == nil {
		err = s.Scrub(t.Context(), 1<<40)
		closeStore(t, s)
	}
	name := strings.TrimPrefix(table, "d/")
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), name) || told == nil {
		t.Fatalf("scrub: %v, told %v, want one of %s", err, told, name)
	}
	if _, err := Open("d", o); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), name) {
		t.Errorf("it is opened again: %v", err)
	}
	m, err := mendAll(t, disk, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != 1 || !strings.Contains(m.Files[0], name) || len(m.Lost) == 0 || len(m.Slices) == 0 {
		t.Errorf("mended: %+v", m)
	}
	s = reopen(t, disk)
	defer closeStore(t, s)
	audit(t, s)
	if err := s.Scrub(t.Context(), 1<<40); err != nil {
		t.Errorf("scrub after: %v", err)
	}
	if n := len(rawRows(t, s)); n < len(truth)/3 {
		t.Errorf("%d rows of %d are left", n, len(truth))
	}
	if got := filesOf(t, disk, "d/aside"); len(got) != 1 {
		t.Errorf("put aside: %v", got)
	}
}
