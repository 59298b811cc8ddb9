package db

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/format"
)

func epoch() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func testOptions(fs vfs.FS) store.Options {
	return store.Options{FS: fs, CacheMiB: 1, Charter: partition.DefaultCharter("test", "12D3KooWfounder")}
}

// tb is the common part of testing.TB and *rapid.T.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func create(t tb, fs vfs.FS) *Store {
	t.Helper()
	s, err := Create("d", testOptions(fs))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return s
}

func reopen(t tb, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("d", testOptions(fs))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func closeStore(t tb, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s := create(t, vfs.NewMem())
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func key(host string, n int) partition.Key {
	return mustKey(fmt.Sprintf("https://%s/%d", host, n))
}

func mustKey(text string) partition.Key {
	k, err := partition.ParseKey(text)
	if err != nil {
		panic(err)
	}
	return k
}

func admit(t tb, s *Store, ks ...partition.Key) []store.Answer {
	t.Helper()
	var items []store.Admission
	for _, k := range ks {
		items = append(items, store.Admission{Key: k})
	}
	ans, err := s.Queue.Admit(items, epoch())
	if err != nil {
		t.Fatalf("admit: %v", err)
	}
	return ans
}

func record(k partition.Key, text string, at time.Time) *store.Record {
	return &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: at, Text: text,
		Digest: "sha256:" + text, Status: 200}
}

func done(k partition.Key, text string, at time.Time, links ...partition.Key) store.Commit {
	c := store.Commit{Key: k, Now: at, Record: record(k, text, at), Next: store.Next{State: store.StateDone}}
	for _, l := range links {
		c.Links = append(c.Links, store.Admission{Key: l, Referrer: k, Depth: 1})
	}
	return c
}

func commit(t tb, s *Store, c store.Commit) {
	t.Helper()
	if err := s.Commit(c); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// audit reads every row and checks that the tables agree with each other and with Stats. This must
// be true after any crash.
func audit(t tb, s *Store) {
	t.Helper()
	want := map[format.SiteID]format.Counts{}
	due := map[string]partition.Key{}
	var sum format.Counts
	each := func(tab format.Table, fn func(key, value []byte)) {
		t.Helper()
		if err := s.engine.Scan([]byte{byte(tab)}, []byte{byte(tab) + 1},
			func(k, v []byte) (bool, error) { fn(k, v); return true, nil }); err != nil {
			t.Fatalf("scan %q: %v", tab, err)
		}
	}
	each(format.TabKey, func(k, v []byte) {
		id, rest, err := format.SplitRow(k)
		st, err2 := format.DecodeKeyState(v)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("row %q: %v", k, err)
		}
		if k := partition.Key(rest); s.engine.IDIn(id.Slice, k) != id || !s.engine.Charter().MayHold(id.Slice, k) {
			t.Errorf("%q is not at home", k)
		}
		c := want[id]
		c.State[st.State]++
		sum.State[st.State]++
		if !st.At.IsZero() {
			c.Due++
			due[string(format.DueKey(id, st))] = partition.Key(rest)
		}
		want[id] = c
	})
	each(format.TabDue, func(k, v []byte) {
		if due[string(k)] != partition.Key(v) {
			t.Errorf("due row %q of %s without its Key", k, v)
		}
		delete(due, string(k))
	})
	if len(due) != 0 {
		t.Errorf("Keys that are due without a due row: %v", due)
	}
	each(format.TabRecord, func(k, v []byte) {
		id, rest, err := format.SplitRow(k)
		r, err2 := s.engine.Packer.DecodeRecord(v)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("row %q: %v", k, err)
		}
		if r.Key != partition.Key(rest) {
			t.Errorf("record of %s in the row of %s", r.Key, rest)
		}
		if _, err := s.Queue.DueIn(id.Slice, r.Key); err != nil {
			t.Errorf("record of an unknown Key: %v", err)
		}
		c := want[id]
		c.Records++
		sum.Records++
		if f := archive.SizeOf(&r); r.Key.Kind() == partition.KindFile {
			c.Files, c.Bytes = c.Files+f.Files, c.Bytes+f.Bytes
			sum.Files, sum.Bytes = sum.Files+f.Files, sum.Bytes+f.Bytes
		}
		want[id] = c
	})
	each(format.TabPost, func(k, _ []byte) {
		id, err := format.SplitItem(format.TabPost, k)
		if err != nil {
			t.Fatalf("row %q: %v", k, err)
		}
		c := want[id.SiteID]
		c.Posts++
		sum.Posts++
		want[id.SiteID] = c
	})
	each(format.TabCount, func(k, v []byte) {
		id, _, err := format.SplitRow(k)
		c, err2 := format.DecodeCounts(v)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("row %q: %v", k, err)
		}
		w := want[id]
		sum.Fetches += c.Fetches
		if w.Fetches = c.Fetches; c != w {
			t.Errorf("counts of %s: %+v, counted %+v", id.Site, c, w)
		}
		delete(want, id)
	})
	if len(want) != 0 {
		t.Errorf("sites without counts: %v", want)
	}
	queued := map[string]bool{}
	each(format.TabQueued, func(k, v []byte) { queued[string(k[1:])+string(v)] = true })
	out := 0
	each(format.TabOutbox, func(k, v []byte) {
		r, err := format.DecodeOutboxRow(v)
		if err != nil {
			t.Fatalf("row %q: %v", k, err)
		}
		if out++; !queued[string(format.QueuedKey(r.Slice, r.Key)[1:])+string(k[1:])] {
			t.Errorf("outbox row of %s without its index", r.Key)
		}
	})
	if out != len(queued) {
		t.Errorf("%d outbox rows, %d in their index", out, len(queued))
	}
	auditCaptures(t, s, each)
	st := s.Stats()
	dropped, err := s.engine.Number(format.MetaFetches)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got := store.Stats{Keys: st.Keys, Pending: st.Pending, Done: st.Done, Gone: st.Gone, Refused: st.Refused,
		Placed: st.Placed, Records: st.Records, Posts: st.Posts, Files: st.Files, FileBytes: st.FileBytes,
		Outbox: st.Outbox, Fetches: st.Fetches}
	n := sum.State
	if w := (store.Stats{Keys: n[1] + n[2] + n[3] + n[4], Pending: n[1], Done: n[2], Gone: n[3], Refused: n[4],
		Placed:  n[5],
		Records: sum.Records, Posts: sum.Posts, Files: sum.Files, FileBytes: sum.Bytes, Outbox: int64(out),
		Fetches: sum.Fetches + int64(dropped)}); got != w {
		t.Errorf("Stats %+v, counted %+v", got, w)
	}
}

func memOptions() store.Options { return testOptions(vfs.NewMem()) }
