package db

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

func attemptAt(sec int64, run string) store.Attempt {
	return store.Attempt{At: time.Unix(1_000_000+sec, 0).UTC(), Peer: "peer-" + run, Run: run}
}

// seeded admits one Key into s, in a slice that is logged.
func seeded(t *testing.T, s *Store) (partition.Key, partition.Slice) {
	t.Helper()
	k := key("poison.example", 1)
	s.Log.SetLogged(true, s.SliceOf(k))
	admit(t, s, k)
	return k, s.SliceOf(k)
}

// TestTrial: which attempts count, when a Key is suspected, and when it is put into quarantine.
func TestTrial(t *testing.T) {
	open := store.Trial{Open: attemptAt(1, "a")}
	if own := open.Seen("a"); own.Suspect() || own.Guilty() {
		t.Error("a process suspects a Key that it judges itself")
	}
	once := open.Seen("b")
	if !once.Suspect() || once.Guilty() || len(once.Deaths) != 1 {
		t.Errorf("after one death: %+v", once)
	}
	if again := once.Seen("c"); !reflect.DeepEqual(again, once) {
		t.Errorf("one death counts twice: %+v", again)
	}
	twice := once
	twice.Open = attemptAt(2, "b")
	if twice = twice.Seen("c"); !twice.Guilty() || !strings.Contains(twice.Reason(), "2 deaths") ||
		!strings.Contains(twice.Reason(), "peer-b") {
		t.Errorf("after two deaths: %+v: %s", twice, twice.Reason())
	}
	// A server that is harmless each time it is suspected: an attempt that ended well in between
	// does not end the suspicion.
	if once.Open, once.Ended = attemptAt(3, "b"), attemptAt(3, "b").At; !once.Seen("c").Suspect() ||
		once.Seen("c").Guilty() {
		t.Errorf("after an attempt that ended well: %+v", once.Seen("c"))
	}
}

// TestTrialsJoin: joins of trials give the same result in any order, and again and again.
func TestTrialsJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func() []byte {
		x := store.Trial{Open: attemptAt(r.Int64N(5), fmt.Sprint(r.IntN(3)))}
		if r.IntN(2) == 0 {
			x.Ended = attemptAt(r.Int64N(5), "").At
		}
		for range r.IntN(store.KeptDeaths) {
			x.Deaths = store.JoinDeaths(x.Deaths, []store.Attempt{attemptAt(r.Int64N(20), fmt.Sprint(r.IntN(3)))})
		}
		return format.EncodeTrial(x)
	}
	join := func(a, b []byte) []byte {
		t.Helper()
		out, err := format.JoinTrials(a, b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 2000 {
		a, b, c := some(), some(), some()
		if x, y := join(a, b), join(b, a); string(x) != string(y) {
			t.Fatalf("%q and %q", x, y)
		}
		if x, y := join(join(a, b), c), join(a, join(b, c)); string(x) != string(y) {
			t.Fatalf("%q and %q", x, y)
		}
		if x := join(join(a, b), b); string(x) != string(join(a, b)) {
			t.Fatalf("twice is not once: %q", x)
		}
	}
}

// TestAttemptEndsWithTheCommit: after the commit, no attempt of the Key is left, here and at a
// follower.
func TestAttemptEndsWithTheCommit(t *testing.T) {
	own, follow := newStore(t), newStore(t)
	k, sl := seeded(t, own)
	ship := func() {
		t.Helper()
		p, err := own.Log.ReadLog(sl, follow.Log.LogHead(sl), 1<<20)
		if err == nil {
			err = follow.Log.ApplyLog(time.Now(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if err := own.Queue.Try(sl, k, attemptAt(int64(i), "run")); err != nil {
			t.Fatal(err)
		}
		ship()
		for name, s := range map[string]*Store{"owner": own, "follower": follow} {
			x, err := s.Queue.Trial(sl, k)
			if err != nil || !x.Seen("other").Suspect() || x.Seen("run").Suspect() {
				t.Fatalf("%s, attempt %d: %+v, %v", name, i, x, err)
			}
		}
		if i == 1 {
			if err := own.Queue.Untry(sl, k, "run"); err != nil {
				t.Fatal(err)
			}
		} else if err := own.Commit(store.Commit{Key: k, Slice: sl, Now: time.Now(),
			Next: store.Next{State: store.StatePending, At: time.Now()}, Run: "run"}); err != nil {
			t.Fatal(err)
		}
		ship()
		for name, s := range map[string]*Store{"owner": own, "follower": follow} {
			if x, err := s.Queue.Trial(sl, k); err != nil || !reflect.DeepEqual(x, store.Trial{}) {
				t.Fatalf("%s, after %d: %+v, %v", name, i, x, err)
			}
		}
	}
	a, err := own.Log.Digests(sl)
	b, err2 := follow.Log.Digests(sl)
	if err != nil || err2 != nil || a != b {
		t.Errorf("digests differ: %v, %v", err, err2)
	}
}

// TestQuarantineTravels: a peer that gets the slice, by its log or as a copy, has the quarantine
// with its reason. It lasts after an Open, and only Release ends it.
func TestQuarantineTravels(t *testing.T) {
	fs := vfs.NewCrashableMem()
	own := create(t, fs)
	k, sl := seeded(t, own)
	for i, run := range []string{"a", "b"} {
		if err := own.Queue.Try(sl, k, attemptAt(int64(i), run)); err != nil {
			t.Fatal(err)
		}
	}
	x, err := own.Queue.Trial(sl, k)
	if err != nil || !x.Seen("c").Guilty() {
		t.Fatalf("%+v, %v", x, err)
	}
	if err := own.Queue.Release(sl, k, time.Now()); !errors.Is(err, store.ErrNotQuarantined) {
		t.Errorf("released before it was left alone: %v", err)
	}
	if err := own.Queue.Quarantine(sl, k, "c", time.Now()); err != nil {
		t.Fatal(err)
	}
	logged, copied := newStore(t), newStore(t)
	p, err := own.Log.ReadLog(sl, 0, 1<<20)
	if err == nil {
		err = logged.Log.ApplyLog(time.Now(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := own.Log.SliceRows(sl, nil, 1<<20)
	if err == nil {
		err = copied.Log.ImportRows(sl, rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, own)
	again := reopen(t, fs)
	defer closeStore(t, again)
	for name, s := range map[string]*Store{"log": logged, "copy": copied, "reopened": again} {
		d, err := s.Queue.DueIn(sl, k)
		if err != nil || d.State != store.StateQuarantined || !d.At.IsZero() ||
			!strings.Contains(d.Reason, "2 deaths of a process") {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if n := s.Stats().Quarantined; n != 1 {
			t.Errorf("%s counts %d", name, n)
		}
		var listed []partition.Key
		if err := s.Queue.Quarantined(sl,
			func(k partition.Key, _ string) (bool, error) {
				listed = append(listed, k)
				return true,
					nil
			}); err != nil || len(listed) != 1 {
			t.Errorf("%s lists %v, %v", name, listed, err)
		}
		if _, err := s.Queue.Admit([]store.Admission{{Key: k, Seed: true}}, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d, err = s.Queue.DueIn(sl, k); err != nil || d.State != store.StateQuarantined {
			t.Errorf("%s: a link to it brought it back: %+v, %v", name, d, err)
		}
		if err := s.Commit(store.Commit{Key: k, Slice: sl, Now: time.Now(),
			Next: store.Next{State: store.StateDone}}); !errors.Is(err,
			store.ErrNotExist) {
			t.Errorf("%s: committed: %v", name, err)
		}
		if err := s.Queue.Release(sl, k, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		d, err = s.Queue.DueIn(sl, k)
		x, terr := s.Queue.Trial(sl, k)
		if err != nil || terr != nil || d.State != store.StatePending || d.At.IsZero() || !reflect.DeepEqual(x,
			store.Trial{}) ||
			s.Stats().Quarantined != 0 {
			t.Errorf("%s, released: %+v, %+v, %v, %v", name, d, x, err, terr)
		}
	}
}

// BenchmarkAttempt measures a commit by 64 workers on the disk, with and without an attempt before
// it.
func BenchmarkAttempt(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("attempt=%t", with), func(b *testing.B) {
			o := testOptions(nil)
			s, err := Create(b.TempDir()+"/s", o)
			if err != nil {
				b.Fatal(err)
			}
			defer closeStore(b, s)
			var keys []partition.Key
			for i := range b.N {
				keys = append(keys, key(fmt.Sprintf("site%d.example", i%200), i))
			}
			admit(b, s, keys...)
			text := strings.Repeat("some words of a page ", 300)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range 64 {
				wg.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						c := done(keys[i], "x", time.Now())
						c.Record.Text = text
						if with {
							if _, err := s.Queue.Trial(0, keys[i]); err != nil {
								b.Error(err)
							}
							if err := s.Queue.Try(0, keys[i], store.Attempt{At: time.Now(), Peer: "peer",
								Run: "run"}); err != nil {
								b.Error(err)
							}
							c.Run = "run"
						}
						commit(b, s, c)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestAttemptThatStayedBehind: after its log was cut, a replica has an attempt whose end it never
// received. Digests and repairs ignore it, and the state of the Key ends it.
func TestAttemptThatStayedBehind(t *testing.T) {
	own, replica := newStore(t), newStore(t)
	k, sl := seeded(t, own)
	if err := own.Queue.Try(sl, k, attemptAt(1, "a")); err != nil {
		t.Fatal(err)
	}
	copyRows := func() {
		t.Helper()
		rows, _, err := own.Log.SliceRows(sl, nil, 1<<20)
		if err == nil {
			err = replica.Log.ImportRows(sl, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyRows()
	if x, err := replica.Queue.Trial(sl, k); err != nil || !x.Seen("b").Suspect() {
		t.Fatalf("the attempt did not come: %+v, %v", x, err)
	}
	if err := own.Commit(store.Commit{Key: k, Now: time.Now(), Next: store.Next{State: store.StateDone},
		Run: "a"}); err != nil {
		t.Fatal(err)
	}
	copyRows()
	if x, err := replica.Queue.Trial(sl, k); err != nil || x.Seen("b").Suspect() {
		t.Errorf("the attempt is not over: %+v, %v", x, err)
	}
	a, err := own.Log.Digests(sl)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := replica.Log.Digests(sl); err != nil || a != b {
		t.Errorf("the digests differ: %v", err)
	}
}

// TestAgain: a person makes a Key due now, whatever was planned, whether it is done or was given
// up. A Key in quarantine stays there, and a Key that is due stays as it is.
func TestAgain(t *testing.T) {
	s := newStore(t)
	k, sl := seeded(t, s)
	now := time.Now().Truncate(time.Second)
	for _, next := range []store.Next{
		{State: store.StateDone, At: now.Add(24 * time.Hour), Reason: "needs-token"},
		{State: store.StatePending, At: now.Add(time.Hour), Attempts: 3, Reason: "down"},
		{State: store.StateRefused, Attempts: 5, Reason: "unreachable"},
		{State: store.StateGone, Reason: "404"},
	} {
		if err := s.Commit(store.Commit{Key: k, Slice: sl, Now: now, Next: next, Run: "run"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Queue.Again(sl, k, now); err != nil {
				t.Fatal(err)
			}
		}
		d, err := s.Queue.DueIn(sl, k)
		if want := next.State; err != nil || !d.At.Equal(now) || d.Attempts != 0 || d.State != store.StatePending &&
			(d.State != want || want != store.StateDone) {
			t.Errorf("after %+v: %+v, %v", next, d, err)
		}
	}
	if err := s.Queue.Again(sl, "web:https://elsewhere.example/", now); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("who is not known: %v", err)
	}
	for i, run := range []string{"a", "b"} {
		if err := s.Queue.Try(sl, k, attemptAt(int64(i), run)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Queue.Quarantine(sl, k, "c", now); err != nil {
		t.Fatal(err)
	}
	if err := s.Queue.Again(sl, k, now); !errors.Is(err, store.ErrQuarantined) {
		t.Errorf("who is left alone: %v", err)
	}
}
