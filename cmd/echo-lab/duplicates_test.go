package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestDuplicates(t *testing.T) {
	var out, table bytes.Buffer
	args := []string{"duplicates", "--per-class", "100", "--texts", "1000"}
	if code := run(t.Context(), append(args, "--json"), &out, io.Discard); code != exitDone {
		t.Fatalf("exit %d", code)
	}
	type side struct {
		Found        *float64
		Right, Wrong int
	}
	type kind struct {
		Name        string
		Other       bool
		Ours, Paper side
	}
	var got struct {
		Classes   []kind
		All       kind
		Distances []struct{ Precision, Recall float64 }
		Rates     []struct{ Planted, Ours float64 }
		Example   struct{ Sets, Counts int }
		Real      []any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Classes) != 12 || len(got.Distances) != 10 || len(got.Rates) != 2 || got.Example.Counts != 16 ||
		got.Real != nil {
		t.Fatalf("%+v", got)
	}
	if one := got.Classes[4]; one.Name != "1 word edited" || one.Ours.Found == nil ||
		*one.Ours.Found <= *one.Paper.Found {
		t.Errorf("%+v", one)
	}
	run(t.Context(), args, &table, io.Discard)
	for _, want := range []string{
		"echo-node", "negated", "no copy", "English: paper 9.00", "0 bits apart by sets, 16 by counts",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	for _, bad := range []string{"--per-class=0", "--words=3", "--texts=1", "--data=" + t.TempDir()} {
		if code := run(t.Context(), append(args, bad), io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%s: exit %d", bad, code)
		}
	}
}
