package db

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

func geoOptions(fs vfs.FS) store.Options {
	o := testOptions(fs)
	o.Charter.Mode, o.Charter.CellLevel, o.Charter.Gazetteer = partition.ModeGeo, 7, "digest"
	return o
}

func geoStore(t tb, fs vfs.FS) *Store {
	t.Helper()
	s, err := Create("d", geoOptions(fs))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return s
}

// cellAt returns a cell of level 7.
func cellAt(n int) partition.Slice {
	return partition.Slice(uint64(n)<<47 | 1<<46)
}

// placing is peers and the links between them, without a network. A link is delivered to the peer
// that has its slice: late, twice or again.
type placing struct {
	t      tb
	stores []*Store
	now    time.Time
	gens   map[partition.Unit]uint64
	asked  map[partition.Site]time.Time // when the site got its last request
	wait   time.Duration
}

func (p *placing) holder(sl partition.Slice) *Store {
	return p.stores[int(uint64(sl)>>46)%len(p.stores)]
}

// crawl takes one due row of a slice, as the crawler does. If the unit's Keys belong elsewhere,
// crawl moves them. Otherwise it fetches, and may find that they belong elsewhere.
func (p *placing) crawl(sl partition.Slice, to partition.Slice) (busy bool) {
	s := p.holder(sl)
	bs, err := s.Queue.Backlogs(sl)
	if err != nil {
		p.t.Fatalf("backlogs: %v", err)
	}
	for _, b := range bs {
		rows, _, err := s.Queue.PendingOf(sl, b.Site, nil, 1)
		if err != nil {
			p.t.Fatalf("pending: %v", err)
		}
		if len(rows) == 0 {
			continue
		}
		k := rows[0].Key
		pl, err := s.Queue.PlacementOf(sl, k)
		if engine.IgnoreAbsent(err) != nil {
			p.t.Fatalf("placement: %v", err)
		}
		if err == nil && pl.To != sl {
			if n, err := s.Queue.Move(sl, k, store.Pace{Next: p.asked[k.Site()].Add(p.wait), Wait: p.wait},
				p.now); err != nil ||
				n == 0 {
				p.t.Fatalf("move of %s: %d, %v", k, n, err)
			}
			return true
		}
		st, err := s.Queue.Site(b.Site)
		if engine.IgnoreAbsent(err) != nil {
			p.t.Fatalf("site: %v", err)
		}
		if st.NextAllowed.After(p.now) {
			p.now = st.NextAllowed
		}
		if last, ok := p.asked[b.Site]; ok && p.now.Sub(last) < p.wait {
			p.t.Fatalf("%s is asked again after %v", b.Site, p.now.Sub(last))
		}
		p.asked[b.Site] = p.now
		c := done(k, string(k), p.now)
		c.Slice = sl
		c.Site = &store.Site{Site: b.Site, Slice: sl, NextAllowed: p.now.Add(p.wait), Fetched: st.Fetched + 1}
		if to != 0 && to != sl {
			u := s.engine.Charter().Unit(k)
			c.Place = &store.Placement{Unit: u, To: to, Gen: pl.Gen + 1, At: p.now, Why: "because"}
			if p.gens[u] >= c.Place.Gen {
				p.t.Fatalf("unit %s is placed by %s as generation %d, it had %d", u, sl, c.Place.Gen, p.gens[u])
			}
			p.gens[u] = c.Place.Gen
		}
		if err := s.Commit(c); err != nil {
			p.t.Fatalf("commit of %s in %s: %v", k, sl, err)
		}
		return true
	}
	return false
}

// deliver delivers one outbox row to the peer that has its slice. With lost, the answer does not
// come back.
func (p *placing) deliver(s *Store, n int, lost bool) bool {
	rows, _, err := s.Queue.Outbox(0, 100, nil)
	if err != nil {
		p.t.Fatalf("outbox: %v", err)
	}
	if len(rows) == 0 {
		return false
	}
	r := rows[n%len(rows)]
	a := r.Admission
	a.In = r.To
	ans, err := p.holder(r.To).Queue.Admit([]store.Admission{a}, p.now)
	if err != nil || ans[0] == store.Refused {
		p.t.Fatalf("admit of %s in %s: %v, %v", r.Key, r.To, ans, err)
	}
	if lost {
		return true
	}
	if err := s.Queue.Sent([]store.OutboxRow{r}); err != nil {
		p.t.Fatalf("sent: %v", err)
	}
	return true
}

// Units move in any way, and their Keys are delivered late and often. Every Key is fetched exactly
// once, no site gets a request too early, and in the end nothing moves any more.
func TestPlaceMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &placing{t: t, now: epoch(), gens: map[partition.Unit]uint64{}, asked: map[partition.Site]time.Time{},
			wait: 3 * time.Second}
		for range rapid.IntRange(1, 3).Draw(t, "peers") {
			p.stores = append(p.stores, geoStore(t, vfs.NewMem()))
		}
		defer func() {
			for _, s := range p.stores {
				audit(t, s)
				closeStore(t, s)
			}
		}()
		var keys []partition.Key
		for i := range rapid.IntRange(1, 12).Draw(t, "keys") {
			keys = append(keys, key(fmt.Sprintf("h%d.example", i%3), i))
		}
		cells := []partition.Slice{0, cellAt(1), cellAt(2), cellAt(3)}
		all := append([]partition.Slice{}, cells[1:]...)
		for _, k := range keys {
			all = append(all, p.stores[0].SliceOf(k))
		}
		slices.Sort(all)
		all = slices.Compact(all)
		for _, s := range p.stores {
			s.Log.SetLogged(true, all...)
		}
		seed := func(k partition.Key) {
			s := p.holder(p.stores[0].SliceOf(k))
			if _, err := s.Queue.Admit([]store.Admission{{Key: k, Seed: true}}, p.now); err != nil {
				t.Fatalf("seed: %v", err)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			p.now = p.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				seed(rapid.SampledFrom(keys).Draw(t, "key"))
			case 1, 2:
				p.crawl(rapid.SampledFrom(all).Draw(t, "slice"), rapid.SampledFrom(cells).Draw(t, "to"))
			case 3:
				p.deliver(rapid.SampledFrom(p.stores).Draw(t, "from"), rapid.IntRange(0, 99).Draw(t, "row"),
					rapid.Bool().Draw(t, "lost"))
			}
		}
		for _, k := range keys {
			seed(k)
		}
		for round := 0; ; round++ {
			busy := false
			for _, sl := range all {
				busy = p.crawl(sl, 0) || busy
			}
			for _, s := range p.stores {
				busy = p.deliver(s, 0, false) || busy
			}
			if !busy {
				break
			}
			if round > 1000 {
				t.Fatalf("it does not come to rest")
			}
		}
		p.check(keys)
		p.follow(t, all)
	})
}

// follow replicates the logs to another replica, which then has the same rows.
func (p *placing) follow(t *rapid.T, all []partition.Slice) {
	f := geoStore(t, vfs.NewMem())
	defer closeStore(t, f)
	for _, sl := range all {
		s := p.holder(sl)
		for head := uint64(0); head < s.Log.LogHead(sl); {
			chunk, err := s.Log.ReadLog(sl, head, rapid.IntRange(1, 2000).Draw(t, "bytes"))
			if err != nil {
				t.Fatalf("read log: %v", err)
			}
			if err := f.Log.ApplyLog(p.now.AddDate(0, 6, 0), chunk); err != nil {
				t.Fatalf("apply log: %v", err)
			}
			head = chunk.To
		}
		want, err := s.Log.Digests(sl)
		got, err2 := f.Log.Digests(sl)
		if err := errors.Join(err, err2); err != nil || got != want {
			t.Fatalf("%v: the follower has something else: %v", sl, err)
		}
	}
	audit(t, f)
}

func (p *placing) check(keys []partition.Key) {
	records := map[partition.Key]int{}
	for _, s := range p.stores {
		if err := s.Archive.RecordsFrom(0, "", func(sl partition.Slice, r store.Record) (bool, error) {
			records[r.Key]++
			found, at, err := s.Archive.Find(r.Key)
			if err != nil || at != sl || found.Key != r.Key {
				p.t.Fatalf("%s is in %v and found in %v: %v", r.Key, sl, at, err)
			}
			return true, nil
		}); err != nil {
			p.t.Fatalf("records: %v", err)
		}
		if st := s.Stats(); st.Pending != 0 || st.Outbox != 0 {
			p.t.Fatalf("not at rest: %+v", st)
		}
	}
	for _, k := range keys {
		if records[k] != 1 {
			p.t.Fatalf("%s has %d records", k, records[k])
		}
	}
	if len(records) != len(keys) {
		p.t.Fatalf("%d records of %d keys", len(records), len(keys))
	}
}

// A crash at any moment of placing and moving loses no Key. After reopening, the end result is the
// same.
func TestPlaceCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := geoStore(t, fs)
	p := &placing{t: t, now: epoch(), gens: map[partition.Unit]uint64{}, asked: map[partition.Site]time.Time{},
		wait: time.Second}
	var keys []partition.Key
	for i := range 30 {
		keys = append(keys, key("h.example", i))
	}
	admit(t, s, keys...)
	home := s.SliceOf(keys[0])
	for round := 0; ; round++ {
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		q := *p
		q.asked, q.gens = maps.Clone(p.asked), maps.Clone(p.gens)
		r, err := Open("d", geoOptions(clone))
		if err != nil {
			t.Fatal(err)
		}
		// The pace may be lost with the process; the crawler then waits.
		q.stores, q.wait = []*Store{r}, 0
		for i := 0; q.crawl(home, 0) || q.crawl(cellAt(5), 0) || q.deliver(r, 0, false); i++ {
			if i > 1000 {
				t.Fatal("it does not come to rest")
			}
		}
		q.check(keys)
		audit(t, r)
		closeStore(t, r)
		p.stores = []*Store{s}
		to := partition.Slice(0)
		if round == 2 {
			to = cellAt(5)
		}
		if !p.crawl(home, to) && !p.deliver(s, 0, round%5 == 0) && !p.crawl(cellAt(5), 0) {
			break
		}
	}
	p.check(keys)
	if pl, err := s.Queue.PlacementOf(0, keys[0]); err != nil || pl.To != cellAt(5) || pl.Why != "because" {
		t.Errorf("placement %+v, %v", pl, err)
	}
	if st := s.Stats(); st.Placed == 0 || st.Keys != int64(len(keys)) {
		t.Errorf("stats %+v", st)
	}
	closeStore(t, s)
}

// A slice of either kind is handed over completely, and deleted completely.
func TestPlaceHandOver(t *testing.T) {
	a, b := geoStore(t, vfs.NewMem()), geoStore(t, vfs.NewMem())
	defer closeStore(t, a)
	defer closeStore(t, b)
	ks := []partition.Key{key("h.example", 1), key("h.example", 2), key("h.example", 3)}
	admit(t, a, ks...)
	home := a.SliceOf(ks[0])
	c := done(ks[0], "text", epoch())
	c.Place = &store.Placement{Unit: "web:h.example", To: cellAt(5), Gen: 1, At: epoch()}
	commit(t, a, c)
	if n, err := a.Queue.Move(home, ks[0], store.Pace{Next: epoch().Add(time.Minute), Wait: time.Second},
		epoch()); err != nil ||
		n != 2 {
		t.Fatal(n, err)
	}
	rows, _, err := a.Queue.Outbox(0, 10, nil)
	if err != nil || len(rows) != 2 || rows[0].To != cellAt(5) || rows[0].In != cellAt(5) || rows[0].Gen != 1 ||
		!rows[0].Pace.Next.Equal(epoch().Add(time.Minute)) {
		t.Fatalf("outbox %+v, %v", rows, err)
	}
	if _, err := a.Queue.Admit([]store.Admission{rows[0].Admission}, epoch()); err != nil {
		t.Fatal(err)
	}
	if st, err := a.Queue.Site("web:h.example"); err != nil || !st.NextAllowed.Equal(epoch().Add(time.Minute)) {
		t.Errorf("pace in the cell: %+v, %v", st, err)
	}
	geo := done(rows[0].Key, "geo text", epoch())
	geo.Slice = cellAt(5)
	commit(t, a, geo)
	for range 2 { // importing again changes nothing
		for _, sl := range []partition.Slice{cellAt(5), home} {
			rows, _, err := a.Log.SliceRows(sl, nil, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Log.ImportRows(sl, rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	audit(t, b)
	if p, err := b.Queue.PlacementOf(0, ks[1]); err != nil || p.To != cellAt(5) {
		t.Errorf("placement %+v, %v", p, err)
	}
	if p, err := b.Queue.PlacementOf(cellAt(5), ks[1]); err != nil || p.To != cellAt(5) || p.Gen != 1 {
		t.Errorf("placement at home %+v, %v", p, err)
	}
	if r, sl, err := b.Archive.Find(rows[0].Key); err != nil || r.Text != "geo text" || sl != cellAt(5) {
		t.Errorf("record %+v in %v, %v", r, sl, err)
	}
	if d, err := b.Queue.DueOf(ks[1]); err != nil || d.State != store.StatePlaced {
		t.Errorf("%+v, %v", d, err)
	}
	if err := b.Log.DropSlice(cellAt(5)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Archive.Find(rows[0].Key); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a record of a dropped cell: %v", err)
	}
	if err := b.Log.DropSlice(home); err != nil {
		t.Fatal(err)
	}
	if st := b.Stats(); st.Keys+st.Placed+st.Records+st.Outbox != 0 {
		t.Errorf("after the drop %+v", st)
	}
	if _, err := b.Queue.PlacementOf(0, ks[1]); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a placement of a dropped slice: %v", err)
	}
}

// Rows that no honest peer sends are refused, and nothing is written.
func TestPlaceHostile(t *testing.T) {
	s := geoStore(t, vfs.NewMem())
	defer closeStore(t, s)
	k := key("h.example", 1)
	admit(t, s, k)
	home, cell := s.SliceOf(k), cellAt(5)
	parent := partition.Slice(1)<<52 | 1<<51 // level 4 has bit 52: this would be level 4.5, no cell
	value := func(p store.Placement) []byte { return format.EncodePlacement(p) }
	good := store.Placement{Unit: "web:h.example", To: cell, Gen: 1, At: epoch()}
	for name, row := range map[string]store.Row{
		"no unit":        {Key: []byte("U"), Value: value(good)},
		"another's unit": {Key: []byte("Uweb:other.example"), Value: value(good)},
		"not canonical":  {Key: []byte("Uweb:H.example"), Value: value(good)},
		"an address":     {Key: []byte("Uip:192.0.2.1"), Value: value(good)},
		"no cell":        {Key: []byte("Uweb:h.example"), Value: value(store.Placement{To: parent, Gen: 1})},
		"a hash slice":   {Key: []byte("Uweb:h.example"), Value: value(store.Placement{To: home ^ 1<<60, Gen: 1})},
		"no generation":  {Key: []byte("Uweb:h.example"), Value: value(store.Placement{To: cell})},
		"cut":            {Key: []byte("Uweb:h.example"), Value: value(good)[:5]},
		"endless reasons": {Key: []byte("Uweb:h.example"),
			Value: value(store.Placement{To: cell, Gen: 1, Why: string(make([]byte, store.MaxWhy+1))})},
	} {
		if err := s.Log.ImportRows(home, []store.Row{row}); !errors.Is(err, store.ErrRow) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]store.Placement{"another unit": {Unit: "web:x.example", To: cell, Gen: 1},
		"nowhere": {Unit: good.Unit, Gen: 1}, "no cell": {Unit: good.Unit, To: parent, Gen: 1}} {
		com := done(k, "text", epoch())
		com.Place = &c
		if err := s.Commit(com); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	for _, in := range []partition.Slice{parent, 2, home ^ 1<<60} {
		if ans, err := s.Queue.Admit([]store.Admission{{Key: k, In: in}}, epoch()); err != nil ||
			ans[0] != store.Refused {
			t.Errorf("in %v: %v, %v", in, ans, err)
		}
	}
	far := store.Pace{Next: epoch().AddDate(9, 0, 0), Wait: 1 << 62, BackOff: -1, Fetched: -5}
	if _, err := s.Queue.Admit([]store.Admission{{Key: k, In: cell, Gen: 1 << 60, Pace: far}}, epoch()); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Queue.Site(k.Site()); err != nil || st.NextAllowed.After(epoch().Add(store.MaxWait)) ||
		st.Check() != nil {
		t.Errorf("pace %+v, %v", st, err)
	}
	if _, err := s.Queue.PlacementOf(cell, k); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("an endless generation is believed: %v", err)
	}
	audit(t, s)
	hash := newStore(t)
	if ans, err := hash.Queue.Admit([]store.Admission{{Key: k, In: cell}}, epoch()); err != nil ||
		ans[0] != store.Refused {
		t.Errorf("a cell in hash mode: %v, %v", ans, err)
	}
}

// A message arrives late, after its unit moved on and came back. It does not make a Key due that
// was fetched elsewhere meanwhile. The messages of the unit's return do.
func TestPlaceLate(t *testing.T) {
	s := geoStore(t, vfs.NewMem())
	defer closeStore(t, s)
	one, two, three := key("h.example", 1), key("h.example", 2), key("h.example", 3)
	a, b := cellAt(1), cellAt(2)
	in := func(k partition.Key, sl partition.Slice, gen uint64) store.Answer {
		ans, err := s.Queue.Admit([]store.Admission{{Key: k, In: sl, Gen: gen}}, epoch())
		if err != nil {
			t.Fatal(err)
		}
		return ans[0]
	}
	fetch := func(k partition.Key, sl, to partition.Slice, gen uint64) {
		c := done(k, "text", epoch())
		c.Slice = sl
		if to != 0 {
			c.Place = &store.Placement{Unit: "web:h.example", To: to, Gen: gen, At: epoch()}
		}
		commit(t, s, c)
	}
	move := func(sl partition.Slice, want int) {
		t.Helper()
		if n, err := s.Queue.Move(sl, one, store.Pace{}, epoch()); err != nil || n != want {
			t.Fatalf("moved %d, %v, want %d", n, err, want)
		}
	}
	for _, k := range []partition.Key{one, two, three} {
		in(k, a, 1)
	}
	fetch(three, a, b, 2)
	move(a, 2)
	in(one, b, 2)
	in(two, b, 2)
	if got := in(one, a, 1); got != store.Known { // while it is away
		t.Errorf("late, while its unit is away: %v", got)
	}
	fetch(one, b, a, 3)
	move(b, 1)
	if got := in(two, a, 3); got != store.Admitted {
		t.Errorf("come back: %v", got)
	}
	if got := in(one, a, 1); got != store.Known {
		t.Errorf("late, after its unit came back: %v", got)
	}
	if d, err := s.Queue.DueIn(a, one); err != nil || d.State != store.StatePlaced {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := s.Queue.DueIn(a, two); err != nil || d.State != store.StatePending {
		t.Errorf("%+v, %v", d, err)
	}
	move(a, 0)
	audit(t, s)
}

// An owner fetches a Key and is lost before any other peer knows. Its successor places the Key.
// When the two learn of each other, in any way, the record and the visit of the first are deleted:
// the Key is fetched elsewhere.
func TestRecordOfAPlacedKeyGoes(t *testing.T) {
	k, first := key("h.example", 1), key("h.example", 2)
	stores := func() (lost, next *Store, sl partition.Slice) {
		lost, next = geoStore(t, vfs.NewMem()), geoStore(t, vfs.NewMem())
		sl = lost.SliceOf(k)
		for _, s := range []*Store{lost, next} {
			s.Log.SetLogged(true, sl)
			admit(t, s, k, first)
		}
		c := done(k, "text", epoch())
		c.Capture = &store.Capture{At: epoch(), Key: k, Status: 200, Digest: c.Record.Digest, Body: []byte("body")}
		commit(t, lost, c)
		c = done(first, "text", epoch())
		c.Place = &store.Placement{Unit: "web:h.example", To: cellAt(1), Gen: 1, At: epoch()}
		commit(t, next, c)
		if n, err := next.Queue.Move(sl, k, store.Pace{}, epoch().Add(time.Minute)); err != nil || n != 1 {
			t.Fatalf("moved %d, %v", n, err)
		}
		return lost, next, sl
	}
	copied := func(from, to *Store, sl partition.Slice) error {
		rows, _, err := from.Log.SliceRows(sl, nil, 1<<20)
		return errors.Join(err, to.Log.ImportRows(sl, rows))
	}
	for name, learn := range map[string]func(lost, next *Store, sl partition.Slice) error{
		"copy to the lost": func(lost, next *Store, sl partition.Slice) error { return copied(next, lost, sl) },
		"copy of the lost": func(lost, next *Store, sl partition.Slice) error { return copied(lost, next, sl) },
		"log": func(lost, next *Store, sl partition.Slice) error {
			p, err := next.Log.ReadLog(sl, 0, 1<<20)
			return errors.Join(err, lost.Log.ResetLog(sl, 0), lost.Log.ApplyLog(epoch().AddDate(0, 6, 0), p))
		},
	} {
		lost, next, sl := stores()
		if err := learn(lost, next, sl); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		at := lost
		if name == "copy of the lost" {
			at = next
		}
		if r, err := at.Archive.Record(k); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("%s: record %v, %v", name, r, err)
		}
		visits := 0
		if err := at.Archive.Captures(sl, k, nil, func([]byte, store.Capture) (bool, error) {
			visits++
			return true,
				nil
		}); err != nil || visits > 0 {
			t.Errorf("%s: %d visits, %v", name, visits, err)
		}
		if n := at.SliceStats(sl).Records; n != 1 {
			t.Errorf("%s: %d records are counted, want that of %s", name, n, first)
		}
		audit(t, at)
		closeStore(t, lost)
		closeStore(t, next)
	}
}

// A failed visit left a record, and the Key is placed elsewhere. The log names a record that is
// gone, and its followers have none.
func TestLogOfARecordThatIsGone(t *testing.T) {
	s, replica := geoStore(t, vfs.NewMem()), geoStore(t, vfs.NewMem())
	defer closeStore(t, s)
	defer closeStore(t, replica)
	k, first := key("h.example", 1), key("h.example", 2)
	sl := s.SliceOf(k)
	s.Log.SetLogged(true, sl)
	admit(t, s, k, first)
	c := done(k, "busy", epoch())
	c.Next = store.Next{State: store.StatePending, At: epoch().Add(time.Hour), Attempts: 1}
	commit(t, s, c)
	c = done(first, "text", epoch())
	c.Place = &store.Placement{Unit: "web:h.example", To: cellAt(1), Gen: 1, At: epoch()}
	commit(t, s, c)
	if n, err := s.Queue.Move(sl, k, store.Pace{}, epoch()); err != nil || n != 1 {
		t.Fatalf("moved %d, %v", n, err)
	}
	p, err := s.Log.ReadLog(sl, 0, 1<<20)
	if err == nil {
		err = replica.Log.ApplyLog(epoch().AddDate(0, 6, 0), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, replica} {
		if r, err := s.Archive.Record(k); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("record %v, %v", r, err)
		}
		if n := s.SliceStats(sl).Records; n != 1 {
			t.Errorf("%d records are counted, want that of %s", n, first)
		}
		audit(t, s)
	}
}

// A link to a Key waits to be sent to the Key's registrar. Then the Key comes from there, and its
// unit moves on: the Key's row replaces the row of the link.
func TestMoveOfALinkUnderWay(t *testing.T) {
	s, replica := geoStore(t, vfs.NewMem()), geoStore(t, vfs.NewMem())
	defer closeStore(t, s)
	defer closeStore(t, replica)
	page, linked, last := key("h.example", 1), key("h.example", 2), key("h.example", 3)
	a, b := cellAt(1), cellAt(2)
	s.Log.SetLogged(true, a)
	follow := func() {
		p, err := s.Log.ReadLog(a, replica.Log.LogHead(a), 1<<20)
		if err == nil {
			err = replica.Log.ApplyLog(epoch().AddDate(0, 6, 0), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	admitIn := func(k partition.Key) {
		if ans, err := s.Queue.Admit([]store.Admission{{Key: k, In: a, Gen: 1}}, epoch()); err != nil ||
			ans[0] != store.Admitted {
			t.Fatal(ans, err)
		}
	}
	admitIn(page)
	admitIn(last)
	c := done(page, "text", epoch())
	c.Slice, c.Links = a, []store.Admission{{Key: linked, Referrer: page, Depth: 1}}
	commit(t, s, c)
	follow()
	admitIn(linked)
	c = done(last, "text", epoch())
	c.Slice, c.Place = a, &store.Placement{Unit: "web:h.example", To: b, Gen: 2, At: epoch()}
	commit(t, s, c)
	if n, err := s.Queue.Move(a, linked, store.Pace{}, epoch()); err != nil || n != 1 {
		t.Fatalf("moved %d, %v", n, err)
	}
	follow()
	for _, s := range []*Store{s, replica} {
		rows, _, err := s.Queue.Outbox(0, 10, nil)
		if err != nil || len(rows) != 1 || rows[0].Key != linked || rows[0].To != b {
			t.Errorf("the outbox has %+v, %v; want the key on its way to %s", rows, err, b)
		}
		audit(t, s)
	}
}

// TestChunksOfTwoSlicesOfOneKey: a Key has a row in the slice that it left and one in its current
// slice. A follower of both takes both in one batch. Of two placements, it keeps the later.
func TestChunksOfTwoSlicesOfOneKey(t *testing.T) {
	owner, f := geoStore(t, vfs.NewMem()), geoStore(t, vfs.NewMem())
	defer closeStore(t, owner)
	defer closeStore(t, f)
	k, l, cell, now := key("a.example", 1), key("a.example", 2), cellAt(3), epoch()
	home := owner.SliceOf(k)
	owner.Log.SetLogged(true, home, cell)
	admit(t, owner, k, l)
	unit := owner.engine.Charter().Unit(k)
	for gen := range 2 {
		now = now.Add(time.Hour)
		if err := owner.Queue.Learn(home, k, store.Placement{Unit: unit, To: cell, Gen: uint64(gen) + 1,
			At: now}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := owner.Queue.Move(home, k, store.Pace{}, now); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	rows, _, err := owner.Queue.Outbox(0, 10, nil)
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	ans, err := owner.Queue.Admit([]store.Admission{rows[0].Admission, rows[1].Admission}, now)
	if err != nil || ans[0] != store.Admitted || ans[1] != store.Admitted {
		t.Fatal(ans, err)
	}
	c := done(k, "there", now)
	c.Slice = cell
	commit(t, owner, c)
	var ps []store.LogChunk
	for _, sl := range []partition.Slice{home, cell} {
		for at := uint64(0); at < owner.Log.LogHead(sl); at = ps[len(ps)-1].To {
			ps = append(ps, readLog(t, owner, sl, at, 1))
		}
	}
	if err := f.Log.ApplyLog(epoch().AddDate(1, 0, 0), ps...); err != nil {
		t.Fatal(err)
	}
	for _, sl := range []partition.Slice{home, cell} {
		sameSlice(t, owner, f, sl)
		if a, b := owner.SliceStats(sl), f.SliceStats(sl); a.Keys != b.Keys || a.Placed != b.Placed ||
			a.Done != b.Done || a.Outbox != b.Outbox {
			t.Errorf("%s: %+v and %+v", sl, a, b)
		}
	}
	if p, err := f.Queue.PlacementOf(home, k); err != nil || p.Gen != 2 {
		t.Errorf("%+v %v", p, err)
	}
}
