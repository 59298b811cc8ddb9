package db

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// auditCaptures checks that each body is stored for exactly the captures that have it. It also
// checks that no Key has more captures than allowed.
func auditCaptures(t tb, s *Store, each func(format.Table, func(key, value []byte))) {
	t.Helper()
	uses, bodies, of := map[string]bool{}, map[string]bool{}, map[string]int{}
	each(format.TabUse, func(k, _ []byte) { uses[string(k)] = true })
	each(format.TabBody, func(k, v []byte) {
		b, err := s.engine.Packer.Unpack(v, store.MaxBodyBytes)
		if sum := sha256.Sum256(b); err != nil || string(sum[:]) != string(k[9:]) {
			t.Errorf("body %x: %v", k, err)
		}
		bodies[string(k[1:])] = false
	})
	each(format.TabCapture, func(k, v []byte) {
		id, rest, err := format.SplitRow(k)
		key, class, at, err2 := format.SplitCapture(rest)
		c, sum, err3 := s.engine.Packer.DecodeCapture(format.CaptureID{SiteID: id, Key: key, Class: class, At: at}, v)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatalf("capture %q: %v", k, err)
		}
		of[fmt.Sprintf("%q %d", k[:len(k)-format.PartLen], format.ClassOf(&c))]++
		if sum == "" {
			return
		}
		use := string(format.UseKey(id.Slice, sum, k))
		if !uses[use] {
			t.Errorf("capture %q has a body that does not know", k)
		}
		delete(uses, use)
		if _, ok := bodies[string(format.BodyKey(id.Slice, sum)[1:])]; !ok {
			t.Errorf("capture %q without its body", k)
		}
		bodies[string(format.BodyKey(id.Slice, sum)[1:])] = true
	})
	if len(uses) != 0 {
		t.Errorf("uses by nobody: %v", uses)
	}
	for b, used := range bodies {
		if !used {
			t.Errorf("a body that nobody has: %x", b)
		}
	}
	for k, n := range of {
		if n > max(store.MaxVersions, store.MaxRevisits) || strings.HasSuffix(k, " 1") && n > store.MaxVersions {
			t.Errorf("%d captures of %s", n, k)
		}
	}
}

// captured gives c an exchange whose body is text.
func captured(c store.Commit, text string) store.Commit {
	c.Capture = &store.Capture{Status: 200, Protocol: "HTTP/1.1", Request: []byte("GET / HTTP/1.1\r\n"),
		Response: []byte("HTTP/1.1 200 OK\r\n"), Body: []byte(text)}
	return c
}

func notModified(k partition.Key, at time.Time) store.Commit {
	return store.Commit{Key: k, Now: at, Next: store.Next{State: store.StateDone},
		Capture: &store.Capture{Status: 304, Revisit: store.NotModified,
			Response: []byte("HTTP/1.1 304 Not Modified\r\n")}}
}

// drawCapture draws a capture that a source may commit.
func drawCapture(t *rapid.T, c *store.Commit) {
	switch {
	case c.Record == nil && rapid.Bool().Draw(t, "304"):
		c.Capture = notModified(c.Key, c.Now).Capture
	case c.Record != nil && rapid.IntRange(0, 3).Draw(t, "capture") > 0:
		*c = captured(*c, c.Record.Text)
	}
	if c.Record != nil {
		c.Record.NoArchive = rapid.IntRange(0, 15).Draw(t, "noarchive") == 15
	}
}

// visits returns the captures of k, one line each.
func visits(t tb, s *Store, k partition.Key) (out []string) {
	t.Helper()
	err := s.Archive.Captures(0, k, nil, func(_ []byte, c store.Capture) (bool, error) {
		line := fmt.Sprintf("%d %d %s %s", int(c.At.Sub(epoch())/time.Minute), c.Status,
			strings.TrimPrefix(c.Digest, "sha256:"), c.Body)
		if c.Record != nil {
			line += " record " + c.Record.Text
		}
		if c.Revisit != "" {
			line += c.Revisit
			if !c.Of.IsZero() {
				line += fmt.Sprintf(" of %d", int(c.Of.Sub(epoch())/time.Minute))
			}
		}
		out = append(out, line)
		return true, nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

func minute(n int) time.Time { return epoch().Add(time.Duration(n) * time.Minute) }

// rowsOf returns the number of rows of a slice in a table.
func rowsOf(t tb, s *Store, tab format.Table, sl partition.Slice) (n int) {
	t.Helper()
	p := format.SlicePrefix(tab, sl)
	if err := s.engine.Scan(p, format.After(p), func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
		t.Fatalf("%v", err)
	}
	return n
}

func TestVersionsOfAPage(t *testing.T) {
	s, k := newStore(t), key("a.example", 1)
	admit(t, s, k)
	for i, text := range []string{"one", "one", "304", "two", "two", "one", "304"} {
		if text == "304" {
			commit(t, s, notModified(k, minute(i)))
			continue
		}
		commit(t, s, captured(done(k, text, minute(i)), text))
	}
	want := []string{"0 200 one one", "3 200 two two", "5 200 one one",
		"1 200 one identical of 0", "2 304  not-modified of 0", "4 200 two identical of 3", "6 304  not-modified of 5"}
	if d := cmp.Diff(want, visits(t, s, k)); d != "" {
		t.Error(d)
	}
	audit(t, s)
	if n := rowsOf(t, s, format.TabBody, s.SliceOf(k)); n != 2 {
		t.Errorf("%d bodies", n)
	}
	var parts [][]byte
	if err := s.Archive.Captures(0, k, nil,
		func(part []byte, _ store.Capture) (bool, error) {
			parts = append(parts, part)
			return true,
				nil
		}); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := s.Archive.Captures(0, k, parts[2], func(_ []byte, c store.Capture) (bool, error) {
		n++
		return c.Revisit != "",
			nil
	}); err != nil || n != 4 {
		t.Errorf("%d after the third: %v", n, err)
	}
}

// Without bodies, a version is its record. It is stored when the next version replaces it.
func TestVersionsWithoutBodies(t *testing.T) {
	s, k := newStore(t), key("a.example", 1)
	admit(t, s, k)
	for i, text := range []string{"one", "one", "two", "three"} {
		commit(t, s, done(k, text, minute(i)))
	}
	commit(t, s, captured(done(k, "three", minute(4)), "three")) // from now on with bodies
	commit(t, s, captured(done(k, "four", minute(5)), "four"))
	want := []string{"1 200 one  record one", "2 200 two  record two", "4 200 three three", "5 200 four four",
		"1 200 one identical"}
	if d := cmp.Diff(want, visits(t, s, k)); d != "" {
		t.Error(d)
	}
	audit(t, s)
}

func TestVersionsAreCapped(t *testing.T) {
	s, k := newStore(t), key("a.example", 1)
	admit(t, s, k)
	n := 0
	for v := range store.MaxVersions + 3 {
		for range 3 {
			text := fmt.Sprint("text ", v)
			commit(t, s, captured(done(k, text, minute(n)), text))
			n++
		}
	}
	got := visits(t, s, k)
	if len(got) != store.MaxVersions+store.MaxRevisits || !strings.HasPrefix(got[0], "9 200 text 3 ") ||
		!strings.HasPrefix(got[len(got)-1], fmt.Sprint(n-1, " ")) {
		t.Errorf("%d: %q", len(got), got)
	}
	audit(t, s)
	if n := rowsOf(t, s, format.TabBody, s.SliceOf(k)); n != store.MaxVersions {
		t.Errorf("%d bodies", n)
	}
	// If the clock is set back, the newest capture is still the newest.
	commit(t, s, captured(done(k, "of the past", minute(-100)), "of the past"))
	if got := visits(t, s, k); !strings.Contains(got[store.MaxVersions-1], "of the past") {
		t.Errorf("%q", got)
	}
	audit(t, s)
}

// A body that several Keys of a slice have is stored once, until none of them has it. Other slices
// have their own copy.
func TestDuplicatesAreKeptOnce(t *testing.T) {
	s := newStore(t)
	a, b, far := key("a.example", 1), key("a.example", 2), key("far.example", 1)
	admit(t, s, a, b, far)
	for _, k := range []partition.Key{a, b, far} {
		commit(t, s, captured(done(k, "same", minute(0)), "same"))
	}
	sl := s.SliceOf(a)
	if n, m := rowsOf(t, s, format.TabBody, sl), rowsOf(t, s, format.TabBody, s.SliceOf(far)); n != 1 || m != 1 {
		t.Fatalf("%d and %d bodies", n, m)
	}
	hide := func(k partition.Key) store.Commit {
		c := captured(done(k, "hidden", minute(1)), "hidden")
		c.Record.NoArchive = true
		return c
	}
	commit(t, s, hide(a))
	if got := visits(t, s, b); len(got) != 1 || got[0] != "0 200 same same" || len(visits(t, s, a)) != 0 {
		t.Errorf("%q", got)
	}
	audit(t, s)
	noIndex := hide(b)
	noIndex.Record.NoArchive, noIndex.Record.NoIndex = false, true
	commit(t, s, noIndex)
	if n := rowsOf(t, s, format.TabBody, sl) + rowsOf(t, s, format.TabCapture, sl) + rowsOf(t, s, format.TabUse,
		sl); n != 0 {
		t.Errorf("%d rows of what is not to be kept", n)
	}
	commit(t, s, captured(done(a, "open again", minute(2)), "open again"))
	if got := visits(t, s, a); len(got) != 1 || got[0] != "2 200 open again open again" {
		t.Errorf("%q", got)
	}
	audit(t, s)
}

func TestWhatIsTooLargeOfACaptureIsCut(t *testing.T) {
	s, k := newStore(t), key("a.example", 1)
	admit(t, s, k)
	c := captured(done(k, "x", minute(0)), strings.Repeat("x", store.MaxBodyBytes+1))
	c.Capture.Response = append(c.Capture.Response, bytes.Repeat([]byte("X-Field: 0123456789\r\n"), 2000)...)
	commit(t, s, c)
	err := s.Archive.Captures(0, k, nil, func(_ []byte, c store.Capture) (bool, error) {
		if !c.Cut || len(c.Body) != store.MaxBodyBytes || len(c.Response) > store.MaxHeadBytes ||
			len(c.Response) < store.MaxHeadBytes-100 || !bytes.HasSuffix(c.Response, []byte("789\r\n")) {
			t.Errorf("cut %t, %d bytes, head of %d", c.Cut, len(c.Body), len(c.Response))
		}
		return true, nil
	})
	if err != nil || len(c.Capture.Body) != store.MaxBodyBytes+1 {
		t.Errorf("%d: %v", len(c.Capture.Body), err)
	}
}

// The bodies and versions of a slice are handed over with it, and none of them stays behind.
func TestHandoverKeepsVersions(t *testing.T) {
	s, f := newStore(t), newStore(t)
	a, b := key("a.example", 1), key("a.example", 2)
	admit(t, s, a, b)
	for i, text := range []string{"one", "two", "two", "three"} {
		commit(t, s, captured(done(a, text, minute(i)), text))
		commit(t, s, captured(done(b, text, minute(i)), text))
	}
	sl := s.SliceOf(a)
	rows := sliceRows(t, s, sl, 100)
	for range 2 { // again changes nothing
		slices.Reverse(rows)
		if err := f.Log.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []partition.Key{a, b} {
		if d := cmp.Diff(visits(t, s, k), visits(t, f, k)); d != "" {
			t.Error(d)
		}
	}
	sameSlice(t, s, f, sl)
	audit(t, f)
	if n := rowsOf(t, f, format.TabBody, sl); n != 3 {
		t.Errorf("%d bodies", n)
	}
	if err := s.Log.DropSlice(sl); err != nil {
		t.Fatal(err)
	}
	for _, tab := range []format.Table{format.TabBody, format.TabUse, format.TabCapture} {
		if n := rowsOf(t, s, tab, sl); n != 0 {
			t.Errorf("%d rows of %q left", n, tab)
		}
	}
}

// Captures that the owner drops are dropped by the followers of its log, also by one that was away
// meanwhile.
func TestLogOfCaptures(t *testing.T) {
	s, near, far := newStore(t), newStore(t), newStore(t)
	a, b := key("a.example", 1), key("a.example", 2)
	sl := s.SliceOf(a)
	s.Log.SetLogged(true, sl)
	admit(t, s, a, b)
	for i := range store.MaxVersions + 4 {
		text := fmt.Sprint("text ", i)
		commit(t, s, captured(done(a, text, minute(i)), text))
		commit(t, s, captured(done(b, text, minute(i)), text))
		follow(t, s, near, sl)
	}
	c := done(a, "hidden", minute(20))
	c.Record.NoArchive = true
	commit(t, s, c)
	for _, f := range []*Store{near, far} {
		follow(t, s, f, sl)
		sameSlice(t, s, f, sl)
		audit(t, f)
		if d := cmp.Diff(visits(t, s, b), visits(t, f, b)); d != "" || len(visits(t, f, a)) != 0 ||
			len(visits(t, f, b)) != store.MaxVersions {
			t.Errorf("%d of a\n%s", len(visits(t, f, a)), d)
		}
	}
}

// A page asks not to be archived while its slice is copied. The log then deletes the captures in
// the copied rows.
func TestCopyForgetsCaptures(t *testing.T) {
	s, f := newStore(t), newStore(t)
	k := key("a.example", 1)
	sl := s.SliceOf(k)
	admit(t, s, k)
	commit(t, s, captured(done(k, "one", minute(0)), "one"))
	s.Log.SetLogged(true, sl)
	head, pages := s.Log.LogHead(sl), sliceRows(t, s, sl, 1<<20)
	c := captured(done(k, "hidden", minute(1)), "hidden")
	c.Record.NoArchive = true
	commit(t, s, c)
	log, err := s.Log.ReadLog(sl, head, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][]store.Row{pages, log.Rows, log.Rows} {
		if err := f.Log.ImportRows(sl, slices.DeleteFunc(rows, store.Row.Sent)); err != nil {
			t.Fatal(err)
		}
	}
	if got := visits(t, f, k); len(got) != 0 {
		t.Errorf("%q", got)
	}
	sameSlice(t, s, f, sl)
	audit(t, f)
}

func TestHostileCaptures(t *testing.T) {
	s, k := newStore(t), key("a.example", 1)
	admit(t, s, k)
	commit(t, s, captured(done(k, "one", minute(0)), "one"))
	sl, id := s.SliceOf(k), s.engine.IDOf(k)
	var good store.Row
	for _, r := range sliceRows(t, s, sl, 1<<20) {
		if r.Key[0] == format.NameCapture {
			good = r
		}
	}
	row, body, err := format.CutCapture(good.Value)
	if err != nil {
		t.Fatal(err)
	}
	made := func(row, body []byte) []byte {
		var e format.Encoder
		e.Byte(format.RowVersion)
		e.Text(string(row))
		e.Text(string(body))
		return e.B
	}
	named := func(class byte, at int64, k partition.Key) []byte {
		return append([]byte{format.NameCapture}, format.CaptureID{SiteID: id, Key: k, Class: class,
			At: at}.Row()[9:]...)
	}
	now := minute(0).UnixMicro()
	for name, r := range map[string]store.Row{
		"of another class":    {Key: named(format.ClassRevisit, now, k), Value: good.Value},
		"of an unknown class": {Key: named(9, now, k), Value: good.Value},
		"no time":             {Key: good.Key[:len(good.Key)-1], Value: good.Value},
		"another site's":      {Key: named(format.ClassVersion, now, key("b.example", 1)), Value: good.Value},
		"a body not its own":  {Key: good.Key, Value: made(row, s.engine.Packer.Pack([]byte("two")))},
		"a body that is too long": {Key: good.Key, Value: made(row, s.engine.Packer.Pack(make([]byte,
			store.MaxBodyBytes+1)))},
		"a row that is too long": {Key: good.Key, Value: made(s.engine.Packer.Pack(make([]byte,
			format.MaxCaptureRow+1)), body)},
		"half a value": {Key: good.Key, Value: good.Value[:len(good.Value)-1]},
		"no capture":   {Key: good.Key, Value: made(s.engine.Packer.Pack([]byte("\x01nonsense")), nil)},
	} {
		f := newStore(t)
		if err := f.Log.ImportRows(sl, []store.Row{r}); !errors.Is(err, store.ErrRow) {
			t.Errorf("%s: %v", name, err)
		}
		if n := rowsOf(t, f, format.TabCapture, sl); n != 0 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
	if err := newStore(t).Log.ImportRows(sl, []store.Row{good}); err != nil {
		t.Error(err)
	}
}
