package db

import (
	"errors"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/replog"
)

const (
	us, them, third = "us", "the bringer", "a third peer"
)

// broughtCase is what an owner has of a Key, what a bringer sends, and the result.
type broughtCase struct {
	name      string
	ours      func(s *Store, k partition.Key)
	said      func(s *Store, k partition.Key)
	text, via string        // of the record in the result
	within    time.Duration // the Key is due within this time; 0 = as before
	state     store.State
	visits    int
}

func by(peer string, c store.Commit) store.Commit {
	c.Record.Peer = peer
	if c.Capture != nil {
		c.Capture.Peer = peer
	}
	return c
}

// TestBringRows: what an owner takes from a peer that is not a replica of the slice.
func TestBringRows(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	old, later := now.Add(-48*time.Hour), now.Add(-time.Hour)
	have := func(c func(k partition.Key) store.Commit) func(*Store, partition.Key) {
		return func(s *Store, k partition.Key) {
			if _, err := s.Queue.Admit([]store.Admission{{Key: k}}, old.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			if c != nil {
				commit(t, s, c(k))
			}
		}
	}
	nothing := func(*Store, partition.Key) {}
	page := func(peer, text string, at time.Time) func(k partition.Key) store.Commit {
		return func(k partition.Key) store.Commit {
			c := by(peer, captured(done(k, text, at), text))
			c.Next.At = now.Add(1000 * time.Hour)
			return c
		}
	}
	ended := func(state store.State, at time.Time) func(k partition.Key) store.Commit {
		return func(k partition.Key) store.Commit {
			return store.Commit{Key: k, Now: at, Next: store.Next{State: state, Reason: "said so"}}
		}
	}
	for _, c := range []broughtCase{
		{name: "its own newer page", ours: have(page(us, "ours", old)), said: have(page(them, "theirs", later)),
			text: "theirs", within: replog.ProveReplaced, state: store.StateDone, visits: 2},
		{name: "its own older page", ours: have(page(us, "ours", later)), said: have(page(them, "theirs", old)),
			text: "ours", state: store.StateDone, visits: 2},
		{name: "a newer page in our name", ours: have(page(us, "ours", old)), said: have(page(us, "forged", later)),
			text: "ours", state: store.StateDone, visits: 1},
		{name: "a newer page in a third name", ours: have(page(us, "ours", old)),
			said: have(page(third, "forged", later)), text: "ours", state: store.StateDone, visits: 1},
		{name: "a page in a third name, where there is none", ours: have(nil), said: have(page(third, "theirs", later)),
			text: "theirs", via: them, state: store.StatePending, within: time.Second, visits: 1},
		{name: "an unknown key's page", ours: nothing, said: have(page(third, "theirs", later)), text: "theirs",
			via: them, state: store.StateDone, within: replog.ProveBrought, visits: 1},
		{name: "an unknown key's own page", ours: nothing, said: have(page(them, "theirs", later)), text: "theirs",
			state: store.StateDone, within: replog.ProveBrought, visits: 1},
		{name: "gone, it says", ours: have(page(us, "ours", old)), said: have(ended(store.StateGone, later)),
			text:  "ours",
			state: store.StateDone, visits: 1},
		{name: "refused, it says, of what is unknown", ours: nothing, said: have(ended(store.StateRefused, later)),
			state: store.StatePending, within: time.Second},
		{name: "a page of what is refused here", ours: have(ended(store.StateRefused, old)),
			said: have(page(them, "theirs", later)), state: store.StateRefused, visits: 1},
		{name: "a page of what is gone here", ours: have(ended(store.StateGone, old)),
			said: have(page(them, "theirs", later)), text: "theirs", state: store.StateGone,
			within: replog.ProveBrought, visits: 1},
		{name: "nothing but the key", ours: nothing, said: have(nil), state: store.StatePending, within: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, from, k := newStore(t), newStore(t), key("a.example", 1)
			c.ours(s, k)
			c.said(from, k)
			before, err := s.Queue.DueOf(k)
			if err != nil && !errors.Is(err, store.ErrNotExist) {
				t.Fatal(err)
			}
			rows := sliceRows(t, from, s.SliceOf(k), 1<<20)
			for range 2 { // again changes nothing
				if _, err := s.Log.BringRows(s.SliceOf(k), rows, now, replog.Bringer{Peer: them}); err != nil {
					t.Fatal(err)
				}
			}
			audit(t, s)
			due, err := s.Queue.DueOf(k)
			if err != nil || due.State != c.state {
				t.Fatalf("%+v %v", due, err)
			}
			if c.within == 0 && !due.At.Equal(before.At) || c.within > 0 &&
				(due.At.IsZero() || due.At.After(now.Add(c.within))) {
				t.Errorf("due at %s, and was at %s", due.At, before.At)
			}
			r, err := s.Archive.Record(k)
			if c.text == "" {
				if !errors.Is(err, store.ErrNotExist) {
					t.Errorf("a record: %+v %v", r, err)
				}
			} else if err != nil || r.Text != c.text || r.Via != c.via || r.Peer == them && r.Via != "" {
				t.Errorf("%q by %q via %q, %v", r.Text, r.Peer, r.Via, err)
			}
			if n := len(visits(t, s, k)); n != c.visits {
				t.Errorf("%d visits: %v", n, visits(t, s, k))
			}
		})
	}
}

// A bringer cannot change the pace of sites or an override. It cannot restore a deleted post, and a
// Key that is not allowed is not admitted.
func TestBringRowsItems(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	s, from, k, bad := newStore(t), newStore(t), account(0), account(1)
	sl := s.SliceOf(k)
	override := func(peer string) store.Override {
		return store.Override{V: store.OverrideVersion, Key: k, Verdict: "out", By: "ana", Peer: peer,
			At: now.Add(-time.Hour)}
	}
	post := func(deleted bool, at time.Time) store.Record {
		r := store.Record{V: store.RecordVersion, Key: k, Kind: store.KindPost, Post: "https://m.example/1",
			FetchedAt: at, Peer: them,
			Deleted: deleted}
		if !deleted {
			r.Text = "what was said"
		}
		return r
	}
	for _, x := range []*Store{s, from} {
		if _, err := x.Queue.Admit([]store.Admission{{Key: k}}, now.Add(-50*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, s, store.Commit{Key: k, Now: now.Add(-2 * time.Hour), Next: store.Next{State: store.StateDone},
		Posts: []store.Record{post(true, now.Add(-2*time.Hour))}})
	commit(t, from, store.Commit{Key: k, Now: now.Add(-time.Hour), Next: store.Next{State: store.StateDone},
		Posts: []store.Record{post(false, now.Add(-time.Hour))}, Checkpoint: []byte("mark"),
		Site: &store.Site{Site: k.Site(), NextAllowed: now.Add(1000 * time.Hour), BackOff: time.Hour,
			Stopped: "never"}})
	if _, err := from.Queue.Admit([]store.Admission{{Key: bad}}, now); err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{us, them} {
		if err := from.Override(0, override(peer), now, ruled); err != nil {
			t.Fatal(err)
		}
	}
	for _, overrules := range []bool{false, true} {
		for _, of := range []partition.Slice{sl, s.SliceOf(bad)} {
			b, err := s.Log.BringRows(of, sliceRows(t, from, of, 1<<20), now,
				replog.Bringer{Peer: them, Overrules: overrules, Allow: func(x partition.Key, _ int) error {
					if x == bad {
						return errors.New("not here")
					}
					return nil
				}})
			if err != nil || b.Left == 0 {
				t.Fatal(b, err)
			}
		}
		audit(t, s)
		if r, _, err := s.Accounts.Post(k, "https://m.example/1"); err == nil && !r.Deleted {
			t.Errorf("a deleted post is back: %+v", r)
		}
		if st, err := s.Queue.Site(k.Site()); err == nil {
			t.Errorf("its site: %+v", st)
		}
		if c, err := s.Accounts.Checkpoint(0, k); err != nil || len(c) != 0 {
			t.Errorf("its checkpoint: %q %v", c, err)
		}
		if _, err := s.Queue.DueOf(bad); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("a key that is not allowed: %v", err)
		}
		all, err := s.Accounts.Overrides(0, k)
		if want := map[bool]int{true: 1}[overrules]; err != nil || len(all) != want || len(all) == 1 &&
			all[0].Peer != them {
			t.Errorf("overrides: %+v %v", all, err)
		}
	}
}
