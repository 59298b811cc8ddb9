package warc

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nlnwa/gowarc"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func epoch() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC) }

// kept is one record as another reader sees it.
type kept struct {
	kind   string
	fields *gowarc.WarcFields
	block  string
}

// readBack reads a file with gowarc, which fails on the first violation of the format and checks
// digests. It also reads it with the other readers that are installed.
func readBack(t *testing.T, file []byte) []kept {
	t.Helper()
	r, err := gowarc.NewWarcFileReaderFromStream(bytes.NewReader(file), 0, gowarc.WithStrictValidation())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []kept
	for {
		rec, _, v, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = rec.ValidateDigest(v)
		}
		if err != nil {
			t.Fatalf("record %d: %v", len(out), err)
		}
		if !v.Valid() {
			t.Errorf("record %d: %s", len(out), v)
		}
		b, err := rec.Block().RawBytes()
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, kept{rec.WarcHeader().Get("WARC-Type"), rec.WarcHeader(), string(all)})
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
	}
	readElsewhere(t, file)
	return out
}

// readElsewhere checks the file with warcio (Python) and the Internet Archive's warc (Go), if they
// are installed.
func readElsewhere(t *testing.T, file []byte) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.warc.gz")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"warcio", "check", name}, {"warc", "verify", name}} {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Logf("%s is not installed: not asked", args[0])
			continue
		}
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("ERROR")) || bytes.Contains(out, []byte("fail")) {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestRecordsAreReadByOthers(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	if err := w.Info(Info{Software: "echo-node/test", Filename: "x.warc.gz", Made: epoch(),
		Query: "kind=page"}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "um texto\r\n\r\ncom <linhas>\x00", strings.Repeat("x", 1<<20)} {
		if err := w.Record(store.Record{V: 1, Key: "web:https://a.example/",
			URL: "https://a.example/\r\nWARC-Type: response", FetchedAt: epoch(), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	got := readBack(t, file.Bytes())
	if len(got) != 4 || got[0].kind != "warcinfo" || got[0].fields.Get("WARC-Filename") != "x.warc.gz" {
		t.Fatalf("%d records: %+v", len(got), got)
	}
	ids := map[string]bool{}
	for _, r := range got[1:] {
		ids[r.fields.Get("WARC-Record-ID")] = true
		if r.kind != "metadata" || r.fields.Get("WARC-Date") != "2026-01-02T03:04:05.678Z" ||
			!strings.HasPrefix(r.block, `{"v":1,"key":"web:https://a.example/"`) {
			t.Errorf("%s %v", r.kind, r.fields)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d ids of 3 records", len(ids))
	}
	var again bytes.Buffer
	if err := NewWriter(&again).Record(store.Record{V: 1, Key: "web:https://a.example/",
		URL: "https://a.example/\r\nWARC-Type: response", FetchedAt: epoch(),
		Text: strings.Repeat("x", 1<<20)}); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(file.Bytes(), again.Bytes()) {
		t.Error("the same record is not the same bytes")
	}
}

func version(k string, at time.Time, body string) store.Capture {
	return store.Capture{Key: partition.Key("web:" + k), At: at, Status: 200, Digest: "sha256:" + body,
		Addr: "192.0.2.1", Protocol: "HTTP/2.0",
		Request:  []byte("GET /x HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\n"),
		Response: []byte("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 17\r\nContent-Type: text/html\r\n"), Body: []byte(body)}
}

// The captures: an exchange, the same body again, a visit that was not modified, and a body that
// was cut. Also a response without a body, and a version that is only a record.
func TestCapturesAreReadByOthers(t *testing.T) {
	a, b := "https://a.example/", "https://b.example/"
	at := func(n int) time.Time { return epoch().Add(time.Duration(n) * time.Hour) }
	record := func(url, body string, captures ...store.Capture) store.Record {
		return store.Record{V: 1, Key: partition.Key("web:" + url), URL: url, Status: 200, Digest: "sha256:" + body,
			FetchedAt: at(9), Captures: captures}
	}
	page, next, cut := version(a, at(0), "<p>uma página"), version(a, at(3), "another"),
		version(a, at(4), "half of a lo")
	cut.Cut = true
	moved := version(a, at(5), "")
	moved.Status, moved.Response, moved.Body, moved.Cut = 301,
		[]byte("HTTP/1.1 301 Moved Permanently\r\nLocation: /y\r\nContent-Length: 5\r\n"), nil, true
	old := record(b, "old")
	same := store.Capture{Key: page.Key, At: at(1), Status: 200, Digest: page.Digest, Revisit: store.Identical,
		Of: page.At, Response: page.Response}
	unmodified := store.Capture{Key: page.Key, At: at(2), Status: 304, Revisit: store.NotModified, Of: page.At,
		Addr: "2001:db8::1", Response: []byte("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n")}
	orphan := store.Capture{Key: page.Key, At: at(2), Status: 304, Revisit: store.NotModified}
	records := []store.Record{
		record(a, "another", page, next, cut, moved, same, unmodified, orphan),
		record(b, "<p>uma página", store.Capture{Key: old.Key, At: at(0), Record: &old},
			version(b, at(7), "<p>uma página")),
	}
	var whole bytes.Buffer
	w := NewWriter(&whole)
	var half int
	for _, r := range records {
		half = whole.Len()
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	got := readBack(t, whole.Bytes())
	for _, r := range got {
		kinds = append(kinds, r.kind)
	}
	want := "response request response request response request response request revisit revisit metadata metadata revisit request metadata"
	if text := strings.Join(kinds, " "); text != want {
		t.Fatalf("%s\n%s", text, want)
	}
	first := got[0]
	if want := "HTTP/1.1 200 OK\r\nX-Archive-Orig-Content-Encoding: gzip\r\nX-Archive-Orig-Content-Length: 17\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<p>uma página"; first.block != want {
		t.Errorf("%q", first.block)
	}
	if got[1].block != string(page.Request)+"\r\n" ||
		got[1].fields.Get("WARC-Concurrent-To") != first.fields.Get("WARC-Record-ID") {
		t.Errorf("%q %v", got[1].block, got[1].fields)
	}
	if got[4].fields.Get("WARC-Truncated") != "length" || first.fields.Get("WARC-Truncated") != "" ||
		first.fields.Get("WARC-Protocol") != "h2" {
		t.Errorf("%v", got[4].fields)
	}
	for i, profile := range map[int]string{8: identicalDigest, 9: notModified, 12: identicalDigest} {
		f := got[i].fields
		if f.Get("WARC-Profile") != profile || f.Get("WARC-Refers-To") != first.fields.Get("WARC-Record-ID") ||
			f.Get("WARC-Refers-To-Target-URI") != a ||
			f.Get("WARC-Refers-To-Date") != first.fields.Get("WARC-Date") || strings.Contains(got[i].block, "uma") ||
			!strings.HasSuffix(got[i].block, "\r\n\r\n") {
			t.Errorf("revisit %d: %v\n%q", i, f, got[i].block)
		}
	}
	if got[10].fields.Get("WARC-Refers-To") != got[2].fields.Get("WARC-Record-ID") ||
		strings.Contains(got[10].block, "captures") {
		t.Errorf("%v", got[10].fields)
	}
	// When the file is cut between the two records and another Writer continues it, it is the same
	// file.
	var rest bytes.Buffer
	again := NewWriter(&rest)
	if err := errors.Join(again.Resume(bytes.NewReader(whole.Bytes()[:half])), again.Record(records[1])); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rest.Bytes(), whole.Bytes()[half:]) {
		t.Error("not the same file")
	}
	if err := again.Resume(bytes.NewReader(whole.Bytes()[:half-3])); err == nil {
		t.Error("half a record is no file")
	}
}

func TestEmptyDigest(t *testing.T) {
	if sum := sha256.Sum256(nil); digest(sum[:]) != emptyDigest {
		t.Error(digest(sum[:]))
	}
}

// TestFilesOfAccounts: a file of an account is the response of its own address. The same bytes at
// another address are a revisit.
func TestFilesOfAccounts(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	body := []byte("\x89PNG\r\n\x1a\n\x00\xff")
	for i, at := range []string{"https://cdn.example/a.png", "https://cdn.example/b.png"} {
		k, err := partition.Key("mastodon:ana@m.example").File(at)
		if err != nil {
			t.Fatal(err)
		}
		r := store.Record{V: store.RecordVersion, Key: k, Kind: store.KindMedia, URL: k.URL(), FetchedAt: epoch(),
			Status: 200, Digest: "sha256:x", MediaType: "image/png", Size: int64(len(body))}
		r.Captures = []store.Capture{{Key: k, At: epoch().Add(time.Duration(i) * time.Second), Status: 200,
			Digest: "sha256:x", Request: []byte("GET / HTTP/1.1\r\nHost: cdn.example\r\n"),
			Response: []byte("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"), Body: body}}
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, k := range readBack(t, out.Bytes()) {
		if got = append(got, k.kind+" "+k.fields.Get("WARC-Target-URI")); k.kind == "response" &&
			!strings.HasSuffix(k.block, "\r\n\r\n"+string(body)) {
			t.Errorf("the file is %q", k.block)
		}
	}
	want := "response https://cdn.example/a.png, request https://cdn.example/a.png, metadata https://cdn.example/a.png, revisit https://cdn.example/b.png, request https://cdn.example/b.png, metadata https://cdn.example/b.png"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}
