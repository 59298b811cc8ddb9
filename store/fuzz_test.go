package store

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func FuzzKeyState(f *testing.F) {
	f.Add(keyState{state: StatePending, at: epoch(), reason: "r", etag: "e",
		referrer: "web:https://a.example/"}.encode())
	f.Add(keyState{state: StateDone, at: epoch(), digest: "sha256:0", history: "h"}.encode())
	f.Add([]byte{1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := decodeKeyState(b)
		if err != nil {
			if !errors.Is(err, errBadRow) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeKeyState(k.encode())
		if err != nil || again != k {
			t.Fatalf("%+v became %+v, %v", k, again, err)
		}
	})
}

func FuzzOutboxRow(f *testing.F) {
	f.Add(OutboxRow{Slice: 5, To: 9, Admission: Admission{Key: "web:https://a.example/", Depth: 3, Priority: 7,
		Seed: true}}.encode())
	f.Add(OutboxRow{Slice: 5, To: 9, Admission: Admission{Key: "web:https://a.example/",
		Hint: Hint{HintFeed, epoch()}}}.encode())
	f.Add(OutboxRow{Slice: 5, To: 9, Admission: Admission{Key: "web:https://a.example/", In: 9, Gen: 2,
		Hint: Hint{HintElsewhere, epoch()}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeOutboxRow(b)
		if err != nil {
			return
		}
		if again, err := decodeOutboxRow(r.encode()); err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	p, err := newPacker()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p.pack([]byte(strings.Repeat("lisboa ", 100))), 10000)
	f.Add(p.pack([]byte("x")), 1)
	f.Add([]byte{1, 2, 0xff, 0xff, 3, 0x28, 0xb5, 0x2f, 0xfd}, 1<<20)
	f.Fuzz(func(t *testing.T, v []byte, limit int) {
		limit = max(0, min(limit, MaxRecordBytes))
		b, err := p.unpack(v, limit)
		if err == nil && len(b) > limit {
			t.Fatalf("%d bytes, limit %d", len(b), limit)
		}
		packed := p.pack(v)
		if back, err := p.unpack(packed, len(v)); err != nil || !bytes.Equal(back, v) {
			t.Fatalf("%x came back as %x, %v", v, back, err)
		}
	})
}

// FuzzImportRows: whatever a peer sends, nothing panics, a refusal writes
// nothing, and what is taken leaves a store that agrees with itself.
func FuzzImportRows(f *testing.F) {
	sl := testOptions(nil).Charter.Slice(key("a.example", 0))
	s, err := Create("d", memOptions())
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	a := key("a.example", 1)
	if _, err := s.Admit([]Admission{{Key: a}}, epoch()); err != nil {
		f.Fatal(err)
	}
	c := done(a, "text", epoch(), key("far.example", 1))
	c.Site = &Site{Site: a.Site()}
	if err := s.Commit(withSocial(c, "text")); err != nil {
		f.Fatal(err)
	}
	rows, _, err := s.SliceRows(sl, nil, 1<<20)
	if err != nil || len(rows) != 8 {
		f.Fatal(rows, err)
	}
	for _, r := range rows {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, k, v []byte) {
		rows := []Row{{Key: k, Value: v}, {Key: k, Value: v}}
		// nothing is written before this passes
		if _, _, err := s.newValidator(time.Now(), false).rows(sl, rows); err != nil {
			if !errors.Is(err, ErrRow) {
				t.Fatal(err)
			}
			return
		}
		to := create(t, memOptions().FS)
		defer closeStore(t, to)
		if err := to.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
		want := dumpOf(t, to)
		back, _, err := to.SliceRows(sl, nil, 1<<30)
		if err == nil {
			err = to.ImportRows(sl, back)
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
		var e encoder
		e.byte(rowVersion)
		e.time(at)
		d := newDecoder(e.b)
		if got := d.time(); !got.Equal(at) || d.end("time") != nil {
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
		if got := clip(tt.in, tt.n); got != tt.want {
			t.Errorf("clip(%q, %d) = %q", tt.in, tt.n, got)
		}
	}
}

// FuzzApplyLog: whatever an owner sends, nothing panics, a refusal writes
// nothing, and what is taken leaves a store that agrees with itself and can be
// replicated to the next.
func FuzzApplyLog(f *testing.F) {
	sl := testOptions(nil).Charter.Slice(key("a.example", 0))
	owner := owning(f)
	p, err := owner.ReadLog(sl, 0, 1<<20)
	if err != nil || len(p.Rows) < 6 {
		f.Fatal(p, err)
	}
	for _, r := range p.Rows {
		f.Add(r.Key, r.Value, uint64(0), uint64(3))
	}
	for _, r := range p.Rows {
		f.Add(append([]byte{namePace}, r.Key[1:]...), r.Value, uint64(0), uint64(1<<33))
	}
	f.Fuzz(func(t *testing.T, k, v []byte, from, to uint64) {
		p := LogChunk{Slice: sl, From: from, To: to, Rows: []Row{{Key: k, Value: v}, p.Rows[0], {Key: k, Value: v}}}
		s := create(t, memOptions().FS)
		defer closeStore(t, s)
		if err := s.ApplyLog(time.Now(), p); err != nil {
			if !errors.Is(err, ErrRow) && !errors.Is(err, ErrGap) {
				t.Fatal(err)
			}
			if st := s.Stats(); st.Keys+st.Records+st.Outbox != 0 || s.LogHead(sl) != 0 {
				t.Fatalf("refused, but %+v", st)
			}
			return
		}
		audit(t, s)
		checkLogs(t, s)
		next := create(t, memOptions().FS)
		defer closeStore(t, next)
		back, err := s.ReadLog(sl, 0, 1<<20)
		if err == nil {
			err = next.ApplyLog(time.Now(), back)
		}
		if err != nil {
			t.Fatalf("what was taken is not given: %v", err)
		}
		sameSlice(t, s, next, sl)
	})
}

// FuzzLogEntry: an entry that can be read is read back the same.
func FuzzLogEntry(f *testing.F) {
	e := logEntry{entryHead: entryHead{pos: 9, span: 2, ordinal: 7, before: 99},
		rows: []logRow{{name: nameKey, rest: "s\x00k"},
			{name: nameRecord, rest: "s\x00k"}, {name: nameKey, rest: "s\x00kk", fetched: epoch()},
			{name: nameLink, rest: "k"}}}
	f.Add(uint64(9), e.encode())
	f.Fuzz(func(t *testing.T, pos uint64, v []byte) {
		e, err := decodeEntry(logKey(5, pos), v)
		if err != nil {
			if !errors.Is(err, errBadRow) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeEntry(logKey(5, pos), e.encode())
		if err != nil || !cmp.Equal(again, e, cmp.AllowUnexported(logEntry{}, entryHead{}, logRow{})) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}
