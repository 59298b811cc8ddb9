package db

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

func TestAdmitRefusesWhatIsNoRow(t *testing.T) {
	s := newStore(t)
	good := key("a.example", 1)
	items := []store.Admission{{}, {Key: good, Depth: -1}, {Key: good, Priority: 256},
		{Key: "web:https://a.example/\x00"},
		{Key: partition.Key("web:https://a.example/" + strings.Repeat("x", store.MaxKeyBytes))},
		{Key: good, Referrer: partition.Key(strings.Repeat("x", store.MaxKeyBytes+1))}, {Key: good, Priority: 255}}
	ans, err := s.Queue.Admit(items, epoch())
	if err != nil {
		t.Fatal(err)
	}
	if want := []store.Answer{store.Refused, store.Refused, store.Refused, store.Refused, store.Refused,
		store.Refused, store.Admitted}; !slices.Equal(ans, want) {
		t.Errorf("%v", ans)
	}
}

func TestCommitReportsAllFaults(t *testing.T) {
	s := newStore(t)
	a := key("a.example", 1)
	admit(t, s, a)
	err := s.Commit(store.Commit{Key: a, Record: &store.Record{Key: "web:https://b.example/"},
		Next: store.Next{State: 9, Attempts: -1},
		Site: &store.Site{Site: "web:b.example"}})
	for _, want := range []string{"state 9", "attempts -1", "no time", "record is of", "record version",
		"the site state belongs to"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if d, err := s.Queue.DueOf(a); err != nil || d.State != store.StatePending {
		t.Errorf("%+v %v", d, err)
	}
}

func TestLargeRecordComesBack(t *testing.T) {
	s := newStore(t)
	a := key("a.example", 1)
	admit(t, s, a)
	for _, text := range []string{strings.Repeat("x", 2<<20), strings.Repeat("Lisboa ", 1<<18)} {
		r := record(a, text, epoch())
		r.Digest = "sha256:x"
		commit(t, s, store.Commit{Key: a, Now: epoch(), Record: r, Next: store.Next{State: store.StateDone}})
		if got, err := s.Archive.Record(a); err != nil || got.Text != text {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
	}
}

// TestOutboxHoldsALinkOnce: one slice's outbox has a link once. It gets no new row after the final
// answer, while this is remembered.
func TestOutboxHoldsALinkOnce(t *testing.T) {
	mem := vfs.NewMem()
	s := create(t, mem)
	a, b, c, far := key("a.example", 1), key("a.example", 2), key("c.example", 1), key("far.example", 1)
	admit(t, s, a, b, c)
	for _, k := range []partition.Key{a, b, c} {
		commit(t, s, done(k, "t", epoch(), far))
	}
	rows, _, err := s.Queue.Outbox(0, 10, nil)
	if err != nil || len(rows) != 2 || rows[0].Slice == rows[1].Slice || rows[0].To != s.SliceOf(far) ||
		rows[0].Referrer != a {
		t.Fatalf("want one row of each slice: %v %v", rows, err)
	}
	if err := s.Queue.Sent(rows); err != nil {
		t.Fatal(err)
	}
	commit(t, s, done(a, "t", epoch(), far))
	if n := s.Stats().Outbox; n != 0 {
		t.Errorf("an answered link is queued again: %d", n)
	}
	closeStore(t, s)
	s = reopen(t, mem)
	defer closeStore(t, s)
	commit(t, s, done(a, "t", epoch(), far))
	if n := s.Stats().Outbox; n != 1 {
		t.Errorf("after a restart: %d rows", n)
	}
	if err := s.Queue.Sent(rows); err != nil { // an answer from before the restart, to another row
		t.Fatal(err)
	}
	if n := s.Stats().Outbox; n != 1 {
		t.Errorf("an old answer deleted a new row: %d rows", n)
	}
	audit(t, s)
}

func TestDueOrder(t *testing.T) {
	s := newStore(t)
	h := epoch()
	for n, a := range []struct {
		at       time.Time
		priority int
	}{{h, 9}, {h.Add(50 * time.Minute), 1}, {h.Add(time.Hour), 0}, {h.Add(-time.Hour), 200}, {h.Add(time.Minute), 9}} {
		if _, err := s.Queue.Admit([]store.Admission{{Key: key("a.example", n), Priority: a.priority}},
			a.at); err != nil {
			t.Fatal(err)
		}
	}
	k := key("a.example", 0)
	rows := pendingOf(t, s, s.engine.IDOf(k))
	var got []string
	for _, r := range rows {
		got = append(got, strings.TrimPrefix(string(r.Key), "web:https://a.example/"))
	}
	if strings.Join(got, " ") != "3 1 0 4 2" {
		t.Errorf("order %v", got)
	}
	bl, err := s.Queue.Backlogs(s.SliceOf(k))
	if err != nil || len(bl) != 1 || bl[0].Pending != 5 || !bl[0].Earliest.Equal(h.Add(-time.Hour)) {
		t.Errorf("%+v %v", bl, err)
	}
	if _, _, err := s.Queue.PendingOf(s.SliceOf(k), k.Site(), []byte("x"), 5); err == nil {
		t.Error("a position of another store")
	}
}

// TestEarliestIsNeverLate, however many rows are in the same hour.
func TestEarliestIsNeverLate(t *testing.T) {
	s := newStore(t)
	for n := range 200 {
		at := epoch().Add(time.Duration(n*7%60) * time.Minute)
		if _, err := s.Queue.Admit([]store.Admission{{Key: key("a.example", n), Priority: 255 - n}}, at); err != nil {
			t.Fatal(err)
		}
	}
	bl, err := s.Queue.Backlogs(s.SliceOf(key("a.example", 0)))
	if err != nil || len(bl) != 1 || bl[0].Earliest.After(epoch()) ||
		bl[0].Earliest.Before(epoch().Add(-format.Bucket)) {
		t.Errorf("%+v %v", bl, err)
	}
}

func TestRecordsResume(t *testing.T) {
	s := newStore(t)
	for n := range 20 {
		k := key(fmt.Sprintf("h%d.example", n%5), n)
		admit(t, s, k)
		commit(t, s, done(k, "t", epoch()))
	}
	var all, parts []partition.Key
	stop := errors.New("stop")
	if err := s.Archive.Records("", func(r store.Record) (bool, error) {
		all = append(all, r.Key)
		return true,
			nil
	}); err != nil {
		t.Fatal(err)
	}
	for last := partition.Key(""); ; {
		n := len(parts)
		if err := s.Archive.Records(last, func(r store.Record) (bool, error) {
			parts = append(parts, r.Key)
			return len(parts)%3 != 0,
				nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(parts) == n {
			break
		}
		last = parts[len(parts)-1]
	}
	if len(all) != 20 || !slices.Equal(all, parts) {
		t.Errorf("%v\n%v", all, parts)
	}
	if err := s.Archive.Records("", func(store.Record) (bool, error) { return false, stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestChangesTrim(t *testing.T) {
	mem := vfs.NewMem()
	s := create(t, mem)
	a := key("a.example", 1)
	admit(t, s, a)
	news := s.Changed()
	commit(t, s, done(a, "t", epoch()))
	<-news
	cs, err := s.Changes(0, 10)
	if err != nil || len(cs) != 1 || cs[0].Seq > s.LastSeq() {
		t.Fatal(cs, err)
	}
	admit(t, s, key("b.example", 1)) // takes a number, but is no change
	if s.LastChange() != cs[0].Seq || s.LastChange() >= s.LastSeq() {
		t.Errorf("last change %d, last number %d, want %d", s.LastChange(), s.LastSeq(), cs[0].Seq)
	}
	closeStore(t, s)
	if s = reopen(t, mem); s.LastChange() != cs[0].Seq {
		t.Errorf("last change %d after a restart, want %d", s.LastChange(), cs[0].Seq)
	}
	if err := s.TrimChanges(cs[0].Seq); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Changes(0, 10); !errors.Is(err, store.ErrTrimmed) {
		t.Error(err)
	}
	if got, err := s.Changes(cs[0].Seq, 10); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	last := s.LastSeq()
	closeStore(t, s)
	s = reopen(t, mem)
	defer closeStore(t, s)
	commit(t, s, done(a, "t", epoch()))
	got, err := s.Changes(last, 10)
	if err != nil || len(got) != 1 || got[0].Seq <= last {
		t.Errorf("a number was used twice: %v after %d, %v", got, last, err)
	}
}

func TestSiteKeepsRobotsApart(t *testing.T) {
	s := newStore(t)
	a := key("a.example", 1)
	st := store.Site{Site: a.Site(), Slice: s.SliceOf(a), Robots: map[string]store.Robots{
		"https://a.example": {Body: []byte("one"), Status: 200, Fetched: epoch()}, "http://a.example": {Status: 404}}}
	put := func() {
		t.Helper()
		if err := s.Queue.PutSite(st); err != nil {
			t.Fatal(err)
		}
		got, err := s.Queue.Site(a.Site())
		if err != nil || len(got.Robots) != len(st.Robots) ||
			string(got.Robots["https://a.example"].Body) != string(st.Robots["https://a.example"].Body) {
			t.Fatalf("%+v %v", got, err)
		}
	}
	put()
	st.Robots["https://a.example"] = store.Robots{Body: []byte("two"), Status: 200, Fetched: epoch()}
	put()
	delete(st.Robots, "http://a.example")
	put()
	if _, err := s.engine.Get(format.RobotsKey(s.engine.IDOf(a), "http://a.example")); !errors.Is(err,
		store.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	st.Robots["https://a.example"] = store.Robots{Body: make([]byte, store.MaxRobotsBytes+1)}
	if err := s.Queue.PutSite(st); err == nil {
		t.Error("a robots.txt over the cap")
	}
	if _, err := s.Queue.Site("web:none.example"); !errors.Is(err, store.ErrNotExist) {
		t.Error(err)
	}
}

func TestMeta(t *testing.T) {
	s := newStore(t)
	if _, err := s.Meta("x"); !errors.Is(err, store.ErrNotExist) {
		t.Error(err)
	}
	for _, name := range []string{"", strings.Repeat("x", maxMetaName+1)} {
		if err := s.SetMeta(name, nil); err == nil {
			t.Errorf("name %q", name)
		}
	}
	if err := s.SetMeta("x", make([]byte, maxMetaValue+1)); err == nil {
		t.Error("a large value")
	}
}

// TestTooLargeARecordIsCut: whatever a record contains, it fits a message between peers, and so
// does each row of its slice.
func TestTooLargeARecordIsCut(t *testing.T) {
	s := newStore(t)
	noise := make([]byte, store.MaxRecordBytes) // does not compress, and each byte of it is escaped
	for i := range noise {
		noise[i] = byte(rand.IntN(31)) + 1
	}
	for i, spoil := range []func(*store.Record){
		func(r *store.Record) { r.Text = string(noise) },
		func(r *store.Record) { r.Text, r.Title, r.Author = "short", string(noise), string(noise) },
		func(r *store.Record) { r.Raw, _ = json.Marshal(noise) },
		func(r *store.Record) {
			for n := range 20_000 {
				r.Links = append(r.Links, store.Link{Key: key("b.example", n),
					Anchor: string(noise[n*100 : n*100+100])})
			}
		},
	} {
		k := key("a.example", i)
		admit(t, s, k)
		c := done(k, "text", epoch())
		c.Record.Digest = "sha256:x"
		spoil(c.Record)
		commit(t, s, c)
		got, err := s.Archive.Record(k)
		if err != nil {
			t.Fatal(err)
		}
		b, err := store.PlainJSON(got)
		if err != nil || len(b) > store.MaxRecordBytes || !got.Cut {
			t.Errorf("%d: %d bytes, cut %t: %v", i, len(b), got.Cut, err)
		}
		if i == 3 && (got.Text != "text" || len(got.Links) == 0) {
			t.Errorf("text %q, %d links", got.Text, len(got.Links))
		}
	}
	robots := map[string]store.Robots{}
	for i := range store.MaxOrigins {
		robots[fmt.Sprintf("https://a.example:%d", i)] = store.Robots{Body: noise[:store.MaxRobotsBytes], Status: 200,
			Fetched: epoch().Add(time.Duration(i) * time.Hour)}
	}
	if err := s.Queue.PutSite(store.Site{Site: key("a.example", 0).Site(), Robots: robots}); err != nil {
		t.Fatal(err)
	}
	st, err := s.Queue.Site(key("a.example", 0).Site())
	if err != nil || len(st.Robots) == 0 || len(st.Robots) == store.MaxOrigins ||
		len(st.Robots[fmt.Sprintf("https://a.example:%d", store.MaxOrigins-1)].Body) == 0 {
		t.Errorf("%d robots: %v", len(st.Robots), err)
	}
	sl := s.SliceOf(key("a.example", 0))
	for from := []byte(nil); ; {
		rows, next, err := s.Log.SliceRows(sl, from, 1)
		if err != nil || len(rows) != 1 || len(rows[0].Key)+len(rows[0].Value) > store.MaxLogChunkBytes {
			t.Fatalf("%d rows: %v", len(rows), err)
		}
		if from = next; next == nil {
			break
		}
	}
}

// TestRecordOfAnEarlierVersion: it may be larger, and is cut when it is read or sent.
func TestRecordOfAnEarlierVersion(t *testing.T) {
	s := newStore(t)
	k := key("a.example", 1)
	admit(t, s, k)
	commit(t, s, done(k, "text", epoch()))
	r := record(k, strings.Repeat("long ", 1<<20), epoch())
	r.Digest = "sha256:x"
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.engine.DB.Set(format.KeyRow(format.TabRecord, s.engine.IDOf(k), k), s.engine.Packer.Pack(b),
		nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Archive.Record(k); err != nil || !got.Cut || !strings.HasPrefix(got.Text, "long long ") {
		t.Errorf("cut %t: %v", got.Cut, err)
	}
	rows, _, err := s.Log.SliceRows(s.SliceOf(k), nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Key[0] == format.NameRecord && format.ExpandsTo(row.Value, format.NameRecord) > store.MaxRecordBytes {
			t.Errorf("a row that expands to %d bytes", format.ExpandsTo(row.Value, format.NameRecord))
		}
	}
}
