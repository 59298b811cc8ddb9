package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Records of several peers come in one order, each once, and of copies the
// owner's; so a cursor means the same whoever holds what.
func TestExportMergesShelves(t *testing.T) {
	n := openNode(t, Options{})
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
	open := map[string]*shelf{n.id: {n: n}, "other": {n: n}}
	for i, k := range keys {
		if i%3 != 0 {
			open[n.id].page = append(open[n.id].page, shelved{spot: at(k), record: store.Record{Key: k, Peer: n.id}})
		}
		if i%3 != 1 {
			open["other"].page = append(open["other"].page, shelved{spot: at(k), record: store.Record{Key: k, Peer: "other"}})
		}
	}
	for i, k := range keys {
		rec := n.least(open).record
		if rec.Key != k {
			t.Fatalf("record %d is %s, want %s", i, rec.Key, k)
		}
		if i%3 == 2 && rec.Peer != n.keep.Owner(n.store.SliceOf(k)) {
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

// An owner that is no member now is missing, and not passed over.
func TestExportNamesOwnersThatAreGone(t *testing.T) {
	n := openNode(t, Options{Capacity: 16})
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
	if err != nil || len(missing) != 1 || missing[0].Peer != gone || missing[0].Slices != 3 || !strings.Contains(missing[0].Reason, "is not here") {
		t.Errorf("%+v missing, %v", missing, err)
	}
	if missing, err = n.Export(t.Context(), api.Export{Local: true}, count); err != nil || len(missing) != 0 {
		t.Errorf("of this peer alone: %+v missing, %v", missing, err)
	}
}

func TestHostileRecords(t *testing.T) {
	n := openNode(t, Options{})
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
	for name, bad := range map[string]*wire.RecordsAnswer{"backwards": page(b, a), "twice": page(a, a), "no key": page("javascript:1"), "no JSON": {Records: [][]byte{[]byte("{")}}} {
		if err := (&shelf{n: n}).take(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	s := &shelf{n: n, after: spot{in: n.store.SliceOf(a), key: a}}
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

// A text of brackets fits a frame.
func TestPlainJSON(t *testing.T) {
	r := store.Record{Text: strings.Repeat("<&>", 1000)}
	b, err := plain(r)
	if err != nil || len(b) > 4000 || b[len(b)-1] != '}' {
		t.Fatal(len(b), err)
	}
	var back store.Record
	if err := json.Unmarshal(b, &back); err != nil || back.Text != r.Text {
		t.Error(err)
	}
}
