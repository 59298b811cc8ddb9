package search

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// The records of several peers come in one order, each once. When several peers have a record, the
// owner's comes. So a cursor does not depend on which peer holds what.
func TestExportMergesShelves(t *testing.T) {
	n := newFixture(t)
	for i, s := range n.charter.Slices() {
		if i%2 == 0 {
			give(t, n, s, "other")
		}
	}
	var keys []partition.Key
	for i := range 40 {
		keys = append(keys, mustKey(t, fmt.Sprintf("http://host%d.example/%d", i%7, i)))
	}
	at := func(k partition.Key) spot { return spot{in: n.store.SliceOf(k), key: k} }
	slices.SortFunc(keys, func(a, b partition.Key) int { return at(a).compare(at(b)) })
	open := map[string]*shelf{n.id: {en: n.Engine}, "other": {en: n.Engine}}
	for i, k := range keys {
		if i%3 != 0 {
			open[n.id].page = append(open[n.id].page, shelved{spot: at(k), record: store.Record{Key: k, Peer: n.id}})
		}
		if i%3 != 1 {
			open["other"].page = append(open["other"].page,
				shelved{spot: at(k), record: store.Record{Key: k, Peer: "other"}})
		}
	}
	for i, k := range keys {
		rec := n.least(open).record
		if rec.Key != k {
			t.Fatalf("record %d is %s, want %s", i, rec.Key, k)
		}
		if i%3 == 2 && rec.Peer != n.quorum.Owner(n.store.SliceOf(k)) {
			t.Errorf("%s is the copy of %s", k, rec.Peer)
		}
		for id, s := range open {
			if len(s.page) == 0 {
				delete(open, id)
			}
		}
	}
	if len(open) != 0 {
		t.Errorf("%d shelves are not empty", len(open))
	}
}

// An owner that is no member now is reported as missing.
func TestExportNamesOwnersThatAreGone(t *testing.T) {
	n := newFixture(t)
	keepPages(t, n, 9, "sardinha")
	given := 0
	count := func(store.Record, string) error { given++; return nil }
	missing, err := n.Export(t.Context(), api.Export{}, count)
	if err != nil || given != 9 || len(missing) != 0 {
		t.Fatalf("%d of 9 records, %+v missing, %v", given, missing, err)
	}
	gone := strangeID(t)
	for _, s := range n.slices[:3] {
		give(t, n, s, gone)
	}
	missing, err = n.Export(t.Context(), api.Export{}, count)
	if err != nil || len(missing) != 1 || missing[0].Peer != gone || missing[0].Slices != 3 ||
		!strings.Contains(missing[0].Reason, "is not here") {
		t.Errorf("%+v missing, %v", missing, err)
	}
	if missing, err = n.Export(t.Context(), api.Export{Local: true}, count); err != nil || len(missing) != 0 {
		t.Errorf("of this peer alone: %+v missing, %v", missing, err)
	}
}

// A slice may change hands after the export passed its new owner's records. Then the export asks
// for it again, in its place. A slice that no peer has completely is missing.
func TestExportOfSlicesThatChangeHands(t *testing.T) {
	n := newFixture(t)
	keepPages(t, n, 40, "sardinha")
	var all []partition.Key
	in := map[partition.Slice]int{}
	_, err := n.Export(t.Context(), api.Export{}, func(r store.Record, _ string) error {
		all, in[n.store.SliceOf(r.Key)] = append(all, r.Key), in[n.store.SliceOf(r.Key)]+1
		return nil
	})
	if err != nil || len(all) != 40 || len(in) < 4 {
		t.Fatalf("%d of 40 records in %d slices: %v", len(all), len(in), err)
	}
	used := slices.Sorted(maps.Keys(in))
	away, gone := strangeID(t), used[len(used)-1]
	for _, kind := range []string{"", "page"} { // everything of each Key, and records alone
		for _, s := range used[1:] {
			give(t, n, s, away)
		}
		var got []partition.Key
		missing, err := n.Export(t.Context(), api.Export{Kind: kind}, func(r store.Record, _ string) error {
			if got = append(got, r.Key); len(got) == 1 {
				for _, s := range used[1 : len(used)-1] {
					give(t, n, s, n.id)
				}
			}
			return nil
		})
		if want := all[:len(all)-in[gone]]; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %d records, want %d, in order: %v", kind, len(got), len(want), err)
		}
		if len(missing) != 1 || missing[0].Peer != away || missing[0].Slices != 1 {
			t.Errorf("%q: %+v missing", kind, missing)
		}
		// An owner that loses a slice in the middle returns no more of it, and the rest is missing.
		for _, s := range used {
			give(t, n, s, n.id)
		}
		rows := 0
		missing, err = n.Export(t.Context(), api.Export{Kind: kind}, func(store.Record, string) error {
			if rows++; rows == 1 {
				give(t, n, gone, away)
			}
			return nil
		})
		if err != nil || rows != len(all) && len(missing) == 0 {
			t.Errorf("%q: %d records of %d, %+v missing, %v", kind, rows, len(all), missing, err)
		}
		give(t, n, gone, n.id)
	}
}

// A slice whose rest is missing is requested once and counts as one missing slice, however much of
// it was read.
func TestExportCountsMissingSlicesOnce(t *testing.T) {
	n := newFixture(t)
	away, s := strangeID(t), n.slices[1]
	give(t, n, s, away)
	x := &exporter{en: n.Engine, given: map[partition.Slice]*given{}, failed: map[string]error{away: call.ErrVanished},
		missing: map[string]*absentee{}, slices: []partition.Slice{s}}
	for _, next := range []*spot{{in: s, key: "a"}, {in: s, key: "b"}, nil} {
		if err := x.complete(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	if got := x.missed(t.Context()); len(got) != 1 || got[0].Peer != away || got[0].Slices != 1 {
		t.Errorf("%+v missing", got)
	}
}

// A record of a slice is accepted only from the slice's owner, whatever another peer claims.
func TestExportTakesOwnersRecords(t *testing.T) {
	n := newFixture(t)
	k := mustKey(t, "http://a.example/1")
	own := n.store.SliceOf(k)
	j, err := json.Marshal(store.Record{Key: k})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		peer  string
		whole []uint64
		taken int
	}{
		"the owner's":                {n.id, []uint64{uint64(own)}, 1},
		"an owner's who has no copy": {n.id, nil, 0},
		"a member's":                 {"other", []uint64{uint64(own)}, 0},
	} {
		answer := &wire.RecordsAnswer{Records: [][]byte{j}, Whole: c.whole}
		covered := map[partition.Slice]bool{}
		covers := func(_, _ spot, _ bool, whole map[partition.Slice]bool) { maps.Copy(covered, whole) }
		s := &shelf{en: n.Engine, peer: c.peer, covers: covers}
		if err := s.take(answer); err != nil || len(s.page) != c.taken || covered[own] != (c.taken == 1) {
			t.Errorf("%s: %d taken, covered %v, %v", name, len(s.page), covered, err)
		}
		var err error
		for range maxForeignPages { // page after page
			if s.page, s.after = nil, (spot{}); err == nil {
				err = s.take(answer)
			}
		}
		if (err == nil) != (c.taken == 1) {
			t.Errorf("%s, without end: %v", name, err)
		}
	}
}

func TestHostileRecords(t *testing.T) {
	n := newFixture(t)
	a, b := mustKey(t, "http://a.example/1"), mustKey(t, "http://a.example/2")
	page := func(keys ...partition.Key) *wire.RecordsAnswer {
		out := &wire.RecordsAnswer{Next: "more"}
		for _, k := range keys {
			j, err := json.Marshal(store.Record{Key: k})
			if err != nil {
				t.Fatal(err)
			}
			out.Records = append(out.Records, j)
		}
		return out
	}
	for name, bad := range map[string]*wire.RecordsAnswer{"backwards": page(b, a), "twice": page(a, a),
		"no key": page("javascript:1"), "no JSON": {Records: [][]byte{[]byte("{")}}} {
		if err := (&shelf{en: n.Engine}).take(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	s := &shelf{en: n.Engine, after: spot{in: n.store.SliceOf(a), key: a}}
	if err := s.take(page(a)); err == nil {
		t.Error("the same page again was taken")
	}
	if err := s.take(page()); err != nil || !s.ended {
		t.Error("an empty page does not end it")
	}
	if _, err := n.Export(t.Context(), api.Export{Cursor: "peer|key"}, nil); err == nil {
		t.Error("a cursor that is no key was taken")
	}
}

// Captures that were not requested, go backwards or never end are refused.
func TestHostileCaptures(t *testing.T) {
	n := newFixture(t)
	a := mustKey(t, "http://a.example/1")
	page := func(parts ...string) *wire.RecordsAnswer {
		out := &wire.RecordsAnswer{Whole: []uint64{uint64(n.store.SliceOf(a))}}
		for _, p := range parts {
			j, err := json.Marshal(store.Capture{Key: a})
			if err != nil {
				t.Fatal(err)
			}
			out.Records, out.Parts = append(out.Records, j), append(out.Parts, []byte(p))
		}
		return out
	}
	if err := (&shelf{en: n.Engine}).take(page("1")); err == nil {
		t.Error("captures that were not asked for")
	}
	if err := (&shelf{en: n.Engine, captures: true}).take(page("2", "1")); err == nil {
		t.Error("captures backwards")
	}
	s := &shelf{en: n.Engine, peer: n.id, captures: true}
	for i := range store.MaxCaptures {
		if err := s.take(page(fmt.Sprintf("%03d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.take(page("999")); err == nil {
		t.Error("captures without end")
	}
}
