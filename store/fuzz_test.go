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
	f.Add(keyState{state: StatePending, at: epoch(), reason: "r", etag: "e", referrer: "web:https://a.example/"}.encode())
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
	f.Add(OutboxRow{Slice: 5, To: 9, Admission: Admission{Key: "web:https://a.example/", Depth: 3, Priority: 7, Seed: true}}.encode())
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
	if err := s.Commit(c); err != nil {
		f.Fatal(err)
	}
	rows, _, err := s.SliceRows(sl, nil, 1<<20)
	if err != nil || len(rows) != 4 {
		f.Fatal(rows, err)
	}
	for _, r := range rows {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, k, v []byte) {
		rows := []Row{{Key: k, Value: v}, {Key: k, Value: v}}
		if _, err := s.validate(sl, rows); err != nil { // nothing is written before this passes
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
	for _, at := range []time.Time{{}, epoch(), time.Unix(0, 1000).UTC(), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
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
