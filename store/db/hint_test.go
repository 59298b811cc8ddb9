package db

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// A plan is written, at every replica, if the Key is as it was read. A Key that was fetched since
// keeps its state.
func TestReplan(t *testing.T) {
	s := newStore(t)
	a, b, far := key("a.example", 1), key("a.example", 2), key("far.example", 1)
	sl := s.SliceOf(a)
	later, sooner := epoch().Add(24*time.Hour), epoch().Add(time.Hour)
	admit(t, s, a, b)
	for _, k := range []partition.Key{a, b} {
		c := done(k, "text", epoch())
		c.Next.At, c.Next.History = later, []byte("before")
		commit(t, s, c)
	}
	read := func(k partition.Key) store.Due {
		d, err := s.Queue.DueOf(k)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	was := []store.Due{read(a), read(b)}
	c := done(b, "other", epoch().Add(time.Minute))
	c.Next.At, c.Next.History = later, []byte("since")
	commit(t, s, c)
	plans := []store.Plan{{Was: was[0], At: sooner, History: []byte("hint")}, {Was: was[0], At: later,
		History: []byte("twice")},
		{Was: was[1], At: sooner, History: []byte("hint")}, {Was: store.Due{Key: far}, At: sooner, History: nil},
		{Was: was[0], At: sooner, History: make([]byte, store.MaxHistory+1)}}
	if n, err := s.Queue.Replan(sl, plans); n != 1 || err != nil {
		t.Errorf("%d plans taken, %v", n, err)
	}
	if d := read(a); !d.At.Equal(sooner) || string(d.History) != "hint" || d.State != store.StateDone {
		t.Errorf("a: %+v", d)
	}
	if d := read(b); !d.At.Equal(later) || string(d.History) != "since" {
		t.Errorf("b: %+v", d)
	}
	if n, err := s.Queue.Replan(sl, plans[:1]); n != 0 || err != nil {
		t.Errorf("taken again: %d, %v", n, err)
	}
	if n, err := s.Queue.Replan(sl, make([]store.Plan, store.MaxPlans+1)); n != 0 || err == nil {
		t.Error("any number of plans is taken")
	}
	audit(t, s)
	rows, _, err := s.Log.SliceRows(sl, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	to := create(t, vfs.NewMem())
	defer closeStore(t, to)
	for range 2 { // a replica gets it, whatever came before
		if err := to.Log.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := to.Queue.DueOf(a); err != nil || !d.At.Equal(sooner) {
		t.Errorf("a replica has %+v, %v", d, err)
	}
	s.Log.Fence(true, sl)
	if _, err := s.Queue.Replan(sl, plans); err == nil {
		t.Error("a plan in a slice that was handed over")
	}
}

// A link to another slice with a hint is sent even if its answer came recently. Without a hint,
// such a link is not sent again. Rows without a hint are encoded as before.
func TestHintsGoOut(t *testing.T) {
	s := newStore(t)
	a, far := key("a.example", 1), key("far.example", 1)
	admit(t, s, a)
	hint := store.Hint{Kind: store.HintElsewhere, At: epoch()}
	var rows []store.OutboxRow
	for i, h := range []store.Hint{{}, {}, hint, {Kind: store.HintSitemap, At: time.Date(9000, 1, 1, 0, 0, 0, 0,
		time.UTC)}} {
		c := done(a, "text", epoch().Add(time.Duration(i)*time.Minute))
		c.Links = []store.Admission{{Key: far, Referrer: a, Hint: h}}
		commit(t, s, c)
		got, _, err := s.Queue.Outbox(0, 10, nil)
		if err != nil || len(got) > 1 {
			t.Fatal(got, err)
		}
		if err := s.Queue.Sent(got); err != nil {
			t.Fatal(err)
		}
		if rows = append(rows, got...); len(got) == 1 && len(rows) == 1 &&
			len(format.EncodeOutboxRow(got[0])) != len(format.EncodeOutboxRow(store.OutboxRow{Slice: got[0].Slice,
				To:        got[0].To,
				Admission: store.Admission{Key: far, Referrer: a}})) {
			t.Error("a link without a hint has another row than before")
		}
	}
	if len(rows) != 3 || rows[0].Hint.Kind != 0 || rows[1].Hint != hint || rows[2].Hint.Kind != 0 || rows[1].In != 0 {
		t.Errorf("sent: %+v", rows)
	}
	for kind, unix := range map[uint64]int64{0: 1, 4: 1, 5: 1, 1 << 40: 1, 1: 0, 2: -5, 3: 1<<36 + 1} {
		if h := store.ParseHint(kind, unix); h != (store.Hint{}) {
			t.Errorf("%d at %d is %+v", kind, unix, h)
		}
	}
}
