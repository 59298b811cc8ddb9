package db

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

func FuzzKeyState(f *testing.F) {
	f.Add(format.KeyState{State: store.StatePending, At: epoch(), Reason: "r", Etag: "e",
		Referrer: "web:https://a.example/"}.Encode())
	f.Add(format.KeyState{State: store.StateDone, At: epoch(), Digest: "sha256:0", History: "h"}.Encode())
	f.Add([]byte{1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := format.DecodeKeyState(b)
		if err != nil {
			if !errors.Is(err, format.ErrBadRow) {
				t.Fatal(err)
			}
			return
		}
		again, err := format.DecodeKeyState(k.Encode())
		if err != nil || again != k {
			t.Fatalf("%+v became %+v, %v", k, again, err)
		}
	})
}

func FuzzOutboxRow(f *testing.F) {
	f.Add(format.EncodeOutboxRow(store.OutboxRow{Slice: 5, To: 9,
		Admission: store.Admission{Key: "web:https://a.example/", Depth: 3, Priority: 7,
			Seed: true}}))
	f.Add(format.EncodeOutboxRow(store.OutboxRow{Slice: 5, To: 9,
		Admission: store.Admission{Key: "web:https://a.example/",
			Hint: store.Hint{Kind: store.HintFeed, At: epoch()}}}))
	f.Add(format.EncodeOutboxRow(store.OutboxRow{Slice: 5, To: 9,
		Admission: store.Admission{Key: "web:https://a.example/", In: 9, Gen: 2,
			Hint: store.Hint{Kind: store.HintElsewhere, At: epoch()}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := format.DecodeOutboxRow(b)
		if err != nil {
			return
		}
		if again, err := format.DecodeOutboxRow(format.EncodeOutboxRow(r)); err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	p, err := format.NewPacker()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p.Pack([]byte(strings.Repeat("lisboa ", 100))), 10000)
	f.Add(p.Pack([]byte("x")), 1)
	f.Add([]byte{1, 2, 0xff, 0xff, 3, 0x28, 0xb5, 0x2f, 0xfd}, 1<<20)
	f.Fuzz(func(t *testing.T, v []byte, limit int) {
		limit = max(0, min(limit, store.MaxRecordBytes))
		b, err := p.Unpack(v, limit)
		if err == nil && len(b) > limit {
			t.Fatalf("%d bytes, limit %d", len(b), limit)
		}
		packed := p.Pack(v)
		if back, err := p.Unpack(packed, len(v)); err != nil || !bytes.Equal(back, v) {
			t.Fatalf("%x came back as %x, %v", v, back, err)
		}
	})
}

// FuzzImportRows: rows of a peer never cause a panic. Refused rows write nothing. After accepted
// rows, the tables of the store agree with each other.
func FuzzImportRows(f *testing.F) {
	sl := testOptions(nil).Charter.Slice(key("a.example", 0))
	s, err := Create("d", memOptions())
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	a := key("a.example", 1)
	if _, err := s.Queue.Admit([]store.Admission{{Key: a}}, epoch()); err != nil {
		f.Fatal(err)
	}
	c := done(a, "text", epoch(), key("far.example", 1))
	c.Site = &store.Site{Site: a.Site()}
	if err := s.Commit(withSocial(c, "text")); err != nil {
		f.Fatal(err)
	}
	rows, _, err := s.Log.SliceRows(sl, nil, 1<<20)
	if err != nil || len(rows) != 8 {
		f.Fatal(rows, err)
	}
	for _, r := range rows {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, k, v []byte) {
		rows := []store.Row{{Key: k, Value: v}, {Key: k, Value: v}}
		// nothing is written before this succeeds
		if _, _, err := s.Log.NewValidator(time.Now(), false).Rows(sl, rows); err != nil {
			if !errors.Is(err, store.ErrRow) {
				t.Fatal(err)
			}
			return
		}
		to := create(t, memOptions().FS)
		defer closeStore(t, to)
		if err := to.Log.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
		want := dumpOf(t, to)
		back, _, err := to.Log.SliceRows(sl, nil, 1<<30)
		if err == nil {
			err = to.Log.ImportRows(sl, back)
		}
		if err != nil {
			t.Fatalf("what was taken is not given: %v", err)
		}
		if d := cmp.Diff(want, dumpOf(t, to)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestTimesKeepMicroseconds(t *testing.T) {
	for _, at := range []time.Time{{}, epoch(), time.Unix(0, 1000).UTC(), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
		var e format.Encoder
		e.Byte(format.RowVersion)
		e.Time(at)
		d := format.NewDecoder(e.B)
		if got := d.Time(); !got.Equal(at) || d.End("time") != nil {
			t.Errorf("%s became %s", at, got)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"", 0, ""}, {"\x80\x80", 1, ""}} {
		if got := store.Clip(tt.in, tt.n); got != tt.want {
			t.Errorf("clip(%q, %d) = %q", tt.in, tt.n, got)
		}
	}
}

// FuzzApplyLog: a chunk of an owner never causes a panic. A refused chunk writes nothing. After an
// accepted chunk, the tables of the store agree with each other, and it can replicate to the next
// peer.
func FuzzApplyLog(f *testing.F) {
	sl := testOptions(nil).Charter.Slice(key("a.example", 0))
	owner := owning(f)
	p, err := owner.Log.ReadLog(sl, 0, 1<<20)
	if err != nil || len(p.Rows) < 6 {
		f.Fatal(p, err)
	}
	for _, r := range p.Rows {
		f.Add(r.Key, r.Value, uint64(0), uint64(3))
	}
	for _, r := range p.Rows {
		f.Add(append([]byte{format.NamePace}, r.Key[1:]...), r.Value, uint64(0), uint64(1<<33))
	}
	f.Fuzz(func(t *testing.T, k, v []byte, from, to uint64) {
		p := store.LogChunk{Slice: sl, From: from, To: to, Rows: []store.Row{{Key: k, Value: v}, p.Rows[0], {Key: k,
			Value: v}}}
		s := create(t, memOptions().FS)
		defer closeStore(t, s)
		if err := s.Log.ApplyLog(time.Now(), p); err != nil {
			if !errors.Is(err, store.ErrRow) && !errors.Is(err, store.ErrGap) {
				t.Fatal(err)
			}
			if st := s.Stats(); st.Keys+st.Records+st.Outbox != 0 || s.Log.LogHead(sl) != 0 {
				t.Fatalf("refused, but %+v", st)
			}
			return
		}
		audit(t, s)
		checkLogs(t, s)
		next := create(t, memOptions().FS)
		defer closeStore(t, next)
		back, err := s.Log.ReadLog(sl, 0, 1<<20)
		if err == nil {
			err = next.Log.ApplyLog(time.Now(), back)
		}
		if err != nil {
			t.Fatalf("what was taken is not given: %v", err)
		}
		sameSlice(t, s, next, sl)
	})
}

// FuzzLogEntry: an entry that can be read is the same after encoding and reading again.
func FuzzLogEntry(f *testing.F) {
	e := format.LogEntry{EntryHead: format.EntryHead{Pos: 9, Span: 2, Ordinal: 7, Before: 99},
		Rows: []format.LogRow{{Name: format.NameKey, Rest: "s\x00k"},
			{Name: format.NameRecord, Rest: "s\x00k"}, {Name: format.NameKey, Rest: "s\x00kk", Fetched: epoch()},
			{Name: format.NameLink, Rest: "k"}}}
	f.Add(uint64(9), e.Encode())
	f.Fuzz(func(t *testing.T, pos uint64, v []byte) {
		e, err := format.DecodeEntry(format.LogKey(5, pos), v)
		if err != nil {
			if !errors.Is(err, format.ErrBadRow) {
				t.Fatal(err)
			}
			return
		}
		again, err := format.DecodeEntry(format.LogKey(5, pos), e.Encode())
		if err != nil || !cmp.Equal(again, e, cmp.AllowUnexported(format.LogEntry{}, format.EntryHead{},
			format.LogRow{})) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}
