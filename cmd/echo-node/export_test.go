package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// exporting serves n records of a peer. While stuck is open, it sends nothing after record
// number at.
func exporting(t *testing.T, n, at int, stuck chan struct{}) (addr string) {
	t.Helper()
	s, err := api.New(api.Options{Peer: api.Peer{Export: func(ctx context.Context, e api.Export,
		fn func(store.Record, string) error) ([]api.Missing, error) {
		for i := range n {
			cursor := fmt.Sprintf("%05d", i)
			if cursor <= e.Cursor {
				continue
			}
			if i == at {
				select {
				case <-stuck:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			k := partition.Key("web:https://a.example/" + cursor)
			r := store.Record{V: 1, Key: k, URL: string(k[4:]), Kind: "page", Status: 200,
				FetchedAt: time.Unix(int64(i), 0).UTC(),
				Title:     "=\"1\"", Digest: "sha256:x", Text: strings.Repeat("uma linha,\n\"outra\" ", 20),
				Links: []store.Link{{Key: k}, {Key: k}}}
			if e.Captures {
				at := r.FetchedAt
				r.Captures = []store.Capture{
					{Key: k, At: at, Status: 200, Digest: r.Digest,
						Request:  []byte("GET /" + cursor + " HTTP/1.1\r\nHost: a.example\r\n"),
						Response: []byte("HTTP/1.1 200 OK\r\n"), Body: []byte(fmt.Sprint("body ", i%700))},
					{Key: k, At: at.Add(time.Second), Of: at, Revisit: store.NotModified, Status: 304,
						Response: []byte("HTTP/1.1 304 Not Modified\r\n")}}
			}
			if err := fn(r, cursor); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	return hs.URL
}

// The command is killed in the middle, with more data in its file than it has noted, and run
// again.
func TestExportGoesOnAfterAKill(t *testing.T) {
	for _, format := range []string{"jsonl", "csv", "warc"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			stuck := make(chan struct{})
			addr := exporting(t, 2500, 1900, stuck)
			dir := t.TempDir()
			name := filepath.Join(dir, "cut")
			args := []string{"export", "--api", addr, "--format", format, "-o"}
			cmd := exec.Command(echoNode(t), append(args, name)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			err := waits("the first mark", func() error { _, err := os.Stat(name + ".cursor"); return err })
			_ = cmd.Process.Kill() // it may have ended by itself, which leaves no mark either
			_ = cmd.Wait()
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("\x1f\x8b half a rec"); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			close(stuck)
			for _, n := range []string{name, filepath.Join(dir, "whole")} {
				if out, err := exec.Command(echoNode(t), append(args, n)...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			cut, whole := exported(t, format, name), exported(t, format, filepath.Join(dir, "whole"))
			if !bytes.Equal(cut, whole) {
				t.Errorf("%d bytes of the one that was killed, %d of the other", len(cut), len(whole))
			}
			if n := bytes.Count(whole, []byte("https://a.example/02499")); n == 0 {
				t.Error("the last record is not there")
			}
			if n, first := bytes.Count(whole, []byte("\r\nbody ")),
				bytes.Count(whole, []byte("identical-payload-digest")); format == "warc" &&
				(n != 700 || first != 1800) {
				t.Errorf("%d bodies, %d revisits", n, first)
			}
			if _, err := os.Stat(name + ".cursor"); err == nil {
				t.Error("the note is still there")
			}
		})
	}
}

// exported returns the text of an export without what depends on the time of the export.
func exported(t *testing.T, format, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil || format != "warc" {
		if err == nil && format == "csv" {
			rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
			if err != nil || len(rows) != 2501 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
		}
		return b
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := bytes.Cut(b[1:], []byte("WARC/1.1\r\n"))
	if !ok || !bytes.HasPrefix(b, []byte("WARC/1.1\r\nWARC-Type: warcinfo\r\n")) {
		t.Fatal("no warcinfo and then another record")
	}
	return rest
}

// An export in another format does not continue a file.
func TestExportOfAnotherFormat(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	e := api.Export{Kind: "page"}
	m, err := openExport(name, (&exportCmd{Format: "jsonl"}).query(e))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.mark("c"); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openExport(name, (&exportCmd{Format: "csv"}).query(e)); err == nil {
		t.Error("csv goes on with a file of jsonl")
	}
}

// TestEdgesAsCSV checks that the follower is in the column from, for either list, and that each
// period in a list is a row.
func TestEdgesAsCSV(t *testing.T) {
	var out bytes.Buffer
	f := edgesForm(&out)
	at := func(h int) time.Time { return time.Unix(int64(h)*3600, 0).UTC() }
	gone := at(3)
	for _, r := range []store.Record{
		{Key: "mastodon:a@x.example/followers", Kind: "edges",
			Edges: []store.Edge{{To: "mastodon:b@x.example", FirstSeen: at(1), LastSeen: at(2), GoneAt: &gone,
				Sure: store.SurePart}}},
		{Key: "mastodon:a@x.example/following", Kind: "edges",
			Edges: []store.Edge{{To: "mastodon:c@x.example", FirstSeen: at(1), LastSeen: at(9), Sure: store.SureDoubted,
				Spans: []store.Span{{First: at(1), Last: at(2), Gone: at(3)}, {First: at(8), Last: at(9)}}}}},
		{Key: "mastodon:a@x.example/following", Kind: "edges"},
	} {
		if out.Len() == 0 {
			if err := f.begin(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.record(r); err != nil {
			t.Fatal(err)
		}
	}
	want := "from,to,kind,first_seen,last_seen,gone_at,sure\n" +
		"mastodon:b@x.example,mastodon:a@x.example,follows,1970-01-01T01:00:00Z,1970-01-01T02:00:00Z,1970-01-01T03:00:00Z,part\n" +
		"mastodon:a@x.example,mastodon:c@x.example,follows,1970-01-01T01:00:00Z,1970-01-01T02:00:00Z,1970-01-01T03:00:00Z,doubted\n" +
		"mastodon:a@x.example,mastodon:c@x.example,follows,1970-01-01T08:00:00Z,1970-01-01T09:00:00Z,,doubted\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

func TestPrintGapsAndHeld(t *testing.T) {
	var out bytes.Buffer
	at := time.Unix(0, 0).UTC()
	printGaps(&out, api.GapAnswer{Gaps: []store.Gap{{Key: "mastodon:a@x.example", What: store.GapLimited, From: at,
		Reason: "429\x1b[2J"}}, Cursor: "c"})
	printSummary(&out, api.AccountSummary{Posts: 2, Deleted: 1,
		Latest: []store.Record{{Post: "https://x.example/1", Text: "olá\x07", FetchedAt: at, Edits: []store.Edit{{}}}},
		Lists: []api.ListSummary{{List: "mastodon:a@x.example/followers", Now: 3, Ever: 4, Walks: 2,
			Last: &store.Walk{Why: "cut"}}}, Gaps: []store.Gap{{What: store.GapCut, From: at, To: at}}})
	for _, want := range []string{"limited", "open", "more: --cursor 'c'", "2, 1 of them deleted",
		"3 now, 4 ever, read 2 times; the last reading is not whole: cut", "edited 1 times", "olá"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Error("control characters are printed")
	}
}

// A row of csv has the same fields with the same names as the line of JSON.
func TestCSVHasTheFieldsOfJSON(t *testing.T) {
	at := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	r := store.Record{V: 1, Key: "mastodon:ana@m.example", Kind: "post", Post: "https://m.example/1",
		URL: "https://m.example/@ana/1", FetchedAt: at, Source: "mastodon", Peer: "p", Via: "q",
		Status: 200, Digest: "sha256:00", Title: "a, b", Text: "two\nlines", Lang: "pt-PT",
		Place: &store.Place{Name: "Porto", Country: "PT"}, Period: []store.Interval{{}}, Copies: "c",
		Verdict: &store.Verdict{}, Declared: []string{"Porto"}, PublishedAt: &at,
		Links: []store.Link{{Key: "web:https://a.example/"}, {Key: "web:https://b.example/"}}, ETag: "e",
		Modified: "m",
		Size:     7, NoArchive: true, Cut: true, Raw: json.RawMessage(`{"x":1}`), Reason: "why",
		Social: store.Social{ID: "1", By: "mastodon:rui@m.example", EditedAt: &at, InReplyTo: "https://m.example/0",
			Tags: []string{"porto"}, Counts: map[string]int64{"likes": 3}, Flags: []string{"bot"},
			Visibility: "public"},
		Edits: []store.Edit{{}}, Gap: &store.Gap{}}
	var out bytes.Buffer
	f := csvForm(&out)
	if err := errors.Join(f.begin(), f.record(r),
		f.record(store.Record{V: 1, Key: "web:https://a.example/"})); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	cells := map[string]string{}
	for i, name := range rows[0] {
		if _, twice := cells[name]; twice {
			t.Errorf("two columns are called %s", name)
		}
		cells[name] = rows[1][i]
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	if len(fields) < 35 {
		t.Fatalf("only %d fields are compared", len(fields))
	}
	for name, v := range fields {
		cell, ok := cells[name]
		var back any
		switch text, isText := v.(string); {
		case !ok:
			t.Errorf("no column for %s", name)
		case name == "links":
			if cell != "web:https://a.example/ web:https://b.example/" {
				t.Errorf("links: %q", cell)
			}
		case isText:
			if cell != text {
				t.Errorf("%s: %q, in JSON %q", name, cell, text)
			}
		default:
			if err := json.Unmarshal([]byte(cell), &back); err != nil || !reflect.DeepEqual(back, v) {
				t.Errorf("%s: %q, in JSON %v (%v)", name, cell, v, err)
			}
		}
	}
}

// The hint of a stopped export matches how the command was called.
func TestHintOfAnExportThatStopped(t *testing.T) {
	for _, c := range []struct {
		cmd    exportCmd
		cursor string
		want   string
		not    string
	}{
		{exportCmd{Out: "x.jsonl"}, "c1", "the same command again", "--cursor"},
		{exportCmd{}, "c1", "--cursor 'c1'", "-o"},
		{exportCmd{}, "", "the same command again", "--cursor"},
	} {
		if got := c.cmd.hint(c.cursor); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%+v after %q: %s", c.cmd.Out, c.cursor, got)
		}
	}
}
