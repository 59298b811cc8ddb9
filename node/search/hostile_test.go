package search

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Invalid responses of other peers are refused.
func TestHostileAnswers(t *testing.T) {
	n := newFixture(t)
	s := n.newRanking(&wire.Query{})
	k := mustKey(t, "http://example.org/")
	in := []partition.Slice{n.store.SliceOf(k)}
	var other []partition.Slice
	for _, x := range n.charter.Slices() {
		if x != in[0] {
			other = append(other, x)
		}
	}
	s.assign = map[string][]partition.Slice{"p": in}
	for name, a := range map[string]*wire.QueryAnswer{
		"a hit that is no key": {Hits: []*wire.Hit{{Key: "javascript:alert(1)"}}},
		"a hit of another slice": {Hits: []*wire.Hit{{Key: string(mustKey(t, "http://xx.example/")),
			Score: 1e9}}},
		"a missing slice nobody asked of": {Missing: []uint64{uint64(other[0])}},
		"a hit of a slice it misses":      {Hits: []*wire.Hit{{Key: string(k)}}, Missing: []uint64{uint64(in[0])}},
	} {
		if !refuses(t, n, s, a, false) {
			t.Errorf("%s was taken", name)
		}
	}
	if !refuses(t, n, s, &wire.QueryAnswer{Stats: &wire.TermStats{Opaque: []byte("{")}}, true) {
		t.Error("broken statistics were taken")
	}
	if len(s.hits) != 0 || s.coverage().SlicesAnswered != 0 {
		t.Errorf("%+v", s)
	}
	twice := &wire.QueryAnswer{Missing: []uint64{uint64(in[0]), uint64(in[0])}, Total: 1 << 63}
	for range 3 {
		if err := s.takeHits(question{peer: "p", slices: in}, twice); err != nil {
			t.Fatal(err)
		}
	}
	s.answered["p"] = true
	if c := s.coverage(); c.SlicesAnswered != 0 || s.total != math.MaxUint64 {
		t.Errorf("answered %d, total %d", c.SlicesAnswered, s.total)
	}
}

// refuses reports whether the round of a query drops p when p responds with a.
func refuses(t *testing.T, n *fixture, r *ranking, a *wire.QueryAnswer, statsOnly bool) bool {
	t.Helper()
	n.call = func(context.Context, string, *wire.Request) (*wire.Response, error) {
		return &wire.Response{Body: &wire.Response_Query{Query: a}}, nil
	}
	clear(r.failed)
	r.round(t.Context(), statsOnly, time.Now().Add(time.Minute))
	return r.failed["p"] != ""
}

// A member that does not respond costs its own slices, not the other peers' answers. A member that
// cannot be reached always fails at once.
func TestQueryWithoutSomePeers(t *testing.T) {
	n := newFixture(t)
	k := mustKey(t, "http://host.example/")
	for i, s := range n.charter.Slices()[:8] { // several, so that failures come during other calls
		if s == n.store.SliceOf(k) {
			continue
		}
		enter(n, fmt.Sprint("nobody", i))
		give(t, n, s, fmt.Sprint("nobody", i))
	}
	admit(t, n, k)
	rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: time.Now(),
		Source: "web", Status: 200, Text: "sardinha"}
	if err := n.store.Commit(store.Commit{Key: k, Now: time.Now(), Record: rec,
		Next: store.Next{State: store.StateDone}}); err != nil {
		t.Fatal(err)
	}
	n.indexed(t)
	a, err := n.Query(t.Context(), api.Query{Q: "sardinha"})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Hits) != 1 || a.Coverage.SlicesAnswered == 0 {
		t.Errorf("%+v", a)
	}
}

// A cursor that a query returned is accepted, whatever the limit is.
func TestCursorsAreTaken(t *testing.T) {
	n := newFixture(t)
	c := cursor{Q: cursorOf(api.Query{Q: "sardinha"}), Offset: MaxHits - 50}.String()
	if _, err := n.Query(t.Context(), api.Query{Q: "sardinha", Limit: 300, Cursor: c}); err != nil {
		t.Error(err)
	}
	if _, err := n.Query(t.Context(), api.Query{Q: "sardinha", Lang: "pt", Cursor: c}); err == nil {
		t.Error("a cursor of a query without that filter was taken")
	}
}

// Export pages through records, resumes after any cursor, and filters.
func TestExportResumes(t *testing.T) {
	n := newFixture(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const total = MaxRecordPage + 40
	for i := range total {
		k, err := partition.ParseKey("http://example.org/" + strings.Repeat("p", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web",
			Peer: n.id, Status: 200, Lang: []string{"pt", "en"}[i%2]}
		if err := n.store.Commit(store.Commit{Key: k, Now: now, Record: rec,
			Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
	whole := exportAll(t, n, api.Export{}, total)
	if len(whole) != total {
		t.Fatalf("%d records of %d", len(whole), total)
	}
	for _, stop := range []int{1, 17, MaxRecordPage, MaxRecordPage + 1, total - 1} {
		first := exportAll(t, n, api.Export{}, stop)
		rest := exportAll(t, n, api.Export{Cursor: first[stop-1][1]}, total)
		if len(first)+len(rest) != total || rest[0][0] != whole[stop][0] {
			t.Errorf("cut after %d: %d and %d records", stop, len(first), len(rest))
		}
	}
	if got := exportAll(t, n, api.Export{Lang: "pt", Site: "example.org"}, total); len(got) != total/2 {
		t.Errorf("%d records in pt of %d", len(got), total)
	}
	if got := exportAll(t, n, api.Export{Since: now.Add(time.Second)}, total); len(got) != 0 {
		t.Errorf("%d records from the future", len(got))
	}
}

// Captures come before their record, in pages that fit a frame, whatever their size. An export that
// requests captures returns them with the record.
func TestExportOfCaptures(t *testing.T) {
	n := newFixture(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	noise := make([]byte, store.MaxBodyBytes)
	rng := rand.NewChaCha8([32]byte{})
	keys := []partition.Key{mustKey(t, "http://a.example/1"), mustKey(t, "http://a.example/2"),
		mustKey(t, "http://b.example/1")}
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: keys[0]}, {Key: keys[1]}, {Key: keys[2]}},
		now); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for _, k := range keys {
			now = now.Add(time.Minute)
			_, _ = rng.Read(noise)
			head := []byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: \x01\x02\r\n", 2000))
			rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now,
				Status: 200, Digest: fmt.Sprint(i), Text: strings.Repeat("\x01", 1<<20)}
			c := store.Commit{Key: k, Now: now, Record: rec, Next: store.Next{State: store.StateDone},
				Capture: &store.Capture{Request: head, Response: head, Body: noise}}
			if err := n.store.Commit(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	var parts []string
	var after spot
	for {
		a, err := n.recordsOf(t.Context(), n.id, after, &wire.Records{Captures: true})
		if err != nil {
			t.Fatal(err)
		}
		resp := &wire.Response{Version: partition.WireVersion, Body: &wire.Response_Records{Records: a}}
		if size := proto.Size(resp); size > wire.MaxFrame {
			t.Fatalf("an answer of %d bytes", size)
		}
		if err := resp.Validate(); err != nil {
			t.Fatal(err)
		}
		s := &shelf{en: n.Engine, peer: n.id, after: after, captures: true}
		if err := s.take(a); err != nil {
			t.Fatal(err)
		}
		if s.ended {
			break
		}
		after = s.after
		for _, x := range s.page {
			parts = append(parts, fmt.Sprintf("%s %d %d", x.key, len(x.part), len(x.capture.Body)))
		}
	}
	if len(parts) != 12 || parts[2] != parts[1] ||
		!strings.HasSuffix(parts[2], fmt.Sprint(" 9 ", store.MaxBodyBytes)) || !strings.HasSuffix(parts[3], " 0 0") {
		t.Errorf("%q", parts)
	}
	records := 0
	_, err := n.Export(t.Context(), api.Export{Captures: true}, func(rec store.Record, cursor string) error {
		if records++; len(rec.Captures) != 3 || rec.Captures[2].Digest != rec.Digest ||
			len(rec.Captures[0].Body) != store.MaxBodyBytes || rec.Captures[1].Key != rec.Key {
			t.Errorf("%s: %d captures", rec.Key, len(rec.Captures))
		}
		return nil
	})
	if err != nil || records != 3 {
		t.Errorf("%d records: %v", records, err)
	}
	_, err = n.Export(t.Context(), api.Export{}, func(rec store.Record, _ string) error {
		if len(rec.Captures) != 0 {
			t.Errorf("%d captures that nobody asked for", len(rec.Captures))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// exportAll returns key and cursor of up to limit records.
func exportAll(t *testing.T, n *fixture, e api.Export, limit int) [][2]string {
	t.Helper()
	var out [][2]string
	_, err := n.Export(t.Context(), e, func(rec store.Record, cursor string) error {
		if len(out) == limit {
			return context.Canceled
		}
		out = append(out, [2]string{string(rec.Key), cursor})
		return nil
	})
	if err != nil && len(out) < limit {
		t.Fatal(err)
	}
	return out
}
