package db

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/store"
)

// ruled is a simple judge of overrides.
func ruled(r *store.Record, all []store.Override) {
	if r == nil {
		return
	}
	last := all[len(all)-1]
	r.Verdict = &store.Verdict{V: store.VerdictVersion, Verdict: last.Verdict, Override: &last}
}

// Overrides are stored in order beside the account. They survive a crash, and are handed over with
// the slice. They change the account's record, also at its replicas, and the account becomes due.
func TestOverride(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := create(t, fs)
	k := account(0)
	at := epoch().Add(time.Hour)
	word := func(verdict string, at time.Time) store.Override {
		return store.Override{V: store.OverrideVersion, Key: k, Verdict: verdict, By: "ana", Why: "lives there", At: at}
	}
	if err := s.Override(0, word("in", at), at, ruled); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("of nobody: %v", err)
	}
	admit(t, s, k)
	for _, bad := range []store.Override{{}, {V: 1, Key: k, Verdict: "perhaps", By: "ana"}, {V: 1, Key: k,
		Verdict: "in"},
		{V: 1, Key: mustKey("https://a.test/"), Verdict: "in", By: "ana"}, {V: 2, Key: k, Verdict: "in", By: "ana"}} {
		if err := s.Override(0, bad, at, ruled); !errors.Is(err, store.ErrOverride) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	// The clock is ahead, and there is no record yet.
	if err := s.Override(0, word("out", at.Add(time.Hour)), at, ruled); err != nil {
		t.Fatal(err)
	}
	commit(t, s, store.Commit{Key: k, Now: at, Record: record(k, "profile", at),
		Next: store.Next{State: store.StateDone, At: at.Add(1000 * time.Hour)}})
	// Not later than the previous override.
	if err := s.Override(0, word("in", at), at.Add(time.Minute), ruled); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = reopen(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	all, err := s.Accounts.Overrides(0, k)
	if err != nil || len(all) != 2 || all[0].Verdict != "out" || !all[0].At.Equal(at) || all[1].Verdict != "in" ||
		!all[1].At.After(at) {
		t.Fatalf("%+v, %v", all, err)
	}
	r, err := s.Archive.Record(k)
	d, derr := s.Queue.DueOf(k)
	if err != nil || derr != nil || r.VerdictWord() != "in" || r.Text != "profile" || d.State != store.StateDone ||
		!d.At.Equal(at.Add(time.Minute)) {
		t.Errorf("%+v, %v, %+v, %v", r, err, d, derr)
	}
	audit(t, s)

	sl := s.SliceOf(k)
	other := newStore(t)
	if err := other.Log.ImportRows(sl, sliceRows(t, s, sl, 1000)); err != nil {
		t.Fatal(err)
	}
	there, err := other.Accounts.Overrides(0, k)
	if d := cmp.Diff(all, there); d != "" || err != nil {
		t.Errorf("with its slice: %s %v", d, err)
	}
	if r, err := other.Archive.Record(k); err != nil || r.VerdictWord() != "in" {
		t.Errorf("%+v, %v", r, err)
	}
}

// An override made during a fetch of the account counts soon, not only at the next visit.
func TestOverrideDuringAFetch(t *testing.T) {
	s, k := newStore(t), account(0)
	admit(t, s, k)
	now := epoch()
	visit := func(rule []store.Override) time.Duration {
		t.Helper()
		c := store.Commit{Key: k, Now: now, Record: record(k, "profile", now),
			Next: store.Next{State: store.StateDone, At: now.Add(1000 * time.Hour)}}
		c.Record.Kind = store.KindProfile
		if rule != nil {
			ruled(c.Record, rule)
		}
		commit(t, s, c)
		d, err := s.Queue.DueOf(k)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		return d.At.Sub(c.Now)
	}
	if got := visit(nil); got != 1000*time.Hour {
		t.Errorf("nothing said: again in %s", got)
	}
	if err := s.Override(0, store.Override{V: 1, Key: k, Verdict: "in", By: "ana"}, now, ruled); err != nil {
		t.Fatal(err)
	}
	if got := visit(nil); got != overruleAgain {
		t.Errorf("unheard: again in %s", got)
	}
	all, err := s.Accounts.Overrides(0, k)
	if err != nil {
		t.Fatal(err)
	}
	if got := visit(all); got != 1000*time.Hour {
		t.Errorf("heard: again in %s", got)
	}
	if err := s.Override(0, store.Override{V: 1, Key: k, By: "ana"}, now,
		func(r *store.Record, _ []store.Override) { r.Verdict = nil }); err != nil {
		t.Fatal(err)
	}
	if got := visit(nil); got != 1000*time.Hour {
		t.Errorf("taken back: again in %s", got)
	}
}

// Only the last of very many overrides are kept.
func TestOverridesAreCapped(t *testing.T) {
	s, k := newStore(t), account(0)
	admit(t, s, k)
	var last time.Time
	for n := range store.MaxOverrides + 5 {
		last = epoch().Add(time.Duration(n) * time.Minute)
		if err := s.Override(0, store.Override{V: 1, Key: k, Verdict: []string{"in", "out"}[n%2], By: "ana"}, last,
			ruled); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Accounts.Overrides(0, k)
	if err != nil || len(all) != store.MaxOverrides || !all[len(all)-1].At.Equal(last) {
		t.Errorf("%d, %v", len(all), err)
	}
	none := account(1)
	if all, err := s.Accounts.Overrides(0, none); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
