package db

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
	"github.com/echo-node/echo-node/store/replog"
)

// owning returns a store whose slice is logged from the first batch. It has two pages, one of them
// fetched twice, a pace, and links that were sent and not sent.
func owning(t testing.TB) *Store {
	t.Helper()
	s := newStore(t)
	s.Log.SetLogged(true, slice(t))
	a, b := key("a.example", 1), key("www.a.example", 2)
	admit(t, s, a, b)
	cm := done(a, "one", epoch(), key("far.example", 1), key("a.example", 4))
	cm.Site = &store.Site{Site: a.Site(), NextAllowed: epoch().Add(time.Minute), Robots: map[string]store.Robots{
		"https://a.example": {Body: []byte("Disallow: /x\n"), Status: 200, Fetched: epoch()}}}
	commit(t, s, withSocial(cm, "one"))
	rows, _, err := s.Queue.Outbox(0, 10, nil)
	if err == nil {
		err = s.Queue.Sent(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	cm = done(a, "two", epoch().Add(time.Hour), key("far.example", 2))
	cm.Site = &store.Site{Site: a.Site(), NextAllowed: epoch().Add(time.Hour), Robots: map[string]store.Robots{
		"https://a.example": {Body: []byte("Disallow: /x\n"), Status: 200, Fetched: epoch()}}}
	commit(t, s, withSocial(cm, "two"))
	commit(t, s, store.Commit{Key: b, Now: epoch(), Next: store.Next{State: store.StateRefused, Reason: "robots"}})
	return s
}

func readLog(t tb, s *Store, sl partition.Slice, after uint64, maxBytes int) store.LogChunk {
	t.Helper()
	p, err := s.Log.ReadLog(sl, after, maxBytes)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

func applyLog(t tb, s *Store, ps ...store.LogChunk) {
	t.Helper()
	if err := s.Log.ApplyLog(epoch().AddDate(0, 6, 0), ps...); err != nil {
		t.Fatalf("%v", err)
	}
}

// follow replicates everything, one batch at a time.
func follow(t tb, from, to *Store, sl partition.Slice) {
	t.Helper()
	for to.Log.LogHead(sl) < from.Log.LogHead(sl) {
		applyLog(t, to, readLog(t, from, sl, to.Log.LogHead(sl), 1))
	}
}

// logState is what an operation on a log may change.
type logState struct {
	Head    uint64
	Entries int
	Dump    dump
}

func logStateOf(t tb, s *Store, sl partition.Slice) logState {
	t.Helper()
	checkLogs(t, s)
	n, _ := s.Log.LogLen(sl)
	return logState{s.Log.LogHead(sl), n, dumpOf(t, s)}
}

// TestI3LogFaults: ApplyLog, ResetLog and TrimLog are each cut off before every write and after it,
// and also done but reported as failed. The store has the state before or after the call, and the
// same call, or the next log chunk, continues from there.
func TestI3LogFaults(t *testing.T) {
	owner, sl := owning(t), slice(t)
	first, rest := readLog(t, owner, sl, 0, 1), readLog(t, owner, sl, 1, 1<<20)
	if first.To != 1 || rest.To != owner.Log.LogHead(sl) {
		t.Fatalf("%d to %d", first.To, rest.To)
	}
	begin := func(s *Store) { applyLog(t, s, first) }
	all := func(s *Store) { follow(t, owner, s, sl) }
	for _, f := range []struct {
		name        string
		prepare, op func(s *Store)
		call        func(s *Store) error
		unsynced    bool
	}{
		{name: "apply", prepare: begin,
			call: func(s *Store) error { return s.Log.ApplyLog(epoch().Add(2*time.Hour), rest) }},
		{name: "reset to a snapshot",
			prepare: func(s *Store) { begin(s); _ = s.Log.ImportRows(sl, sliceRows(t, owner, sl, 1<<20)) },
			call:    func(s *Store) error { return s.Log.ResetLog(sl, owner.Log.LogHead(sl)) }},
		{name: "reset cuts", prepare: all, call: func(s *Store) error { return s.Log.ResetLog(sl, 2) }},
		{name: "reset to nothing", prepare: all, call: func(s *Store) error { return s.Log.ResetLog(sl, 0) }},
		{name: "trim", prepare: all, call: func(s *Store) error { return s.Log.TrimLog(sl, 3) }, unsynced: true},
		{name: "trim all", prepare: all, call: func(s *Store) error { return s.Log.TrimLog(sl, 100) }, unsynced: true},
	} {
		t.Run(f.name, func(t *testing.T) {
			var before, after logState
			clones := crashes(t, f.prepare, func(s *Store) {
				before = logStateOf(t, s, sl)
				err := f.call(s)
				if err == nil && f.unsynced {
					err = s.engine.Barrier()
				}
				if err != nil {
					t.Fatal(err)
				}
				after = logStateOf(t, s, sl)
			})
			if cmp.Equal(before, after) {
				t.Fatal("nothing changed")
			}
			for i, fs := range clones {
				checkAfterFault(t, fmt.Sprintf("crash %d of %d", i, len(clones)), fs, before, after, i == len(clones)-1,
					func(s *Store) {
						if err := f.call(s); err != nil && !errors.Is(err, store.ErrGap) {
							t.Error(err)
						}
					})
			}
			// The log's sync is refused: with what it wrote, and without.
			for _, percent := range []int{0, 100} {
				mem := vfs.NewCrashableMem()
				fs, on := failing(mem, syscall.ENOSPC, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo)
				s := create(t, fs)
				f.prepare(s)
				on.Store(true)
				if err := f.call(s); !f.unsynced && !errors.Is(err, store.ErrFull) {
					t.Errorf("answered %v", err)
				}
				if err := s.engine.Barrier(); !errors.Is(err, store.ErrFull) {
					t.Errorf("barrier: %v", err)
				}
				closeStore(t, s)
				checkAfterFault(t, fmt.Sprint("sync refused, written ", percent),
					mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newRNG()}), before, after,
					percent == 100, func(s *Store) {
						if err := f.call(s); err != nil && !errors.Is(err, store.ErrGap) {
							t.Error(err)
						}
					})
			}
		})
	}
}

// checkAfterFault opens what a fault left, and repeats the call.
func checkAfterFault(t *testing.T, name string, fs vfs.FS, before, after logState, done bool, again func(*Store)) {
	t.Helper()
	s := reopen(t, fs)
	defer closeStore(t, s)
	got := logStateOf(t, s, slice(t))
	if !cmp.Equal(got, after) && (done || !cmp.Equal(got, before)) {
		t.Errorf("%s: neither before nor after, but\n%s", name, cmp.Diff(after, got))
		return
	}
	again(s)
	got = logStateOf(t, s, slice(t))
	got.Dump.Changes, after.Dump.Changes = nil, nil
	if !cmp.Equal(got, after) {
		t.Errorf("%s, and again:\n%s", name, cmp.Diff(after, got))
	}
}

// TestI2OnlyDurableIsReplicated: ReadLog waits for a commit that is visible but not yet durable. It
// also makes a PutSite durable that nothing else syncs.
func TestI2OnlyDurableIsReplicated(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var hold atomic.Bool
	release := make(chan struct{})
	s := create(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if hold.Load() && strings.HasSuffix(o.Path, ".log") &&
			(o.Kind == errorfs.OpFileSync || o.Kind == errorfs.OpFileSyncData || o.Kind == errorfs.OpFileSyncTo) {
			<-release
		}
		return nil
	})))
	defer closeStore(t, s)
	sl, a := slice(t), key("a.example", 1)
	s.Log.SetLogged(true, sl)
	admit(t, s, a)
	hold.Store(true)
	committed, shipped := make(chan error, 1), make(chan store.LogChunk, 1)
	go func() { committed <- s.Commit(done(a, "t", epoch(), key("far.example", 1))) }()
	for s.Log.LogHead(sl) == 1 { // until the batch is visible
		time.Sleep(time.Millisecond)
	}
	go func() {
		p, err := s.Log.ReadLog(sl, 0, 1<<20)
		if err != nil {
			t.Error(err)
		}
		shipped <- p
	}()
	select {
	case p := <-shipped:
		t.Errorf("replicated up to %d before the disk", p.To)
		shipped <- p // checked below
	case <-time.After(50 * time.Millisecond):
	}
	hold.Store(false)
	close(release)
	if p, err := <-shipped, <-committed; err != nil || p.To != 2 || len(p.Rows) != 3 {
		t.Errorf("%+v %v", p, err)
	}
	if err := s.Queue.PutSite(store.Site{Site: a.Site(), Slice: sl, NextAllowed: epoch()}); err != nil {
		t.Fatal(err)
	}
	if p := readLog(t, s, sl, 2, 1<<20); p.To != 3 || len(p.Rows) != 1 {
		t.Errorf("the pace is not replicated: %+v", p)
	}
	// A peer that is at the head through a snapshot is not ahead after a crash either.
	if err := s.Queue.PutSite(store.Site{Site: a.Site(), Slice: sl,
		NextAllowed: epoch().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if p := readLog(t, s, sl, 4, 1<<20); p.To != 4 || len(p.Rows) != 0 {
		t.Errorf("%+v", p)
	}
	c := reopen(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	defer closeStore(t, c)
	if c.Log.LogHead(sl) != 4 {
		t.Errorf("replicated up to 4, but a crash leaves %d", c.Log.LogHead(sl))
	}
}

func TestLoggedIsTold(t *testing.T) {
	var told []partition.Slice
	o := memOptions()
	o.Logged = func(sl partition.Slice) { told = append(told, sl) }
	s, err := Create("d", o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	a, b := key("a.example", 1), key("b.example", 1)
	admit(t, s, a, b)
	if len(told) != 0 || s.Log.LogHead(s.SliceOf(a)) != 0 {
		t.Errorf("unlogged, but told %v", told)
	}
	s.Log.SetLogged(true, s.SliceOf(a))
	admit(t, s, a, b) // Known: nothing is written
	commit(t, s, done(a, "t", epoch()))
	commit(t, s, done(b, "t", epoch()))
	if err := s.Queue.PutSite(store.Site{Site: a.Site(), Slice: s.SliceOf(a)}); err != nil {
		t.Fatal(err)
	}
	s.Log.SetLogged(false, s.SliceOf(a))
	commit(t, s, done(a, "t", epoch()))
	if len(told) != 2 || told[0] != s.SliceOf(a) || s.Log.LogHead(s.SliceOf(a)) != 2 ||
		s.Log.LogHead(s.SliceOf(b)) != 0 {
		t.Errorf("told %v, heads %d and %d", told, s.Log.LogHead(s.SliceOf(a)), s.Log.LogHead(s.SliceOf(b)))
	}
}

// TestLogIsCapped: a log that is never trimmed loses its older half.
func TestLogIsCapped(t *testing.T) {
	if racetest.Enabled {
		t.Skip("25 MB of Keys take a minute with the race detector; run without it")
	}
	s, sl := newStore(t), slice(t)
	s.Log.SetLogged(true, sl)
	pad := strings.Repeat("x", 1900)
	for n := range 32 {
		var ks []partition.Key
		for i := range 400 {
			ks = append(ks, mustKey(fmt.Sprintf("https://a.example/%d-%s", n*1000+i, pad)))
		}
		admit(t, s, ks...)
		if entries, bytes := s.Log.LogLen(sl); bytes > engine.MaxLogBytes || entries == 0 {
			t.Errorf("%d entries of %d bytes", entries, bytes)
		}
	}
	checkLogs(t, s)
	if _, err := s.Log.ReadLog(sl, 0, 1<<20); !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("from the beginning: %v", err)
	}
	p := readLog(t, s, sl, s.Log.LogHead(sl)-1, 1)
	f := newStore(t)
	if err := f.Log.ResetLog(sl, p.From); err != nil {
		t.Fatal(err)
	}
	applyLog(t, f, p)
	if f.Stats().Keys != 400 {
		t.Errorf("%+v", f.Stats())
	}
	if _, err := s.Log.ReadLog(sl, p.To+1, 1); !errors.Is(err, store.ErrGap) {
		t.Errorf("from the future: %v", err)
	}
}

// TestLargeBatchIsManyEntries: what ImportRows merges reaches the followers, in entries that can
// each be replicated.
func TestLargeBatchIsManyEntries(t *testing.T) {
	from, s, f, sl := newStore(t), newStore(t), newStore(t), slice(t)
	var ks []partition.Key
	for i := range 3000 {
		ks = append(ks, mustKey(fmt.Sprintf("https://a.example/%d-%s", i, strings.Repeat("x", 1000))))
	}
	admit(t, from, ks...)
	for i := range 40 {
		commit(t, from, done(ks[i], "text", epoch()))
	}
	s.Log.SetLogged(true, sl)
	if err := s.Log.ImportRows(sl, sliceRows(t, from, sl, 1<<30)); err != nil {
		t.Fatal(err)
	}
	if n := s.Log.LogHead(sl); n < 4 {
		t.Errorf("%d entries", n)
	}
	follow(t, s, f, sl)
	sameSlice(t, s, f, sl)
}

// TestI3PartOfALog: a page that was fetched again after the end of a log chunk is replicated as
// due, because its new links come later.
func TestI3PartOfALog(t *testing.T) {
	owner, f, sl := owning(t), newStore(t), slice(t)
	p := readLog(t, owner, sl, 0, 1) // the admissions
	applyLog(t, f, p)
	if d, err := f.Queue.DueOf(key("a.example", 1)); err != nil || d.State != store.StatePending ||
		!d.At.Equal(epoch()) {
		t.Errorf("%+v %v", d, err)
	}
	follow(t, owner, f, sl)
	if d, err := f.Queue.DueOf(key("a.example", 1)); err != nil || d.State != store.StateDone {
		t.Errorf("%+v %v", d, err)
	}
	if r, err := f.Archive.Record(key("a.example", 1)); err != nil || r.Text != "two" {
		t.Errorf("%+v %v", r, err)
	}
	rows, _, err := f.Queue.Outbox(0, 10, nil)
	if err != nil || len(rows) != 1 || rows[0].Key != key("far.example", 2) {
		t.Errorf("outbox %v %v", rows, err)
	}
	sameSlice(t, owner, f, sl)
	st, err := f.Queue.Site("web:a.example")
	if err != nil || string(st.Robots["https://a.example"].Body) != "Disallow: /x\n" ||
		!st.NextAllowed.Equal(epoch().Add(time.Hour)) {
		t.Errorf("%+v %v", st, err)
	}
}

func TestApplyLogRefusesHostileChunks(t *testing.T) {
	owner, sl := owning(t), slice(t)
	good := readLog(t, owner, sl, 0, 1<<20)
	pace := format.SiteRow{Site: store.Site{Site: "web:a.example", Slice: sl}, Robots: map[string]format.RobotsHead{}}
	packed := func(v any) []byte {
		b, err := owner.engine.Packer.PackJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	with := func(r store.Row) func(*store.LogChunk) { return func(p *store.LogChunk) { p.Rows = append(p.Rows, r) } }
	paceWith := func(change func(*format.SiteRow)) store.Row {
		p := pace
		p.Robots = map[string]format.RobotsHead{}
		change(&p)
		return store.Row{Key: []byte("Qweb:a.example\x00"), Value: packed(p)}
	}
	for name, c := range map[string]struct {
		change func(p *store.LogChunk)
		want   error
	}{
		"backwards": {func(p *store.LogChunk) { p.From, p.To = 5, 4 }, store.ErrRow},
		"too far":   {func(p *store.LogChunk) { p.To = replog.MaxSpan + 1 }, store.ErrRow},
		"above all positions": {func(p *store.LogChunk) {
			p.From, p.To = replog.MaxLogPosition,
				replog.MaxLogPosition+1
		}, store.ErrRow},
		"rows of no batch": {func(p *store.LogChunk) { p.To = p.From }, store.ErrRow},
		"a gap":            {func(p *store.LogChunk) { p.From++; p.To++ }, store.ErrGap},
		"another slice":    {func(p *store.LogChunk) { p.Slice += 2 }, store.ErrRow},
		"too many rows": {func(p *store.LogChunk) { p.Rows = make([]store.Row, store.MaxImportRows+1) },
			store.ErrRow},
		"too many bytes": {with(store.Row{Key: []byte("R"), Value: make([]byte, store.MaxImportBytes)}),
			store.ErrRow},
		"bomb": {with(store.Row{Key: append([]byte("Rweb:a.example\x00"), key("a.example", 9)...),
			Value: bomb(t, owner, 64<<20)}), store.ErrRow},
		"no such name": {with(store.Row{Key: []byte("Nweb:a.example\x00" + string(key("a.example", 9)))}),
			store.ErrRow},
		"meta":            {with(store.Row{Key: []byte("\x00format"), Value: []byte{9}}), store.ErrRow},
		"sent, not a key": {with(store.Row{Key: []byte("Xhello")}), store.ErrRow},
		"state without value": {with(store.Row{Key: append([]byte("Kweb:a.example\x00"), key("a.example", 9)...)}),
			store.ErrRow},
		"pace of another": {with(paceWith(func(p *format.SiteRow) { p.Site.Site = "web:b.example" })),
			store.ErrRow},
		"pace of another slice": {with(paceWith(func(p *format.SiteRow) { p.Slice++ })), store.ErrRow},
		"pace, negative":        {with(paceWith(func(p *format.SiteRow) { p.Delay = -1 })), store.ErrRow},
		"pace, sum too short": {with(paceWith(func(p *format.SiteRow) {
			p.Robots["x"] = format.RobotsHead{Sum: []byte{1}}
		})), store.ErrRow},
		"pace, origin too long": {with(paceWith(func(p *format.SiteRow) {
			p.Robots[strings.Repeat("x", store.MaxSiteBytes+1)] = format.RobotsHead{Sum: make([]byte, 32)}
		})), store.ErrRow},
		"pace, many origins": {with(paceWith(func(p *format.SiteRow) {
			for i := range store.MaxOrigins + 1 {
				p.Robots[fmt.Sprint(i)] = format.RobotsHead{Sum: make([]byte, 32)}
			}
		})), store.ErrRow},
		"pace, not a pace": {with(store.Row{Key: []byte("Qweb:a.example\x00"), Value: []byte{1, 1, '['}}),
			store.ErrRow},
		"pace, too large": {with(paceWith(func(p *format.SiteRow) {
			p.Stopped = strings.Repeat("x",
				store.MaxPaceRow)
		})), store.ErrRow},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			p := good
			p.Rows = append([]store.Row(nil), good.Rows...)
			c.change(&p)
			// A good log chunk of another slice in the same call is not taken either.
			other := newStore(t)
			k := key("b.example", 1)
			other.Log.SetLogged(true, other.SliceOf(k))
			admit(t, other, k)
			q := readLog(t, other, other.SliceOf(k), 0, 1)
			if err := s.Log.ApplyLog(epoch().Add(2*time.Hour), q, p); !errors.Is(err, c.want) {
				t.Fatalf("err = %v", err)
			}
			if st := s.Stats(); st.Keys+st.Records+st.Outbox != 0 ||
				s.Log.LogHead(p.Slice)+s.Log.LogHead(q.Slice) != 0 {
				t.Errorf("something was written: %+v", st)
			}
		})
	}
	s := newStore(t)
	if err := s.Log.ResetLog(sl, replog.MaxLogPosition+1); err == nil {
		t.Error("a log was put above all positions")
	}
	future := *record(key("a.example", 1), "x", epoch().Add(48*time.Hour))
	p := good
	p.Rows = append(append([]store.Row(nil), good.Rows...), store.Row{Key: append([]byte("Rweb:a.example\x00"),
		future.Key...),
		Value: packed(future)})
	// The row is left out or taken by the time that the call gives.
	early := newStore(t)
	for _, x := range []struct {
		s    *Store
		now  time.Time
		want bool
	}{{early, epoch().Add(2 * time.Hour), false}, {s, epoch().Add(72 * time.Hour), true}} {
		if err := x.s.Log.ApplyLog(x.now, p); err != nil || x.s.Log.LogHead(sl) != p.To {
			t.Errorf("at %s: head %d of %d, %v", x.now, x.s.Log.LogHead(sl), p.To, err)
		}
		r, err := x.s.Archive.Record(future.Key)
		if got := err == nil && r.FetchedAt.Equal(future.FetchedAt); got != x.want {
			t.Errorf("at %s: the row from the future is taken: %v, %v", x.now, got, err)
		}
	}
	// A follower without a copy of a robots.txt works without it.
	head := sumOf("gone")
	q := store.LogChunk{Slice: sl, From: p.To, To: p.To + 1, Rows: []store.Row{paceWith(func(r *format.SiteRow) {
		r.Robots["https://a.example"] = format.RobotsHead{Sum: head}
		r.Failures = 3
	})}}
	applyLog(t, s, q)
	if st, err := s.Queue.Site("web:a.example"); err != nil || len(st.Robots) != 0 || st.Failures != 3 {
		t.Errorf("%+v %v", st, err)
	}
}

func sumOf(text string) []byte { return bytes.Repeat([]byte{text[0]}, 32) }

// TestManyChunksOfOneSlice: chunks that follow each other are applied in one batch, also when they
// change the same row.
func TestManyChunksOfOneSlice(t *testing.T) {
	owner, f, sl := newStore(t), newStore(t), slice(t)
	owner.Log.SetLogged(true, sl)
	a, far := key("a.example", 1), key("far.example", 1)
	var ps []store.LogChunk
	ship := func() {
		var last uint64
		if len(ps) > 0 {
			last = ps[len(ps)-1].To
		}
		ps = append(ps, readLog(t, owner, sl, last, 1<<20))
	}
	admit(t, owner, a)
	ship()
	for n := range 4 {
		cm := done(a, fmt.Sprint(n), epoch().Add(time.Duration(n)*time.Minute), far)
		for i := range cm.Links { // it is sent although it was answered recently
			cm.Links[i].Hint = store.Hint{Kind: store.HintFeed, At: cm.Now}
		}
		cm.Site = &store.Site{Site: a.Site(), NextAllowed: cm.Now,
			Robots: map[string]store.Robots{"https://a.example": {Body: []byte{byte(n / 2)}, Fetched: cm.Now}}}
		commit(t, owner, cm)
		ship()
		if n == 3 {
			break
		}
		rows, _, err := owner.Queue.Outbox(0, 10, nil)
		if err == nil {
			err = owner.Queue.Sent(rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		ship()
	}
	applyLog(t, f, ps...)
	sameSlice(t, owner, f, sl)
	audit(t, f)
	if err := newStore(t).Log.ApplyLog(epoch(), ps[0], ps[2]); !errors.Is(err, store.ErrGap) {
		t.Errorf("a gap among log chunks: %v", err)
	}
}
