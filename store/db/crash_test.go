package db

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// crashes runs op on a store made by prepare. It returns the disk as it would be after a power cut
// before each of op's writes and syncs, and after op.
func crashes(t *testing.T, prepare, op func(s *Store)) (clones []*vfs.MemFS) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var mu sync.Mutex
	var on bool
	hook := errorfs.InjectorFunc(func(o errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if on && o.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}),
				mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG()}))
		}
		return nil
	})
	s := create(t, errorfs.Wrap(mem, hook))
	prepare(s)
	mu.Lock()
	on = true
	mu.Unlock()
	op(s)
	mu.Lock()
	on = false
	clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}))
	mu.Unlock()
	closeStore(t, s)
	if len(clones) < 3 {
		t.Fatal("the operation wrote nothing")
	}
	return clones
}

// dump is everything that a store knows, except its sequence numbers.
type dump struct {
	Keys     map[partition.Key]store.Due
	Records  map[partition.Key]string
	Outbox   map[string]int
	Changes  map[partition.Key]int
	NextSite map[partition.Site]time.Time
	Visits   map[partition.Key][]string
	Items    map[string]string
}

func dumpOf(t tb, s *Store) dump {
	t.Helper()
	audit(t, s)
	d := dump{map[partition.Key]store.Due{}, map[partition.Key]string{}, map[string]int{}, map[partition.Key]int{},
		map[partition.Site]time.Time{}, map[partition.Key][]string{}, itemsOf(t, s)}
	err := s.engine.Scan([]byte{byte(format.TabKey)}, []byte{byte(format.TabKey) + 1}, func(k, v []byte) (bool, error) {
		_, rest, err := format.SplitRow(k)
		st, err2 := format.DecodeKeyState(v)
		d.Keys[partition.Key(rest)] = st.Due(partition.Key(rest))
		return true, errors.Join(err, err2)
	})
	err2 := s.Archive.Records("", func(r store.Record) (bool, error) { d.Records[r.Key] = r.Text; return true, nil })
	rows, _, err3 := s.Queue.Outbox(0, 1000, nil)
	changes, err4 := s.Changes(0, 1000)
	err5 := s.engine.Scan([]byte{byte(format.TabSite)}, []byte{byte(format.TabSite) + 1}, func(k, _ []byte) (bool,
		error) {
		id, _, err := format.SplitRow(k)
		if err != nil {
			return false, err
		}
		st, err := s.Queue.SiteIn(s.engine.DB, id)
		d.NextSite[id.Site] = st.NextAllowed
		return true, err
	})
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		t.Fatalf("%v", err)
	}
	for k := range d.Keys {
		if of := visits(t, s, k); len(of) > 0 {
			d.Visits[k] = of
		}
	}
	for _, r := range rows {
		d.Outbox[fmt.Sprint(r.Slice, r.To, r.Key)]++
	}
	for _, c := range changes {
		d.Changes[c.Key+partition.Key(c.Post)]++
	}
	return d
}

// allOrNothing crashes op everywhere. The store must have the state before op or the state after
// it; once op has returned, only the state after it.
func allOrNothing(t *testing.T, prepare, op func(s *Store)) {
	t.Helper()
	var before, after dump
	clones := crashes(t, prepare, func(s *Store) {
		before = dumpOf(t, s)
		op(s)
		after = dumpOf(t, s)
	})
	if cmp.Equal(before, after) {
		t.Fatal("the operation changed nothing")
	}
	seen := [2]int{}
	for i, fs := range clones {
		s := reopen(t, fs)
		got := dumpOf(t, s)
		switch {
		case cmp.Equal(got, after):
			seen[1]++
		case i < len(clones)-1 && cmp.Equal(got, before):
			seen[0]++
		default:
			t.Errorf("crash %d of %d: neither before nor after, but\n%s", i, len(clones), cmp.Diff(after, got))
		}
		closeStore(t, s)
	}
	if seen[0] == 0 || seen[1] == 0 {
		t.Errorf("%d crashes saw the state before, %d after: the test missed one", seen[0], seen[1])
	}
}

func TestI3CommitIsOneBatch(t *testing.T) {
	a, b, c := key("a.example", 1), key("a.example", 2), key("far.example", 1)
	allOrNothing(t, func(s *Store) {
		admit(t, s, a)
		for i := range store.MaxVersions {
			text := fmt.Sprint("version ", i)
			commit(t, s, captured(done(a, text, epoch().Add(time.Duration(i)*time.Minute)), text))
		}
	}, func(s *Store) {
		cm := captured(done(a, "text", epoch().Add(time.Hour), b, c), "text")
		cm.Site = &store.Site{Site: a.Site(), NextAllowed: epoch().Add(time.Second)}
		commit(t, s, cm)
	})
}

func TestI1AdmitIsOneBatch(t *testing.T) {
	allOrNothing(t, func(s *Store) { admit(t, s, key("a.example", 1)) }, func(s *Store) {
		admit(t, s, key("a.example", 1), key("b.example", 1), key("c.example", 1))
	})
}

func TestI2SentIsOneBatch(t *testing.T) {
	a := key("a.example", 1)
	allOrNothing(t, func(s *Store) {
		admit(t, s, a)
		commit(t, s, done(a, "text", epoch(), key("b.example", 1), key("c.example", 1)))
	}, func(s *Store) {
		rows, _, err := s.Queue.Outbox(0, 10, nil)
		if err != nil || len(rows) != 2 {
			t.Fatal(rows, err)
		}
		if err := s.Queue.Sent(rows); err != nil {
			t.Fatal(err)
		}
	})
}

func TestI4ImportIsOneBatch(t *testing.T) {
	from, sl := filled(t), slice(t)
	rows := sliceRows(t, from, sl, 1<<20)
	allOrNothing(t, func(s *Store) { admit(t, s, key("a.example", 1)) }, func(s *Store) {
		if err := s.Log.ImportRows(sl, rows); err != nil {
			t.Fatal(err)
		}
	})
}

func TestI4DropIsOneBatch(t *testing.T) {
	fill := func(s *Store) {
		if err := s.Log.ImportRows(slice(t), sliceRows(t, filled(t), slice(t), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	allOrNothing(t, fill, func(s *Store) {
		if err := s.Log.DropSlice(slice(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCreateCutShort: after a crash anywhere in Create, Create or Open works.
func TestCreateCutShort(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var clones []*vfs.MemFS
	var mu sync.Mutex
	s := create(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if o.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	})))
	closeStore(t, s)
	var opened, created int
	for i, fs := range clones {
		s, err := Open("d", testOptions(fs))
		if errors.Is(err, store.ErrNotExist) {
			created++
			s, err = Create("d", testOptions(fs))
		} else {
			opened++
		}
		if err != nil {
			t.Errorf("crash %d of %d: %v", i, len(clones), err)
			continue
		}
		admit(t, s, key("a.example", 1))
		audit(t, s)
		closeStore(t, s)
	}
	if opened == 0 || created == 0 {
		t.Errorf("%d opened, %d created", opened, created)
	}
}

// TestI1AdmitOnceUnderConcurrency: many callers admit the same Keys at once, and pages link to
// them. Exactly one answer is Admitted.
func TestI1AdmitOnceUnderConcurrency(t *testing.T) {
	s := newStore(t)
	page := key("a.example", 1000)
	admit(t, s, page)
	const callers, keys = 8, 60
	var mu sync.Mutex
	admitted := map[partition.Key]int{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for n := range keys {
				k := key([]string{"a.example", "b.example", "c.example"}[n%3], n)
				items := []store.Admission{{Key: k}, {Key: key("d.example", n/2)}, {Key: k}}
				if c == 0 { // a crawler at the same time as the registrars
					if err := s.Commit(done(page, "t", epoch(), key("a.example", n))); err != nil {
						t.Error(err)
					}
				}
				ans, err := s.Queue.Admit(items, epoch())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i, a := range ans {
					if a == store.Admitted {
						admitted[items[i].Key]++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for k, n := range admitted {
		if n != 1 {
			t.Errorf("%s was admitted %d times", k, n)
		}
	}
	audit(t, s)
	if got := s.Stats().Keys; got != 1+keys+keys/2+keys-keys/3 {
		t.Errorf("%d keys", got)
	}
}

// TestI2AnswersAreDurable: what an answer says is on the disk when the answer returns, also for
// Known.
func TestI2AnswersAreDurable(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := create(t, mem)
	defer closeStore(t, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 15 {
				k := key("a.example", n)
				ans, err := s.Queue.Admit([]store.Admission{{Key: k}}, epoch())
				if err != nil {
					t.Error(err)
					return
				}
				c := reopen(t, mem.CrashClone(vfs.CrashCloneCfg{}))
				if _, err := c.Queue.DueOf(k); err != nil {
					t.Errorf("answered %d, but after a crash: %v", ans[0], err)
				}
				closeStore(t, c)
			}
		})
	}
	wg.Wait()
}

// TestReadersDoNotPassWhatMayStillCome: a reader follows the change log and the outbox by the last
// number that it saw, and misses nothing.
func TestReadersDoNotPassWhatMayStillCome(t *testing.T) {
	s := newStore(t)
	const writers, each = 6, 40
	for w := range writers {
		for n := range each {
			admit(t, s, key(fmt.Sprintf("h%d.example", w), n))
		}
	}
	stop := make(chan struct{})
	var wg, readers sync.WaitGroup
	changed, queued := map[partition.Key]bool{}, map[partition.Key]bool{}
	readers.Go(func() {
		for last, lastRow, final := uint64(0), uint64(0), false; ; {
			cs, err := s.Changes(last, 10)
			rows, _, err2 := s.Queue.Outbox(lastRow, 10, nil)
			if err := errors.Join(err, err2); err != nil {
				t.Error(err)
				return
			}
			for _, c := range cs {
				last, changed[c.Key] = c.Seq, true
			}
			for _, r := range rows {
				lastRow, queued[r.Key] = r.Seq, true
			}
			if final && len(cs)+len(rows) == 0 {
				return
			}
			select {
			case <-stop:
				final = true
			default:
			}
		}
	})
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				k := key(fmt.Sprintf("h%d.example", w), n)
				if err := s.Commit(done(k, "t", epoch(), key(fmt.Sprintf("far%d.example", w), n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	if len(changed) != writers*each || len(queued) != writers*each {
		t.Errorf("%d changes and %d outbox rows seen of %d", len(changed), len(queued), writers*each)
	}
}

// A store opens after a power cut at any write of an Open. The disk may have kept any of the blocks
// and directory entries that were not synced, whatever their order.
func TestOpenIsCutAnywhere(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := create(t, mem)
	a := key("a.example", 1)
	admit(t, s, a)
	closeStore(t, s)
	before := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG()})
	rng, cuts, rounds := newRNG(), 0, 8
	if racetest.Enabled {
		rounds = 1
	}
	for round := range rounds {
		disk := before.CrashClone(vfs.CrashCloneCfg{})
		var mu sync.Mutex
		var clones []*vfs.MemFS
		closeStore(t, reopen(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(o errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if o.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				clones = append(clones, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}))
			}
			return nil
		}))))
		for i, c := range clones {
			s, err := Open("d", testOptions(c))
			if err != nil {
				t.Fatalf("round %d, cut %d of %d: %v", round, i, len(clones), err)
			}
			if d, err := s.Queue.DueOf(a); err != nil || d.State != store.StatePending {
				t.Errorf("round %d, cut %d: %+v %v", round, i, d, err)
			}
			closeStore(t, s)
		}
		cuts += len(clones)
	}
	if cuts < rounds*10 {
		t.Errorf("%d cuts", cuts)
	}
}
