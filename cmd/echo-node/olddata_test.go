package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// The present program opens the data directory of an older program. Each record, post, edge,
// capture, override and outbox row is still there, every time the directory is opened.
// testdata/olddata/README.md says how the directory was made.
func TestAnOldDataDirectoryOpens(t *testing.T) {
	dir := t.TempDir()
	unpack(t, dir)
	for _, peer := range []string{"a", "b"} {
		want := linesOf(t, peer)
		if n := kinds(want); peer == "a" && (n["record"] < 20 || n["post"] < 20 || n["edge"] < 5 || n["capture"] < 10 ||
			n["override"] < 2 || n["outbox"] < 5) {
			t.Fatalf("the list of %s is too short to show anything: %v", peer, n)
		}
		for _, time := range []string{"first", "second"} {
			var got bytes.Buffer
			if err := holding(filepath.Join(dir, peer), &got); err != nil {
				t.Fatalf("%s, opened the %s time: %v", peer, time, err)
			}
			compareLines(t, peer+", opened the "+time+" time", lines(got.String()), want)
		}
	}
}

// A whole peer runs on such a directory. It exports the same as the older program. It also sends
// the links that it kept for an absent peer as soon as that peer, which has an old directory too,
// is there.
func TestAPeerRunsOnAnOldDataDirectory(t *testing.T) {
	dir := t.TempDir()
	unpack(t, dir)
	hour := (time.Now().Hour() + 12) % 24 // nothing is fetched, so the stored data stays as it was
	args := []string{"--leave", "0s", "--orphan-after", "24h", "--hours", fmt.Sprintf("%02d-%02d", hour, (hour+1)%24),
		"--listen", "/ip4/127.0.0.1/tcp/0", "--allow-net", "127.76.0.0/16"}
	a := startProcess(t, dir, "a", args...)
	a.wait(1)
	outbox := int64(kinds(linesOf(t, "a"))["outbox"])
	var st api.Status
	if err := a.echo(&st, "status"); err != nil || st.Outbox != outbox {
		t.Errorf("%d rows in the outbox, want %d; %v", st.Outbox, outbox, err)
	}
	out := filepath.Join(dir, "export.jsonl")
	p := &program{stdout: io.Discard, stderr: io.Discard}
	if code := p.run(t.Context(), []string{"export", "-o", out, "--api", a.api}); code != exitIncomplete {
		t.Errorf("export: exit %d, want %d: the slices of b are missing", code, exitIncomplete)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, "the export of a", lines(string(b)), linesOf(t, "export"))

	other := startProcess(t, dir, "b", append(args, "--join", filepath.Join(dir, "a", "addrs"))...)
	a.wait(2)
	other.wait(2)
	until(t, "the links reach the peer that was away", 2*time.Minute, func() bool {
		var st api.Status
		return a.echo(&st, "status") == nil && st.Outbox == 0
	})
	for _, line := range linesOf(t, "a") {
		var row struct{ Outbox *store.OutboxRow }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Outbox == nil || !strings.HasPrefix(string(row.Outbox.Key), "web:http://127.76.") {
			continue // links to other private networks are refused
		}
		var shown api.Shown
		if err := other.echo(&shown, "show", string(row.Outbox.Key)); err != nil || shown.State == "" {
			t.Errorf("%s: %+v, %v", row.Outbox.Key, shown, err)
		}
	}
}

// unpack unpacks the two data directories into dir.
func unpack(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "olddata", "olddata.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(name, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// linesOf returns the lines of a list that the older program made.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "olddata", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return lines(string(b))
}

// kinds counts the lines of a list by kind.
func kinds(list []string) map[string]int {
	n := map[string]int{}
	for _, line := range list {
		what, _, _ := strings.Cut(strings.TrimPrefix(line, `{"`), `"`)
		n[what]++
	}
	return n
}

// compareLines fails unless got and want have the same lines, in any order.
func compareLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d lines, want %d: %v, want %v", what, len(got), len(want), kinds(got), kinds(want))
	shown := 0
	for _, line := range want {
		if !slices.Contains(got, line) && shown < 5 {
			t.Errorf("lost: %.300s", line)
			shown++
		}
	}
}

// holding writes everything in the store of a data directory, one JSON object a line, in order.
func holding(dir string, w io.Writer) error {
	s, err := db.Open(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		return err
	}
	l := lister{s: s, enc: json.NewEncoder(w)}
	for _, sl := range s.Charter().Slices() {
		l.slice(sl)
	}
	l.outbox()
	return errors.Join(l.err, s.Close())
}

// lister writes lines and remembers the first error.
type lister struct {
	s   *db.Store
	enc *json.Encoder
	err error
}

// line writes one object: its kind and the value.
func (l *lister) line(what string, v any) {
	if l.err == nil {
		l.err = l.enc.Encode(map[string]any{what: v})
	}
}

func (l *lister) failed(err error) {
	if l.err == nil {
		l.err = err
	}
}

// each returns a function that writes its arguments as lines.
func each[T any](l *lister, what string) func(T) (bool, error) {
	return func(v T) (bool, error) {
		l.line(what, v)
		return true, l.err
	}
}

// slice lists the rows of one slice, and everything that belongs to its keys.
func (l *lister) slice(sl partition.Slice) {
	tables := map[string]int{}
	var keys []partition.Key
	for from := []byte(nil); l.err == nil; {
		rows, next, err := l.s.Log.SliceRows(sl, from, 1<<20)
		l.failed(err)
		for _, r := range rows {
			tables[string(r.Key[:1])]++
			if _, k, ok := bytes.Cut(r.Key[1:], []byte{0}); ok && r.Key[0] == 'K' {
				keys = append(keys, partition.Key(k))
			}
		}
		if from = next; from == nil {
			break
		}
	}
	if len(tables) == 0 {
		return
	}
	l.line("rows", map[string]any{"slice": sl, "tables": tables})
	l.failed(l.s.Archive.SliceRecords(sl, "", each[store.Record](l, "record")))
	l.failed(l.s.Accounts.SlicePosts(sl, "", "", each[store.Record](l, "post")))
	l.failed(l.s.Accounts.SliceGaps(sl, store.Gap{}, each[store.Gap](l, "gap")))
	l.failed(l.s.Accounts.SliceLists(sl, "", func(k partition.Key) (bool, error) {
		l.failed(l.s.Accounts.Walks(sl, k, each[store.Walk](l, "walk")))
		l.failed(l.s.Accounts.Edges(sl, k, "", each[store.Edge](l, "edge")))
		return true, l.err
	}))
	for _, k := range keys {
		l.key(sl, k)
	}
}

// key lists what a key has besides its record.
func (l *lister) key(sl partition.Slice, k partition.Key) {
	due, err := l.s.Queue.DueIn(sl, k)
	l.failed(err)
	l.line("key", due)
	said, err := l.s.Accounts.Overrides(sl, k)
	l.failed(err)
	for _, o := range said {
		l.line("override", o)
	}
	l.failed(l.s.Archive.Captures(sl, k, nil, func(_ []byte, c store.Capture) (bool, error) {
		sum := sha256.Sum256(c.Body)
		c.Body = sum[:]
		l.line("capture", c)
		return true, l.err
	}))
	state, err := l.s.Accounts.Checkpoint(sl, k)
	if l.failed(err); len(state) > 0 {
		l.line("checkpoint", map[string]any{"key": k, "state": state})
	}
}

// outbox lists the links that were not sent to other slices yet.
func (l *lister) outbox() {
	for from := uint64(0); ; {
		rows, reached, err := l.s.Queue.Outbox(from, 1000, func(partition.Slice) bool { return true })
		l.failed(err)
		for _, r := range rows {
			l.line("outbox", r)
		}
		if err != nil || reached == from {
			return
		}
		from = reached
	}
}
