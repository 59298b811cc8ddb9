package db

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/queue"
)

// TestI6RepairConverges: two peers that both worked on a slice compare their digests and exchange
// the buckets that differ. Then they are the same.
func TestI6RepairConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sl := testOptions(nil).Charter.Slice(key("a.example", 0))
		var ss [2]*Store
		for i := range ss {
			s := create(t, vfs.NewMem())
			defer closeStore(t, s)
			ss[i] = s
			for range rapid.IntRange(0, 8).Draw(t, "calls") {
				k, now := key("a.example", rapid.IntRange(0, 5).Draw(t, "key")),
					epoch().Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "hour"))*time.Hour)
				admit(t, s, k)
				c := store.Commit{Key: k, Now: now, Next: store.Next{State: store.State(rapid.IntRange(1, 4).Draw(t,
					"state"))},
					Site: drawSite(t, k.Site(), now)}
				if rapid.Bool().Draw(t, "record") {
					c.Record = record(k, rapid.StringN(0, 3, 9).Draw(t, "text"), now)
					c.Record.Digest = "same"
				}
				drawCapture(t, &c)
				drawSocial(t, &c)
				c.Links = []store.Admission{{Key: key("far.example", rapid.IntRange(0, 2).Draw(t, "link"))}}
				commit(t, s, c)
			}
		}
		x, err := ss[0].Log.Digests(sl)
		y, err2 := ss[1].Log.Digests(sl)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for b := range x {
			if x[b] == y[b] {
				continue
			}
			given := [2][]store.Row{bucketRows(t, ss[0], sl, b), bucketRows(t, ss[1], sl, b)}
			for i, s := range ss {
				if err := s.Log.ImportRows(sl, given[1-i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		sameSlice(t, ss[0], ss[1], sl)
		audit(t, ss[0])
		audit(t, ss[1])
	})
}

func bucketRows(t tb, s *Store, sl partition.Slice, bucket int) (all []store.Row) {
	t.Helper()
	for from := []byte(nil); ; {
		rows, next, err := s.Log.BucketRows(sl, bucket, from, 1)
		if err != nil {
			t.Fatalf("%v", err)
		}
		all = append(all, rows...)
		if from = next; next == nil {
			return all
		}
	}
}

// TestBucketsAreASlice: together, the buckets have each row once. Only a bucket whose rows changed
// has another digest.
func TestBucketsAreASlice(t *testing.T) {
	s, sl := filled(t), slice(t)
	var got []string
	rows := 0
	for b := range 256 {
		for _, r := range bucketRows(t, s, sl, b) {
			got, rows = append(got, string(r.Key)), rows+1
		}
	}
	var want []string
	for _, r := range sliceRows(t, s, sl, 1<<20) {
		want = append(want, string(r.Key))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || rows < 8 {
		t.Errorf("%q, want %q", got, want)
	}
	before, err := s.Log.Digests(sl)
	if err != nil {
		t.Fatal(err)
	}
	b := key("a.example", 2)
	commit(t, s, store.Commit{Key: b, Now: epoch().Add(time.Hour), Next: store.Next{State: store.StateGone}})
	after, err := s.Log.Digests(sl)
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if mine := byte(i) == b.Hash128()[0]; (before[i] != after[i]) != mine {
			t.Errorf("bucket %d of %d: %x and %x", i, b.Hash128()[0], before[i], after[i])
		}
	}
}

func TestSliceStats(t *testing.T) {
	mem := vfs.NewMem()
	s := create(t, mem)
	a, b := key("a.example", 1), key("b.example", 1)
	admit(t, s, a, b, key("a.example", 2))
	commit(t, s, done(a, "t", epoch(), key("far.example", 1)))
	want := store.Stats{Keys: 2, Pending: 1, Done: 1, Records: 1, Outbox: 1, Fetches: 1}
	for range 2 {
		if got := s.SliceStats(s.SliceOf(a)); got != want {
			t.Errorf("%+v", got)
		}
		if got := s.StatsOf(func(sl partition.Slice) bool { return sl == s.SliceOf(b) }); got != (store.Stats{Keys: 1,
			Pending: 1}) {
			t.Errorf("%+v", got)
		}
		checkSliceStats(t, s)
		closeStore(t, s)
		s = reopen(t, mem)
	}
	if err := s.Log.DropSlice(s.SliceOf(a)); err != nil {
		t.Fatal(err)
	}
	if got := s.SliceStats(s.SliceOf(a)); got != (store.Stats{}) {
		t.Errorf("dropped: %+v", got)
	}
	checkSliceStats(t, s)
	closeStore(t, s)
}

func TestOutboxOfSomeSlices(t *testing.T) {
	s := newStore(t)
	a, b := key("a.example", 1), key("b.example", 1)
	admit(t, s, a, b)
	for n := range 3 {
		commit(t, s, done(a, "t", epoch(), key("far.example", n)))
		commit(t, s, done(b, "t", epoch(), key("further.example", n)))
	}
	in := func(sl partition.Slice) bool { return sl == s.SliceOf(b) }
	var got []partition.Key
	for from, calls := uint64(0), 0; ; calls++ {
		rows, reached, err := s.Queue.Outbox(from, 2, in)
		if err != nil || calls > 9 {
			t.Fatal(calls, err)
		}
		for _, r := range rows {
			got = append(got, r.Key)
		}
		if reached == from {
			break
		}
		from = reached
	}
	if want := []partition.Key{key("further.example", 0), key("further.example", 1),
		key("further.example", 2)}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestOutboxReadsSoManyRows: many rows that wait for other peers do not delay a reader of the
// outbox.
func TestOutboxReadsSoManyRows(t *testing.T) {
	s := newStore(t)
	a := key("a.example", 1)
	admit(t, s, a)
	for i := 0; i < queue.MaxOutboxScan+10; {
		cm := store.Commit{Key: a, Now: epoch(), Next: store.Next{State: store.StateDone}}
		for range 2000 {
			cm.Links = append(cm.Links, store.Admission{Key: key("far.example", i)})
			i++
		}
		commit(t, s, cm)
	}
	none := func(partition.Slice) bool { return false }
	rows, reached, err := s.Queue.Outbox(0, 10, none)
	if err != nil || len(rows) != 0 || reached == 0 || reached >= s.LastSeq() {
		t.Errorf("%d rows, reached %d of %d, %v", len(rows), reached, s.LastSeq(), err)
	}
	rows, again, err := s.Queue.Outbox(reached, 10, none)
	if err != nil || len(rows) != 0 || again <= reached {
		t.Errorf("%d rows, reached %d, %v", len(rows), again, err)
	}
}

func TestMetas(t *testing.T) {
	s := newStore(t)
	if err := s.SetMetas(map[string][]byte{"c/1": []byte("one"), "c/2": {}, "d": []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetMetas(map[string][]byte{"c/3": []byte("three"), "d": nil, "none": nil}); err != nil {
		t.Fatal(err)
	}
	all := func(prefix string) map[string]string {
		got := map[string]string{}
		if err := s.Metas(prefix, func(name string, v []byte) error { got[name] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if d := cmp.Diff(map[string]string{"c/1": "one", "c/2": "", "c/3": "three"}, all("c/")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(all("c/"), all("")); d != "" {
		t.Error(d)
	}
	if err := s.SetMetas(map[string][]byte{"ok": nil, "": nil}); err == nil {
		t.Error("a value without a name")
	}
	stop := errors.New("stop")
	if err := s.Metas("", func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestSetMetasIsOneBatch(t *testing.T) {
	rows := map[string][]byte{}
	for i := range 20 {
		rows[fmt.Sprint("c/", i)] = []byte("v")
	}
	clones := crashes(t, func(*Store) {}, func(s *Store) {
		if err := s.SetMetas(rows); err != nil {
			t.Fatal(err)
		}
	})
	for i, fs := range clones {
		s := reopen(t, fs)
		got := map[string][]byte{}
		if err := s.Metas("c/", func(name string, v []byte) error { got[name] = v; return nil }); err != nil {
			t.Fatal(err)
		}
		if n := len(got); n != len(rows) && (n != 0 || i == len(clones)-1) {
			t.Errorf("crash %d of %d: %d values", i, len(clones), n)
		}
		closeStore(t, s)
	}
}
