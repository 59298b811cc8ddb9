package db

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

func newRNG() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// slice returns the slice of a.example, in which filled writes rows.
func slice(t testing.TB) partition.Slice {
	t.Helper()
	return testOptions(nil).Charter.Slice(key("a.example", 0))
}

func filled(t testing.TB) *Store {
	t.Helper()
	s := newStore(t)
	a, b, c := key("a.example", 1), key("a.example", 2), key("www.a.example", 3)
	admit(t, s, a, b, c, key("other.example", 1))
	cm := done(a, "one", epoch(), key("far.example", 1), key("a.example", 4))
	cm.Site = &store.Site{Site: a.Site(), NextAllowed: epoch().Add(time.Minute), Robots: map[string]store.Robots{
		"https://a.example": {Body: bytes.Repeat([]byte("Disallow: /x\n"), 100), Status: 200, Fetched: epoch()}}}
	commit(t, s, withSocial(captured(cm, "one"), "one"))
	commit(t, s, captured(done(c, "three", epoch().Add(time.Hour), key("far.example", 2)), "one"))
	commit(t, s, store.Commit{Key: b, Now: epoch(), Next: store.Next{State: store.StateRefused, Reason: "robots"}})
	return s
}

func sliceRows(t tb, s *Store, sl partition.Slice, max int) (all []store.Row) {
	t.Helper()
	for from := []byte(nil); ; {
		rows, next, err := s.Log.SliceRows(sl, from, max)
		if err != nil {
			t.Fatalf("%v", err)
		}
		all = append(all, rows...)
		if from = next; next == nil {
			return all
		}
	}
}

func TestHandOver(t *testing.T) {
	from, to, sl := filled(t), newStore(t), slice(t)
	for _, r := range sliceRows(t, from, sl, 1) { // one row at a time
		if err := to.Log.ImportRows(sl, []store.Row{r}); err != nil {
			t.Fatal(err)
		}
	}
	want, got := dumpOf(t, from), dumpOf(t, to)
	delete(want.Keys, key("other.example", 1))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	st, err := to.Queue.Site("web:a.example")
	if err != nil || len(st.Robots["https://a.example"].Body) != 1300 {
		t.Errorf("%+v %v", st, err)
	}
	if err := from.Log.DropSlice(sl); err != nil {
		t.Fatal(err)
	}
	left := dumpOf(t, from)
	if len(left.Keys) != 1 || len(left.Records) != 0 || len(left.Outbox) != 0 || len(left.NextSite) != 0 {
		t.Errorf("left behind: %+v", left)
	}
	if left.Changes[key("a.example", 1)] != 2 {
		t.Errorf("the index is not told: %v", left.Changes)
	}
	if _, err := from.Queue.Site("web:a.example"); !errors.Is(err, store.ErrNotExist) {
		t.Error(err)
	}
	if err := from.Commit(done(key("a.example", 1), "late", epoch())); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a commit after the hand-over: %v", err)
	}
}

// A site gets a request while its slice is copied. The log after the copied rows has its pace
// without the robots.txt, which came with those rows.
func TestCopyOfASiteThatIsAsked(t *testing.T) {
	from, to, sl := filled(t), newStore(t), slice(t)
	from.Log.SetLogged(true, sl)
	head := from.Log.LogHead(sl)
	pages := sliceRows(t, from, sl, 1<<20)
	st, err := from.Queue.Site(key("a.example", 1).Site())
	if err != nil {
		t.Fatal(err)
	}
	st.NextAllowed = st.NextAllowed.Add(time.Hour)
	if err := from.Queue.PutSite(st); err != nil {
		t.Fatal(err)
	}
	log, err := from.Log.ReadLog(sl, head, 1<<20)
	if err != nil || len(log.Rows) != 1 || log.Rows[0].Key[0] != format.NamePace {
		t.Fatalf("%+v, %v", log, err)
	}
	// no import moves the later time back
	for _, rows := range [][]store.Row{pages, log.Rows, pages, append(log.Rows, pages...)} {
		if err := to.Log.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
	}
	got, err := to.Queue.Site(st.Site)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(st, got); d != "" {
		t.Errorf("the site is otherwise than at its owner:\n%s", d)
	}
}

// TestI6ImportsConverge: two peers that both worked on a slice end equal, whatever the order, size
// and number of the imports.
func TestI6ImportsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sl := testOptions(nil).Charter.Slice(key("a.example", 0))
		var given [2][]store.Row
		for i := range given {
			s := create(t, vfs.NewMem())
			for n := range rapid.IntRange(1, 8).Draw(t, "calls") {
				k, now := key("a.example", rapid.IntRange(0, 3).Draw(t, "key")),
					epoch().Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "hour"))*time.Hour)
				admit(t, s, k)
				c := store.Commit{Key: k, Now: now, Next: store.Next{State: store.State(rapid.IntRange(1, 4).Draw(t,
					"state"))}}
				if rapid.Bool().Draw(t, "record") {
					c.Record = record(k, rapid.StringN(0, 3, 9).Draw(t, "text"), now)
				}
				drawCapture(t, &c)
				drawSocial(t, &c)
				c.Links = []store.Admission{{Key: key("far.example", rapid.IntRange(0, 2).Draw(t, "link"))}}
				c.Site = &store.Site{Site: k.Site(), NextAllowed: now, Fetched: int64(n),
					Robots: map[string]store.Robots{"https://a.example": {Body: []byte{byte(n)}, Fetched: now}}}
				commit(t, s, c)
			}
			given[i] = sliceRows(t, s, sl, 1<<20)
			closeStore(t, s)
		}
		var got [2]dump
		var paces [2]store.Site
		for i := range got {
			s := create(t, vfs.NewMem())
			rows := rapid.Permutation(append(append([]store.Row(nil), given[0]...), given[1]...)).Draw(t, "order")
			if rapid.Bool().Draw(t, "twice") {
				rows = append(rows, rows...)
			}
			for len(rows) > 0 {
				n := rapid.IntRange(1, len(rows)).Draw(t, "rows")
				if err := s.Log.ImportRows(sl, rows[:n]); err != nil {
					t.Fatal(err)
				}
				rows = rows[n:]
			}
			got[i] = dumpOf(t, s)
			got[i].Changes = nil // the number of changes may differ
			paces[i], _ = s.Queue.Site("web:a.example")
			closeStore(t, s)
		}
		if d := cmp.Diff(got[0], got[1]); d != "" {
			t.Errorf("not converged:\n%s", d)
		}
		if !paces[0].NextAllowed.Equal(paces[1].NextAllowed) || paces[0].Fetched != paces[1].Fetched {
			t.Errorf("paces %v and %v", paces[0], paces[1])
		}
	})
}

func TestImportRefusesHostileRows(t *testing.T) {
	from, sl := filled(t), slice(t)
	good := sliceRows(t, from, sl, 1<<20)
	var state, rec, site, link store.Row
	for _, r := range good {
		switch format.Table(r.Key[0]) {
		case format.TabKey:
			state = r
		case format.TabRecord:
			rec = r
		case format.TabSite:
			site = r
		case format.TabQueued:
			link = r
		}
	}
	k := key("a.example", 9)
	home := append([]byte("K"), "web:a.example\x00"+string(k)...)
	pack := func(v any) []byte {
		b, err := from.engine.Packer.PackJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, r := range map[string]store.Row{
		"empty":                 {},
		"no table":              {Key: []byte("Z"), Value: []byte{1}},
		"internal table":        {Key: append([]byte("C"), home[1:]...), Value: format.Counts{}.Encode()},
		"meta":                  {Key: []byte("\x00format"), Value: []byte{9}},
		"no site":               {Key: []byte("K" + k), Value: state.Value},
		"not a key":             {Key: []byte("Kweb:a.example\x00hello"), Value: state.Value},
		"not canonical":         {Key: []byte("Kweb:a.example\x00web:https://A.example/9"), Value: state.Value},
		"another slice":         {Key: []byte("Kweb:far.example\x00web:https://far.example/"), Value: state.Value},
		"another site":          {Key: []byte("Kweb:b.example\x00" + k), Value: state.Value},
		"cut short":             {Key: home, Value: state.Value[:len(state.Value)-1]},
		"too long":              {Key: home, Value: append(append([]byte(nil), state.Value...), 0)},
		"no value":              {Key: home},
		"no such state":         {Key: home, Value: format.KeyState{State: 9}.Encode()},
		"never due":             {Key: home, Value: format.KeyState{State: store.StatePending}.Encode()},
		"another version":       {Key: home, Value: append([]byte{2}, state.Value[1:]...)},
		"record of another":     {Key: append([]byte("R"), home[1:]...), Value: rec.Value},
		"record version":        {Key: append([]byte("R"), home[1:]...), Value: pack(store.Record{V: 7, Key: k})},
		"not a record":          {Key: append([]byte("R"), home[1:]...), Value: pack("x")},
		"bomb":                  {Key: append([]byte("R"), home[1:]...), Value: bomb(t, from, 64<<20)},
		"site of another slice": {Key: site.Key, Value: pack(store.Site{Site: "web:a.example", Slice: sl + 2})},
		"site of another name":  {Key: site.Key, Value: pack(store.Site{Site: "web:b.example", Slice: sl})},
		"site with a negative":  {Key: site.Key, Value: pack(store.Site{Site: "web:a.example", Slice: sl, Delay: -1})},
		"link to another slice": {Key: link.Key,
			Value: format.EncodeOutboxRow(store.OutboxRow{Slice: sl, To: sl,
				Admission: store.Admission{Key: key("far.example", 1)}})},
		"link of another slice": {Key: link.Key,
			Value: format.EncodeOutboxRow(store.OutboxRow{Slice: sl + 2, To: from.SliceOf(key("far.example", 1)),
				Admission: store.Admission{Key: key("far.example", 1)}})},
		"link of another key":    {Key: append([]byte("X"), k...), Value: link.Value},
		"link that is not a key": {Key: []byte("Xhello"), Value: link.Value},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			err := s.Log.ImportRows(sl, append(append([]store.Row(nil), good...), r))
			if !errors.Is(err, store.ErrRow) {
				t.Fatalf("err = %v", err)
			}
			if st := s.Stats(); st.Keys+st.Records+st.Outbox != 0 {
				t.Errorf("something was written: %+v", st)
			}
		})
	}
	if err := newStore(t).Log.ImportRows(sl, make([]store.Row, store.MaxImportRows+1)); !errors.Is(err, store.ErrRow) {
		t.Errorf("too many rows: %v", err)
	}
	if err := newStore(t).Log.ImportRows(sl,
		[]store.Row{{Key: []byte("R"), Value: make([]byte, store.MaxImportBytes)}}); !errors.Is(err, store.ErrRow) {
		t.Errorf("too many bytes: %v", err)
	}
}

// bomb returns a value that claims to be small and expands to n bytes.
func bomb(t testing.TB, s *Store, n int) []byte {
	t.Helper()
	v := s.engine.Packer.Pack(make([]byte, n))
	return append([]byte{format.RowVersion, format.PackZstd, 10}, v[6:]...)
}
