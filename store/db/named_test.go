package db

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// handedRows returns the rows of sl that replicas have, by their keys.
func handedRows(t *testing.T, s *Store, sl partition.Slice) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, tab := range format.Handed() {
		p := format.SlicePrefix(tab, sl)
		err := s.engine.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
			out[string(key)] = string(value)
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// namedSince returns the rows that the log of sl names above the position at.
func namedSince(t *testing.T, s *Store, sl partition.Slice, at uint64) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	p := format.SlicePrefix('G', sl)
	err := s.engine.Scan(format.LogKey(sl, at+1), format.After(p), func(key, value []byte) (bool, error) {
		e, err := format.DecodeEntry(key, value)
		for _, r := range e.Rows {
			if r.Name == 'Q' { // a pace whose robots.txt did not change
				r.Name = 'P'
			}
			out[string(r.Name)+r.Rest] = true
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each call that writes a row of a slice also names it in the log. A row that is not named reaches
// no replica. Deletions of a record or an item need not be named, because a replica finds them by
// itself.
func TestEachRowThatIsWrittenIsNamed(t *testing.T) {
	s := newStore(t)
	k, page := account(1), key("a.example", 1)
	run := store.Attempt{At: epoch(), Peer: "p", Run: "r"}
	n := 0
	on := func(k partition.Key, what string, do func(at time.Time) error) {
		t.Helper()
		n++
		at, sl := epoch().Add(time.Duration(n)*time.Hour), s.SliceOf(k)
		s.Log.SetLogged(true, sl)
		head, before := s.Log.LogHead(sl), handedRows(t, s, sl)
		if err := do(at); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		after, named := handedRows(t, s, sl), namedSince(t, s, sl, head)
		changes := 0
		for row, v := range after {
			if before[row] == v {
				continue
			}
			changes++
			if !named[row[:1]+row[9:]] {
				t.Errorf("%s: %q was written and is not named", what, row)
			}
		}
		for row := range before {
			if _, there := after[row]; there {
				continue
			}
			changes++
			if (row[0] == 'X' || row[0] == 'V' || row[0] == 'T') && !named[row[:1]+row[9:]] {
				t.Errorf("%s: %q is gone and is not named", what, row)
			}
		}
		if changes == 0 {
			t.Errorf("%s: nothing changed", what)
		}
	}
	admitted := func(k partition.Key) func(time.Time) error {
		return func(at time.Time) error {
			_, err := s.Queue.Admit([]store.Admission{{Key: k, Seed: true}}, at)
			return err
		}
	}
	on(k, "admit", admitted(k))
	on(page, "admit", admitted(page))
	on(page, "try", func(time.Time) error { return s.Queue.Try(0, page, run) })
	on(page, "commit", func(at time.Time) error {
		c := captured(done(page, "one", at, key("far.example", 1), key("a.example", 2)), "one")
		c.Run = run.Run
		c.Site = &store.Site{Site: page.Site(), NextAllowed: at, Robots: map[string]store.Robots{
			"https://a.example": {Body: []byte("x"), Status: 200, Fetched: at}}}
		return s.Commit(c)
	})
	for range store.MaxVersions + 1 {
		on(page, "commit again", func(at time.Time) error {
			return s.Commit(captured(done(page, at.String(), at), at.String()))
		})
	}
	on(page, "not modified", func(at time.Time) error { return s.Commit(notModified(page, at)) })
	on(page, "pace", func(at time.Time) error {
		return s.Queue.PutSite(store.Site{Site: page.Site(), Slice: s.SliceOf(page), NextAllowed: at})
	})
	on(page, "replan", func(at time.Time) error {
		was, err := s.Queue.DueOf(page)
		if err != nil {
			return err
		}
		_, err = s.Queue.Replan(s.SliceOf(page), []store.Plan{{Was: was, At: at}})
		return err
	})
	on(page, "sent", func(time.Time) error {
		rows, _, err := s.Queue.Outbox(0, 10, nil)
		if err != nil {
			return err
		}
		return s.Queue.Sent(rows)
	})
	on(k, "social", func(at time.Time) error {
		c := withSocial(done(k, "me", at), "one")
		c.Record.Kind = store.KindProfile
		c.Lists = []store.ListPage{{List: k + "/followers", Walk: at, Claimed: -1,
			Accounts: []partition.Key{account(2)}}}
		return s.Commit(c)
	})
	on(k, "override", func(at time.Time) error {
		o := store.Override{V: store.OverrideVersion, Key: k, Verdict: "in", By: "ana", At: at}
		return s.Override(0, o, at, ruled)
	})
	on(k, "try", func(time.Time) error { return s.Queue.Try(0, k, run) })
	on(k, "untry", func(time.Time) error { return s.Queue.Untry(0, k, run.Run) })
	on(k, "quarantine", func(at time.Time) error { return s.Queue.Quarantine(0, k, "other", at) })
	on(k, "release", func(at time.Time) error { return s.Queue.Release(0, k, at) })
	on(k, "again", func(at time.Time) error { return s.Queue.Again(0, k, at.Add(-100*time.Hour)) })
}
