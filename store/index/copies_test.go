package index

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// byWords puts a record into a bucket for each word of its title. Its bits are the number of bytes
// of its text.
func byWords(r *store.Record) (p Fingerprint) {
	p.Bits = uint64(len(r.Text))
	for _, w := range strings.Fields(r.Title) {
		p.Buckets = append(p.Buckets, uint64(len(w))<<56|uint64(w[0]))
	}
	return p
}

func met(t *testing.T, ix *Index, sls []partition.Slice, at ...Meeting) (names []string, m Met) {
	t.Helper()
	m, err := ix.Meet(t.Context(), sls, at, func(r store.Record, _ partition.Slice) error {
		names = append(names, fmt.Sprint(r.Key, " ", r.Post))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, m
}

func TestMeet(t *testing.T) {
	s, sls := sliced(t, 0)
	dir := filepath.Join(t.TempDir(), "index")
	ix, err := Open(dir, s, Options{Slices: sls, Fingerprint: byWords, FingerprintVersion: 7})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := page("a.example", 1, "um dois", "x"), page("b.example", 1, "dois tres", "xx"),
		page("c.example", 1, "tres", "xxxx")
	commit(t, s, a, b, c)
	flush(t, ix)
	bucket := func(w string) Meeting { return Meeting{Bucket: uint64(len(w))<<56 | uint64(w[0])} }
	name := func(rs ...store.Record) (out []string) {
		for _, r := range rs {
			out = append(out, fmt.Sprint(r.Key, " "))
		}
		return out
	}
	long := bucket("tres")
	long.Near = func(bits uint64) bool { return bits > 2 }
	for what, x := range map[string]struct {
		at   []Meeting
		want []string
	}{
		"one bucket":         {[]Meeting{bucket("dois")}, name(a, b)},
		"two, each once":     {[]Meeting{bucket("tres"), bucket("dois"), bucket("um")}, name(a, b, c)},
		"by bits":            {[]Meeting{long}, name(c)},
		"by bits or without": {[]Meeting{long, bucket("dois")}, name(a, b, c)},
		"nobody's":           {[]Meeting{bucket("quatorze")}, nil},
	} {
		got, m := met(t, ix, sls, x.at...)
		if d := cmp.Diff(x.want, got); d != "" || m.More || len(m.Missing) > 0 {
			t.Errorf("%s: %+v\n%s", what, m, d)
		}
	}
	if got, _ := met(t, ix, []partition.Slice{s.SliceOf(b.Key)},
		bucket("dois")); s.SliceOf(a.Key) != s.SliceOf(b.Key) && !cmp.Equal(got, name(b)) {
		t.Errorf("of one slice: %v", got)
	}
	if n := ix.Fingerprints(); n != 3 {
		t.Errorf("%d prints", n)
	}
	// A page that its site withdraws is not found at once. Once that is indexed, it has no
	// fingerprint.
	back := b
	back.FetchedAt, back.NoIndex = back.FetchedAt.Add(1e9), true
	commit(t, s, back)
	if got, _ := met(t, ix, sls, bucket("dois")); !cmp.Equal(got, name(a)) {
		t.Errorf("before the index has followed: %v", got)
	}
	flush(t, ix)
	if got, _ := met(t, ix, sls, bucket("dois")); !cmp.Equal(got, name(a)) || ix.Fingerprints() != 2 {
		t.Errorf("after: %v, %d prints", got, ix.Fingerprints())
	}
	if _, err := ix.Meet(t.Context(), sls, make([]Meeting, MaxMeetings+1), nil); !errors.Is(err, ErrQuery) {
		t.Errorf("too many buckets: %v", err)
	}
	stop := errors.New("stop")
	if _, err := ix.Meet(t.Context(), sls, []Meeting{bucket("dois")},
		func(store.Record, partition.Slice) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
	closeIndex(t, ix)

	// An index of another version is rebuilt; one of the same version is not.
	for _, x := range []struct {
		version int
		want    int64
	}{{7, 2}, {8, 0}} {
		if ix, err = Open(dir, s,
			Options{Slices: sls, Fingerprint: byWords, FingerprintVersion: x.version}); err != nil {
			t.Fatal(err)
		}
		if n := ix.Fingerprints(); n != x.want {
			t.Errorf("opened as version %d: %d prints, want %d", x.version, n, x.want)
		}
		flush(t, ix)
		if got, _ := met(t, ix, sls, bucket("dois")); !cmp.Equal(got, name(a)) {
			t.Errorf("version %d: %v", x.version, got)
		}
		closeIndex(t, ix)
	}
}

// When there are more documents than Meet returns, it returns the first in order and reports that
// there are more.
func TestMeetIsBounded(t *testing.T) {
	var l least
	for i := range 10 * MaxMet {
		l.add(doc(fmt.Sprintf("%07d", (i*7919)%(10*MaxMet))))
		l.add(doc(fmt.Sprintf("%07d", i/2)))
	}
	got := l.sorted()
	if len(got) != MaxMet || !l.more || got[0] != "0000000" || got[MaxMet-1] != doc(fmt.Sprintf("%07d", MaxMet-1)) {
		t.Errorf("%d, %v: %s to %s", len(got), l.more, got[0], got[len(got)-1])
	}
}

// BenchmarkDocument measures what a page costs the index, without and with its buckets.
func BenchmarkDocument(b *testing.B) {
	s := newStore(b)
	var rs []store.Record
	for i := range 512 {
		rs = append(rs, page("a.example", i, "um dois tres quatro",
			strings.Repeat(fmt.Sprintf("palavra%d outra%d mais ", i, i%7), 300)))
	}
	commit(b, s, rs...)
	for name, print := range map[string]func(*store.Record) Fingerprint{"without": nil,
		"with": func(r *store.Record) (p Fingerprint) {
			for i := range uint64(12) {
				p.Buckets = append(p.Buckets, i<<56|uint64(r.FetchedAt.UnixNano())*2654435761*(i+1)>>8)
			}
			return p
		}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ix, err := Open("", s, Options{Fingerprint: print})
				if err != nil {
					b.Fatal(err)
				}
				if err := ix.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
				closeIndex(b, ix)
			}
		})
	}
}
