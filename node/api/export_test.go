package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

type contextT = context.Context

func decode[T any](r io.Reader) (v T, err error) {
	err = json.NewDecoder(r).Decode(&v)
	return v, err
}

// collect exports and returns the cursors.
func collect(t *testing.T, c *Client, e Export) ([]string, []Missing, error) {
	t.Helper()
	var cursors []string
	missing, err := c.Export(t.Context(), e, func(rec store.Record, cursor string) error {
		if want := partition.Key("web:https://example.org/" + cursor); rec.Key != want || rec.Title != "Título <b>" ||
			rec.Kind != e.Kind {
			t.Errorf("cursor %s with %+v", cursor, rec)
		}
		cursors = append(cursors, cursor)
		return nil
	})
	return cursors, missing, err
}

func TestAnExportSaysWhatIsMissing(t *testing.T) {
	c, _ := serve(t, Options{Peer: fake()})
	cursors, missing, err := collect(t, c, Export{Kind: "page"})
	if err != nil || strings.Join(cursors, "") != "12345" {
		t.Fatalf("%v, %v", cursors, err)
	}
	if d := cmp.Diff([]Missing{{Peer: "peer2", Reason: "não respondeu", Slices: 4}}, missing); d != "" {
		t.Error(d)
	}
}

func TestAnExportGoesOnAfterACursor(t *testing.T) {
	c, base := serve(t, Options{Peer: fake()})
	cursors, _, err := collect(t, c, Export{Cursor: "3"})
	if err != nil || strings.Join(cursors, "") != "45" {
		t.Fatalf("%v, %v", cursors, err)
	}
	if cursors, missing, err := collect(t, c, Export{Cursor: "5"}); err != nil || len(cursors) != 0 ||
		len(missing) != 1 {
		t.Errorf("nothing left: %v, %v, %v", cursors, missing, err)
	}
	// By hand, as a script does it: cut after the last line feed, read the cursor of the last
	// line.
	h, text := get200(t, base+"/api/v1/export")
	if h.Get("Content-Type") != mediaJSONL {
		t.Errorf("%v", h)
	}
	torn := text[:len(text)-10]
	lines := strings.Split(torn[:strings.LastIndexByte(torn, '\n')], "\n")
	last, err := decode[exportLine](strings.NewReader(lines[len(lines)-1]))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(lines[0], `"cursor":"1"}`) {
		t.Errorf("cursor is not the last field: %s", lines[0])
	}
	_, rest := get200(t, base+"/api/v1/export?cursor="+last.Cursor)
	if got := strings.Join(lines, "\n") + "\n" + rest; got != text {
		t.Errorf("two parts are not the whole:\n%s\n%s", got, text)
	}
}

func TestAnExportThatBreaksNeverLooksWhole(t *testing.T) {
	for _, n := range []int{1, 5000} {
		p := fake()
		p.Export = exportOf(n, errBoom)
		c, base := serve(t, Options{Peer: p})
		if cursors, _, err := collect(t, c, Export{}); !errors.Is(err, ErrBroken) {
			t.Errorf("after %d of %d: %v", len(cursors), n, err)
		}
		res, err := http.Get(base + "/api/v1/export")
		if err != nil {
			continue // cut before its headers: not complete either
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err = errors.Join(err, res.Body.Close()); err == nil {
			t.Error("the body ended as if it were whole")
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestAnExportThatFailsAtOnceIsAProblem(t *testing.T) {
	p := fake()
	p.Export = exportOf(0, fmt.Errorf("the store: %w", ErrUnavailable))
	c, _ := serve(t, Options{Peer: p})
	_, _, err := collect(t, c, Export{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the store") {
		t.Errorf("%v", err)
	}
}

func TestTheReaderOfAnExportCanStop(t *testing.T) {
	ended := make(chan error, 1)
	p := fake()
	p.Export = func(_ context.Context, _ Export, fn func(store.Record, string) error) ([]Missing, error) {
		rec := store.Record{Text: strings.Repeat("x", 100_000)}
		for {
			if err := fn(rec, "1"); err != nil {
				ended <- err
				return nil, err
			}
		}
	}
	c, _ := serve(t, Options{Peer: p})
	_, err := c.Export(t.Context(), Export{}, func(rec store.Record, _ string) error {
		if len(rec.Text) != 100_000 {
			t.Errorf("%d bytes", len(rec.Text))
		}
		return errBoom
	})
	if !errors.Is(err, errBoom) {
		t.Errorf("%v", err)
	}
	if err := <-ended; !errors.Is(err, errReader) {
		t.Errorf("the peer's side: %v", err)
	}
}

// An export may take longer than net/http's deadlines, which are for one response.
func TestAnExportOutlivesTheServersDeadlines(t *testing.T) {
	p := fake()
	p.Export = func(ctx context.Context, _ Export, fn func(store.Record, string) error) ([]Missing, error) {
		for i := range 3 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(60 * time.Millisecond):
			}
			if err := fn(store.Record{}, fmt.Sprint(i)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	s, err := New(Options{Peer: p})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewUnstartedServer(s)
	hs.Config.ReadTimeout, hs.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	hs.Start()
	defer hs.Close()
	c, err := NewClient(hs.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	if missing, err := c.Export(t.Context(), Export{},
		func(store.Record, string) error { n++; return nil }); err != nil || n != 3 || len(missing) != 0 {
		t.Errorf("%d records, %v, %v", n, missing, err)
	}
}

func TestAReaderThatStandsStillIsCutOff(t *testing.T) {
	ended := make(chan error, 1)
	p := fake()
	p.Export = func(_ context.Context, _ Export, fn func(store.Record, string) error) ([]Missing, error) {
		rec := store.Record{Text: strings.Repeat("x", 1<<20)}
		for {
			if err := fn(rec, "1"); err != nil {
				ended <- err
				return nil, err
			}
		}
	}
	s, err := New(Options{Peer: p})
	if err != nil {
		t.Fatal(err)
	}
	s.stall = 20 * time.Millisecond
	hs := httptest.NewServer(s)
	defer hs.Close()
	conn, err := net.Dial("tcp", hs.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /api/v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestExportsAreLimitedInNumber(t *testing.T) {
	p := fake()
	begun, goOn := make(chan struct{}), make(chan struct{})
	p.Export = func(context.Context, Export, func(store.Record, string) error) ([]Missing, error) {
		begun <- struct{}{}
		<-goOn
		return nil, nil
	}
	c, _ := serve(t, Options{Peer: p})
	results := make(chan error, maxExports)
	for range maxExports {
		go func() {
			_, err := c.Export(t.Context(), Export{}, func(store.Record, string) error { return nil })
			results <- err
		}()
		<-begun
	}
	if _, _, err := collect(t, c, Export{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("one too many: %v", err)
	}
	close(goOn)
	for range maxExports {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestTooManyMissingAreCounted(t *testing.T) {
	var missing []Missing
	for i := range 1000 {
		missing = append(missing, Missing{Peer: fmt.Sprint("peer", i), Reason: "gone", Slices: 2})
	}
	text, err := missingText(missing)
	if err != nil || len(text) > maxMissingText {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	got, err := decode[[]Missing](strings.NewReader(text))
	if err != nil || len(got) != 1 || got[0].Slices != 2000 || !strings.Contains(got[0].Reason, "1000") {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzASCIIKeepsJSON(f *testing.F) {
	f.Add("não\x7f\u2028😀\xff\n")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text := ascii(string(b))
		got, err := decode[string](strings.NewReader(text))
		want, _ := decode[string](strings.NewReader(string(b)))
		if err != nil || got != strings.ReplaceAll(want, "\x7f", "") {
			t.Fatalf("%q became %q, %v", s, got, err)
		}
		for i := range len(text) {
			if text[i] < ' ' || text[i] >= utf8.RuneSelf {
				t.Fatalf("byte %x", text[i])
			}
		}
	})
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), 16)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		r := bufio.NewReaderSize(strings.NewReader(string(data)), 16+size&1023)
		var got []byte
		for {
			line, err := readLine(r)
			if err != nil {
				whole := len(data) == 0 || data[len(data)-1] == '\n'
				if (err == io.EOF) != whole {
					t.Fatalf("%v at the end of %q", err, data)
				}
				break
			}
			got = append(append(got, line...), '\n')
		}
		if i := strings.LastIndexByte(string(data), '\n'); string(got) != string(data[:i+1]) {
			t.Fatalf("%q of %q", got, data)
		}
	})
}
