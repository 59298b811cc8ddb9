package store

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
)

// A plan holds where the Key stands as it was read, for every replica; whoever was
// fetched since keeps what that said.
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
	read := func(k partition.Key) Due {
		d, err := s.DueOf(k)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	was := []Due{read(a), read(b)}
	c := done(b, "other", epoch().Add(time.Minute))
	c.Next.At, c.Next.History = later, []byte("since")
	commit(t, s, c)
	plans := []Plan{{was[0], sooner, []byte("hint")}, {was[0], later, []byte("twice")},
		{was[1], sooner, []byte("hint")}, {Due{Key: far}, sooner, nil}, {was[0], sooner, make([]byte, MaxHistory+1)}}
	if n, err := s.Replan(sl, plans); n != 1 || err != nil {
		t.Errorf("%d plans taken, %v", n, err)
	}
	if d := read(a); !d.At.Equal(sooner) || string(d.History) != "hint" || d.State != StateDone {
		t.Errorf("a: %+v", d)
	}
	if d := read(b); !d.At.Equal(later) || string(d.History) != "since" {
		t.Errorf("b: %+v", d)
	}
	if n, err := s.Replan(sl, plans[:1]); n != 0 || err != nil {
		t.Errorf("taken again: %d, %v", n, err)
	}
	if n, err := s.Replan(sl, make([]Plan, MaxPlans+1)); n != 0 || err == nil {
		t.Error("any number of plans is taken")
	}
	audit(t, s)
	rows, _, err := s.SliceRows(sl, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	to := create(t, vfs.NewMem())
	defer closeStore(t, to)
	for range 2 { // a replica has it, whatever came before
		if err := to.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := to.DueOf(a); err != nil || !d.At.Equal(sooner) {
		t.Errorf("a replica has %+v, %v", d, err)
	}
	s.Fence(true, sl)
	if _, err := s.Replan(sl, plans); err == nil {
		t.Error("a plan in a slice that was handed over")
	}
}

// A hint goes out with a link of another slice even if that was answered lately,
// which without one is not sent again; rows without a hint are as they were.
func TestHintsGoOut(t *testing.T) {
	s := newStore(t)
	a, far := key("a.example", 1), key("far.example", 1)
	admit(t, s, a)
	hint := Hint{HintElsewhere, epoch()}
	var rows []OutboxRow
	for i, h := range []Hint{{}, {}, hint, {Kind: HintSitemap, At: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		c := done(a, "text", epoch().Add(time.Duration(i)*time.Minute))
		c.Links = []Admission{{Key: far, Referrer: a, Hint: h}}
		commit(t, s, c)
		got, _, err := s.Outbox(0, 10, nil)
		if err != nil || len(got) > 1 {
			t.Fatal(got, err)
		}
		if err := s.Sent(got); err != nil {
			t.Fatal(err)
		}
		if rows = append(rows, got...); len(got) == 1 && len(rows) == 1 &&
			len(got[0].encode()) != len((OutboxRow{Slice: got[0].Slice, To: got[0].To,
				Admission: Admission{Key: far, Referrer: a}}).encode()) {
			t.Error("a link without a hint has another row than before")
		}
	}
	if len(rows) != 3 || rows[0].Hint.Kind != 0 || rows[1].Hint != hint || rows[2].Hint.Kind != 0 || rows[1].In != 0 {
		t.Errorf("sent: %+v", rows)
	}
	for kind, unix := range map[uint64]int64{0: 1, 4: 1, 5: 1, 1 << 40: 1, 1: 0, 2: -5, 3: 1<<36 + 1} {
		if h := ParseHint(kind, unix); h != (Hint{}) {
			t.Errorf("%d at %d is %+v", kind, unix, h)
		}
	}
}
