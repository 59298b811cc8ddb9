package store

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
)

func TestLife(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{FS: fs, Charter: partition.DefaultCharter("test", "founder")}
	if _, err := Open("d", o); !errors.Is(err, ErrNotExist) {
		t.Fatal(err)
	}
	s, err := Create("d", o)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := partition.Key("web:https://a.example/")
	ans, err := s.Admit([]Admission{{Key: k}, {Key: k}}, now)
	if err != nil || ans[0] != Admitted || ans[1] != Known {
		t.Fatal(ans, err)
	}
	r := Record{V: 1, Key: k, Text: "hello", FetchedAt: now}
	err = s.Commit(Commit{Key: k, Now: now, Record: &r, Next: Next{State: StateDone}, Links: []Admission{{Key: "web:https://b.example/"}, {Key: "web:https://a.example/x"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s.Stats())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open("d", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s.Stats())
	rows, _, err := s.PendingOf(s.SliceOf(k), k.Site(), nil, 10)
	t.Log(rows, err)
	ob, err := s.Outbox(0, 10)
	t.Log(ob, err)
	ch, err := s.Changes(0, 10)
	t.Log(ch, err)
	rows2, next, err := s.SliceRows(s.SliceOf(k), nil, 1<<20)
	t.Log(len(rows2), next, err)
	if err := s.ImportRows(s.SliceOf(k), rows2); err != nil {
		t.Fatal(err)
	}
	t.Log(s.Stats())
	if err := s.DropSlice(s.SliceOf(k)); err != nil {
		t.Fatal(err)
	}
	t.Log(s.Stats())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
