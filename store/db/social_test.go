package db

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

func postOf(k partition.Key, n int, text string, at time.Time) store.Record {
	return store.Record{V: store.RecordVersion, Key: k, Kind: store.KindPost,
		Post:      fmt.Sprint("https://social.example/p/", n),
		FetchedAt: at, Text: text, PublishedAt: &at}
}

func tombstone(k partition.Key, n int, at time.Time) store.Record {
	r := postOf(k, n, "", at)
	r.Deleted, r.Reason = true, "404"
	return r
}

func account(n int) partition.Key {
	return partition.Key(fmt.Sprintf("mastodon:user%d@social.example", n))
}

// withSocial gives c two posts, a gap and a checkpoint.
func withSocial(c store.Commit, text string) store.Commit {
	c.Posts = append(c.Posts, postOf(c.Key, 1, text, c.Now), postOf(c.Key, 2, "two", c.Now))
	c.Gaps = append(c.Gaps, store.Gap{Source: "test", From: c.Now.Add(-time.Hour), To: c.Now, What: store.GapSkipped,
		Reason: "budget"})
	c.Checkpoint = []byte("after " + text)
	return c
}

// drawSocial draws a part of what a fetch may return in addition to its record.
func drawSocial(t *rapid.T, c *store.Commit) {
	for range rapid.IntRange(0, 2).Draw(t, "posts") {
		at := c.Now.Add(time.Duration(rapid.IntRange(-90, 30).Draw(t, "ago")) * time.Minute)
		n := rapid.IntRange(0, 1).Draw(t, "post")
		r := postOf(c.Key, n, rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "text"), at)
		switch rapid.IntRange(0, 7).Draw(t, "fate") {
		case 0:
			r = tombstone(c.Key, n, at)
		case 1:
			r.NoArchive = true
		}
		c.Posts = append(c.Posts, r)
	}
	if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
		c.Gaps = []store.Gap{{From: epoch().Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "from")) * time.Hour),
			What: rapid.SampledFrom(store.GapWords()).Draw(t, "what"), Reason: "because"}}
	}
	if rapid.IntRange(0, 3).Draw(t, "checkpoint") == 0 {
		c.Checkpoint = []byte(rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "to"))
	}
	if k := c.Key; k.Kind() == partition.KindAccount {
		for range rapid.IntRange(0, 2).Draw(t, "pages") {
			p := store.ListPage{List: k + "/followers",
				Walk: c.Now.Add(-time.Duration(rapid.IntRange(0, 2).Draw(t, "began")) * time.Hour), Claimed: -1}
			for range rapid.IntRange(0, 3).Draw(t, "met") {
				p.Accounts = append(p.Accounts, account(rapid.IntRange(0, 3).Draw(t, "who")))
			}
			p.End = rapid.Bool().Draw(t, "end")
			p.Complete = p.End && rapid.Bool().Draw(t, "complete")
			c.Lists = append(c.Lists, p)
		}
	}
}

// itemsOf returns the states of all items, by row without its table.
func itemsOf(t tb, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, tab := range format.ItemTables() {
		p := []byte{byte(tab)}
		err := s.engine.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
			id, err := format.SplitItem(tab, key)
			if err != nil {
				return false, err
			}
			v, err := s.engine.Packer.OpenItem(tab, value)
			if err != nil {
				return false, err
			}
			canonical, _, err := format.CheckItem(id, v)
			if !bytes.Equal(canonical, v) {
				t.Errorf("row %q is not as it would be sent: %q, %q", key, v, canonical)
			}
			out[string(key)] = string(v)
			return true, err
		})
		if err != nil {
			t.Fatalf("%q: %v", tab, err)
		}
	}
	return out
}

func onePost(t tb, s *Store, k partition.Key, n int) store.Record {
	t.Helper()
	r, _, err := s.Accounts.Post(k, postOf(k, n, "", epoch()).Post)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

func bring(t tb, s *Store, k partition.Key, at time.Time, posts ...store.Record) {
	t.Helper()
	commit(t, s, store.Commit{Key: k, Now: at, Next: store.Next{State: store.StateDone}, Posts: posts})
}

func TestPostsEditsAndTombstones(t *testing.T) {
	s, k, at := newStore(t), account(1), epoch()
	admit(t, s, k)
	first := postOf(k, 1, "first", at)
	first.Media, first.Raw = []store.Media{{URL: "https://social.example/m"}}, []byte(`{"id":1}`)
	bring(t, s, k, at, first, postOf(k, 2, "other", at))
	bring(t, s, k, at.Add(time.Hour), postOf(k, 1, "second", at.Add(time.Hour)))
	bring(t, s, k, at.Add(2*time.Hour), postOf(k, 1, "second", at.Add(2*time.Hour)))
	r := onePost(t, s, k, 1)
	if r.Text != "second" || len(r.Edits) != 1 || r.Edits[0].Text != "first" || !r.Edits[0].SeenAt.Equal(at) {
		t.Fatalf("after an edit: %+v", r)
	}
	bring(t, s, k, at.Add(3*time.Hour), tombstone(k, 1, at.Add(3*time.Hour)))
	bring(t, s, k, at.Add(4*time.Hour), postOf(k, 1, "an older copy", at.Add(time.Hour)))
	if r = onePost(t, s, k, 1); !r.Deleted || r.Text != "" || len(r.Edits) != 0 || len(r.Media) != 0 ||
		r.Reason != "404" || r.PublishedAt == nil {
		t.Fatalf("after the delete: %+v", r)
	}
	bring(t, s, k, at.Add(5*time.Hour), postOf(k, 1, "is back", at.Add(5*time.Hour)))
	if r = onePost(t, s, k, 1); r.Deleted || r.Text != "is back" || len(r.Edits) != 0 {
		t.Fatalf("seen again: %+v", r)
	}
	var names []string
	err := s.Accounts.Posts(0, k, "", func(r store.Record) (bool, error) {
		names = append(names, r.Post)
		return true,
			nil
	})
	if err != nil || len(names) != 2 || s.Stats().Posts != 2 {
		t.Errorf("posts %v, %v, counted %d", names, err, s.Stats().Posts)
	}
	audit(t, s)
}

func TestPostsAreCut(t *testing.T) {
	s, k := newStore(t), account(1)
	admit(t, s, k)
	r := postOf(k, 1, strings.Repeat("á<", store.MaxPostText), epoch())
	r.Raw = []byte(`"` + strings.Repeat("x", store.MaxPostBytes) + `"`)
	for range 5000 {
		r.Mentions = append(r.Mentions, store.Mention{Key: account(1), Name: "somebody"})
	}
	bring(t, s, k, epoch(), r)
	got := onePost(t, s, k, 1)
	b, err := store.PlainJSON(got)
	if err != nil || !got.Cut || len(b) > store.MaxPostBytes || len(got.Text) > store.MaxPostText || got.Raw != nil {
		t.Errorf("%d bytes, %d of text, %v", len(b), len(got.Text), err)
	}
	many := make([]store.Record, store.MaxPosts+1)
	for i := range many {
		many[i] = postOf(k, i, "x", epoch())
	}
	if err := s.Commit(store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StateDone},
		Posts: many}); err == nil {
		t.Error("more posts than may be were taken")
	}
	commit(t, s, store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StateDone},
		Posts: many[:store.MaxPosts]})
	audit(t, s)
}

func TestCommitRefusesStrangePosts(t *testing.T) {
	s, k := newStore(t), account(1)
	admit(t, s, k)
	good := postOf(k, 1, "x", epoch())
	for name, c := range map[string]store.Commit{
		"of another key": {Posts: []store.Record{postOf(account(2), 1, "x", epoch())}},
		"no name":        {Posts: []store.Record{{V: store.RecordVersion, Key: k, Kind: store.KindPost}}},
		"no post": {Posts: []store.Record{{V: store.RecordVersion, Key: k, Kind: store.KindPage,
			Post: good.Post}}},
		"zero byte": {Posts: []store.Record{{V: store.RecordVersion, Key: k, Kind: store.KindPost,
			Post: "a\x00b"}}},
		"no walk":        {Lists: []store.ListPage{{List: k + "/followers"}}},
		"another's list": {Lists: []store.ListPage{{List: account(2) + "/followers", Walk: epoch()}}},
		"no list":        {Lists: []store.ListPage{{List: k, Walk: epoch()}}},
		"no such word":   {Gaps: []store.Gap{{From: epoch(), What: "lost"}}},
		"backwards":      {Gaps: []store.Gap{{From: epoch(), To: epoch().Add(-1 * time.Hour), What: store.GapCut}}},
		"checkpoint":     {Checkpoint: make([]byte, store.MaxCheckpointBytes+1)},
	} {
		c.Key, c.Now, c.Next = k, epoch(), store.Next{State: store.StateDone}
		if err := s.Commit(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if n := len(itemsOf(t, s)); n != 0 {
		t.Errorf("%d rows of what was refused", n)
	}
}

// TestListsOverTime: a list can be rebuilt as it was at any time. An incomplete walk removes no
// account.
func TestListsOverTime(t *testing.T) {
	s, k := newStore(t), account(0)
	list := k + "/followers"
	admit(t, s, k)
	hour := func(n int) time.Time { return epoch().Add(time.Duration(n) * time.Hour) }
	walk := func(n int, complete bool, who ...int) {
		t.Helper()
		for i, w := range who { // one account a page, one page a commit
			p := store.ListPage{List: list, Walk: hour(n), At: hour(n).Add(time.Duration(i) * time.Minute),
				Accounts: []partition.Key{account(w)}, Claimed: 9}
			commit(t, s, store.Commit{Key: k, Now: p.At, Next: store.Next{State: store.StateDone},
				Lists:      []store.ListPage{p},
				Checkpoint: []byte(fmt.Sprint("page ", i))})
		}
		p := store.ListPage{List: list, Walk: hour(n), At: hour(n).Add(30 * time.Minute), End: true, Complete: complete,
			Why: "cut"}
		commit(t, s, store.Commit{Key: k, Now: p.At, Next: store.Next{State: store.StateDone},
			Lists:      []store.ListPage{p},
			Checkpoint: []byte{}})
	}
	walk(0, true, 1, 2)
	walk(10, false, 1) // 2 was not seen, but may be in the list
	walk(20, true, 1, 3)
	walk(30, true, 1, 2)
	at := func(n int) (out []partition.Key) {
		t.Helper()
		err := s.Accounts.Edges(0, list, "", func(e store.Edge) (bool, error) {
			if e.At(hour(n)) {
				out = append(out, e.To)
			}
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for n, want := range map[int][]partition.Key{
		-1: nil, 1: {account(1), account(2)}, 11: {account(1), account(2)}, 21: {account(1), account(3)},
		31: {account(1), account(2)}, 1000: {account(1), account(2)},
	} {
		if d := cmp.Diff(want, at(n)); d != "" {
			t.Errorf("the list at hour %d:\n%s", n, d)
		}
	}
	var walks []string
	err := s.Accounts.Walks(0, list, func(w store.Walk) (bool, error) {
		walks = append(walks, fmt.Sprint(w.Began.Sub(epoch()).Hours(), w.Seen, w.Ended, w.Complete, w.Why))
		return true, nil
	})
	if d := cmp.Diff([]string{"0 2 true true", "10 1 true falsecut", "20 2 true true", "30 2 true true"},
		trimmed(walks)); d != "" || err != nil {
		t.Errorf("walks: %v\n%s", err, d)
	}
	if b, err := s.Accounts.Checkpoint(0, k); err != nil || b != nil {
		t.Errorf("a checkpoint of a list that ended: %q, %v", b, err)
	}
	var lists []partition.Key
	err = s.Accounts.SliceLists(s.SliceOf(k), "", func(l partition.Key) (bool, error) {
		lists = append(lists, l)
		return true,
			nil
	})
	if d := cmp.Diff([]partition.Key{list}, lists); d != "" || err != nil {
		t.Errorf("lists: %v\n%s", err, d)
	}
}

// TestEdgesSayHowSure: an edge says which walks saw it. When a list turns out to be another
// account's, all earlier edges are doubted until a walk sees them again.
func TestEdgesSayHowSure(t *testing.T) {
	s, k := newStore(t), account(0)
	list := k + "/following"
	admit(t, s, k)
	n := 0
	walk := func(end bool, why string, who ...int) {
		t.Helper()
		n++
		p := store.ListPage{List: list, Walk: epoch().Add(time.Duration(n) * time.Hour),
			At: epoch().Add(time.Duration(n)*time.Hour + time.Minute), Claimed: 9, End: end, Complete: end && why == "",
			Why: why}
		for _, w := range who {
			p.Accounts = append(p.Accounts, account(w))
		}
		commit(t, s, store.Commit{Key: k, Now: p.At, Next: store.Next{State: store.StateDone},
			Lists: []store.ListPage{p}})
	}
	is := func(want ...string) {
		t.Helper()
		var got []string
		if err := s.Accounts.Edges(0, list, "", func(e store.Edge) (bool, error) {
			got = append(got, e.Sure)
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("after %d readings:\n%s", n, d)
		}
	}
	walk(false, "", 1)
	is(store.SurePart)
	walk(true, "", 1, 2)
	is(store.SureWhole, store.SureWhole)
	walk(true, "cut", 2, 3)
	is(store.SureWhole, store.SureWhole, store.SurePart)
	walk(true, store.WhyNotTheirs)
	is(store.SureDoubted, store.SureDoubted, store.SureDoubted)
	walk(true, "cut", 2)
	is(store.SureDoubted, store.SurePart, store.SureDoubted)
	walk(true, store.WhyDoubted, 3) // as an older program did, which kept what it did not believe
	is(store.SureDoubted, store.SureDoubted, store.SureDoubted)
	walk(true, "", 3)
	is(store.SureDoubted, store.SureDoubted, store.SureWhole)
}

func trimmed(in []string) (out []string) {
	for _, s := range in {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// TestItemsJoin: states that two peers made separately join to one state in any order and grouping.
// Joining again changes nothing.
func TestItemsJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var given []map[string]string
		for range 3 {
			s := create(t, vfs.NewMem())
			admit(t, s, account(0))
			for range rapid.IntRange(0, 6).Draw(t, "commits") {
				c := store.Commit{Key: account(0),
					Now:  epoch().Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "hour")) * time.Hour),
					Next: store.Next{State: store.StateDone}}
				drawSocial(t, &c)
				commit(t, s, c)
			}
			audit(t, s)
			given = append(given, itemsOf(t, s))
			closeStore(t, s)
		}
		join := func(x, y map[string]string) map[string]string {
			out := map[string]string{}
			for _, m := range []map[string]string{x, y} {
				for row, v := range m {
					had, ok := out[row]
					if !ok {
						out[row] = v
						continue
					}
					id, err := format.SplitItem(format.Table(row[0]), []byte(row))
					if err != nil {
						t.Fatal(err)
					}
					b, err := format.JoinItem(id, []byte(had), []byte(v))
					if err != nil {
						t.Fatal(err)
					}
					if _, _, err := format.CheckItem(id, b); err != nil {
						t.Fatalf("what was joined would be refused: %v", err)
					}
					out[row] = string(b)
				}
			}
			return out
		}
		a, b, c := given[0], given[1], given[2]
		want := join(join(a, b), c)
		for name, got := range map[string]map[string]string{
			"grouped otherwise": join(a, join(b, c)), "in another order": join(c, join(b, a)),
			"again": join(want, want), "an old one again": join(want, a), "old below": join(b, want),
		} {
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s:\n%s", name, d)
			}
		}
	})
}

// TestItemsAreReplicated: what an owner commits is at a follower of its log and at a peer that
// imports its rows, all of it once. It is deleted with the slice.
func TestItemsAreReplicated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner, follower, importer := create(t, vfs.NewMem()), create(t, vfs.NewMem()), create(t, vfs.NewMem())
		for _, s := range []*Store{owner, follower, importer} {
			defer closeStore(t, s)
		}
		sl := owner.SliceOf(account(0))
		owner.Log.SetLogged(true, sl)
		admit(t, owner, account(0))
		for n := range rapid.IntRange(1, 8).Draw(t, "commits") {
			c := store.Commit{Key: account(0), Now: epoch().Add(time.Duration(n) * 40 * time.Minute),
				Next: store.Next{State: store.StateDone}}
			drawSocial(t, &c)
			commit(t, owner, c)
			if rapid.Bool().Draw(t, "ship") {
				follow(t, owner, follower, sl)
			}
		}
		follow(t, owner, follower, sl)
		if err := importer.Log.ImportRows(sl, rapid.Permutation(sliceRows(t, owner, sl, 1<<20)).Draw(t,
			"order")); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Store{"follower": follower, "importer": importer} {
			if d := cmp.Diff(itemsOf(t, owner), itemsOf(t, s)); d != "" {
				t.Fatalf("%s:\n%s", name, d)
			}
			sameSlice(t, owner, s, sl)
			audit(t, s)
		}
		if err := follower.Log.DropSlice(sl); err != nil {
			t.Fatal(err)
		}
		if left := itemsOf(t, follower); len(left) != 0 || follower.Stats().Posts != 0 {
			t.Fatalf("left of a dropped slice: %v", left)
		}
	})
}

// TestItemsAreCapped: the latest gaps and walks stay, the same at every replica.
func TestItemsAreCapped(t *testing.T) {
	owner, follower := newStore(t), newStore(t)
	k, sl := account(0), owner.SliceOf(account(0))
	owner.Log.SetLogged(true, sl)
	admit(t, owner, k)
	for n := range store.MaxKeyGaps/store.MaxGaps + 2 {
		c := store.Commit{Key: k, Now: epoch().Add(time.Duration(n) * time.Hour),
			Next: store.Next{State: store.StateDone}}
		for i := range store.MaxGaps {
			c.Gaps = append(c.Gaps, store.Gap{From: c.Now.Add(time.Duration(i) * time.Second), What: store.GapLimited})
		}
		commit(t, owner, c)
		if n == 1 {
			follow(t, owner, follower, sl)
		}
	}
	follow(t, owner, follower, sl)
	n := 0
	var first store.Gap
	err := follower.Accounts.Gaps(0, k, func(g store.Gap) (bool, error) {
		if n++; n == 1 {
			first = g
		}
		return true, nil
	})
	if err != nil || n != store.MaxKeyGaps || !first.From.Equal(epoch().Add(2*time.Hour)) {
		t.Errorf("%d gaps from %s, %v", n, first.From, err)
	}
	sameSlice(t, owner, follower, sl)
}

func TestKeysFrom(t *testing.T) {
	s := newStore(t)
	var all []partition.Key
	for n := range 4 {
		admit(t, s, account(n))
		all = append(all, account(n))
	}
	page := key("a.example", 1)
	admit(t, s, page)
	commit(t, s, done(page, "text", epoch()))
	bring(t, s, all[0], epoch(), postOf(all[0], 1, "x", epoch()))
	commit(t, s, store.Commit{Key: all[1], Now: epoch(), Next: store.Next{State: store.StatePending},
		Gaps: []store.Gap{{From: epoch(), What: store.GapUnreachable}}})
	commit(t, s, store.Commit{Key: all[2], Now: epoch(), Next: store.Next{State: store.StateDone},
		Lists: []store.ListPage{{List: all[2] + "/following", Walk: epoch(), Accounts: all}}})
	keys := func(sl partition.Slice, from partition.Key, only string) map[partition.Key]bool {
		t.Helper()
		out := map[partition.Key]bool{}
		err := s.KeysFrom(sl, from, only, func(sl partition.Slice, k partition.Key) (bool, error) {
			if out[k] {
				t.Errorf("%s twice", k)
			}
			out[k] = true
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for only, want := range map[string][]partition.Key{"": {page, all[0], all[1], all[2] + "/following"},
		store.KindPost: {all[0]}, store.KindGap: {all[1]}, store.KindEdges: {page, all[2] + "/following"}} {
		got := keys(0, "", only)
		for _, k := range want {
			if !got[k] {
				t.Errorf("%q: no %s", only, k)
			}
			if keys(0, k, only)[k] {
				t.Errorf("%q: %s after itself", only, k)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q: %v", only, got)
		}
	}
}

// FuzzItem: a state that another peer sends is refused, or it is one that joins.
func FuzzItem(f *testing.F) {
	k := account(0)
	post, err := format.NewPost(postOf(k, 1, "text", epoch()))
	if err != nil {
		f.Fatal(err)
	}
	state, err := post.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(format.TabPost), string(k), post.Record.Post, state)
	f.Add(byte(format.TabEdge), string(k+"/followers"), string(account(1)), format.Edge{{First: epoch(),
		Last: epoch()}}.Encode())
	f.Add(byte(format.TabWalk), string(k+"/followers"), string(store.TimePart(epoch())),
		format.EncodeWalk(store.Walk{At: epoch(), Seen: 3, Claimed: -1, Ended: true}))
	f.Add(byte(format.TabCheckpoint), string(k), "", format.Checkpoint{At: epoch(), Bytes: []byte("x")}.Encode())
	g := store.Gap{Key: k, From: epoch(), At: epoch(), What: store.GapCut}
	if state, err = store.PlainJSON(g); err != nil {
		f.Fatal(err)
	}
	f.Add(byte(format.TabGap), string(k), g.Part(), state)
	o := store.Override{V: store.OverrideVersion, Key: k, Verdict: "in", By: "ana", At: epoch()}
	if state, err = store.PlainJSON(o); err != nil {
		f.Fatal(err)
	}
	f.Add(byte(format.TabOverride), string(k), o.Part(), state)
	f.Add(byte(format.TabAttempt), string(k), "",
		format.EncodeTrial(store.Trial{Open: attemptAt(2, "b"), Deaths: []store.Attempt{attemptAt(1, "a")}}))
	f.Fuzz(func(t *testing.T, tab byte, key, part string, b []byte) {
		if !format.IsItem(format.Table(tab)) {
			return
		}
		id := format.ItemID{Table: format.Table(tab), Key: partition.Key(key), Part: part}
		state, _, err := format.CheckItem(id, b)
		if err != nil {
			return
		}
		again, _, err := format.CheckItem(id, state)
		if err != nil || !bytes.Equal(again, state) {
			t.Fatalf("%q came back as %q, %v", state, again, err)
		}
		if both, err := format.JoinItem(id, state, append(state[:len(state):len(state)], ' ')); err == nil &&
			id.Table != format.TabPost && id.Table != format.TabGap && id.Table != format.TabOverride &&
			!bytes.Equal(both, state) {
			t.Fatalf("%q with itself is %q", state, both)
		}
	})
}

// TestI3SocialIsOneBatch: after a crash, all data of one fetch is there, or nothing.
func TestI3SocialIsOneBatch(t *testing.T) {
	k := account(0)
	allOrNothing(t, func(s *Store) {
		admit(t, s, k)
		commit(t, s, withSocial(store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StateDone}}, "one"))
	}, func(s *Store) {
		c := withSocial(store.Commit{Key: k, Now: epoch().Add(time.Hour),
			Record: record(k, "profile", epoch().Add(time.Hour)), Next: store.Next{State: store.StateDone}}, "two")
		c.Posts = append(c.Posts, tombstone(k, 2, c.Now.Add(time.Minute)))
		c.Lists = []store.ListPage{{List: k + "/following", Walk: epoch(), Accounts: []partition.Key{account(1),
			account(2)},
			End: true, Complete: true}}
		commit(t, s, c)
	})
}

func TestPostOfNothing(t *testing.T) {
	s := newStore(t)
	if _, _, err := s.Accounts.Post(account(0), "x"); !errors.Is(err, store.ErrNotExist) {
		t.Error(err)
	}
	if b, err := s.Accounts.Checkpoint(0, account(0)); b != nil || err != nil {
		t.Error(b, err)
	}
}

// TestItemsOfAPlacedKey: in geo mode, the data of one fetch is in one slice: the cell in which it
// was fetched. It is deleted, here and at a follower, from a slice that the Key left before its
// fetch was done.
func TestItemsOfAPlacedKey(t *testing.T) {
	owner, follower := geoStore(t, vfs.NewMem()), geoStore(t, vfs.NewMem())
	defer closeStore(t, owner)
	defer closeStore(t, follower)
	k, cell := key("a.example", 1), cellAt(5)
	home := owner.SliceOf(k)
	owner.Log.SetLogged(true, home, cell)
	admit(t, owner, k)
	uri := postOf(k, 1, "", epoch()).Post
	c := withSocial(store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StatePending}}, "begun")
	commit(t, owner, c)
	follow(t, owner, follower, home)
	if _, at, err := follower.Accounts.Post(k, uri); err != nil || at != home {
		t.Fatalf("before the move it is in %s, %v", at, err)
	}
	c = withSocial(store.Commit{Key: k, Now: epoch().Add(time.Hour), Next: store.Next{State: store.StatePending}},
		"more")
	c.Place = &store.Placement{Unit: owner.engine.Charter().Unit(k), To: cell, Gen: 1, At: c.Now, Why: "because"}
	commit(t, owner, c)
	if n, err := owner.Queue.Move(home, k, store.Pace{}, c.Now.Add(time.Minute)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	follow(t, owner, follower, home)
	for _, s := range []*Store{owner, follower} {
		if left := itemsOf(t, s); len(left) != 0 {
			t.Fatalf("left of a placed key: %v", left)
		}
		audit(t, s)
	}
	sameSlice(t, owner, follower, home)
	if _, err := owner.Queue.Admit([]store.Admission{{Key: k, In: cell, Gen: 1}},
		epoch().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	c = withSocial(store.Commit{Key: k, Slice: cell, Now: epoch().Add(3 * time.Hour),
		Next: store.Next{State: store.StateDone}}, "there")
	commit(t, owner, c)
	follow(t, owner, follower, cell)
	for _, s := range []*Store{owner, follower} {
		r, at, err := s.Accounts.Post(k, uri)
		where, err2 := s.Archive.Where(k)
		if err := errors.Join(err, err2); err != nil || at != cell || where != cell || r.Text != "there" {
			t.Fatalf("%q in %s, %s: %v", r.Text, at, where, err)
		}
		if err := s.Log.DropSlice(cell); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Accounts.Post(k, uri); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("after the drop: %v", err)
		}
		if where, err := s.Archive.Where(k); err != nil || where != home {
			t.Errorf("after the drop it is looked for in %s, %v", where, err)
		}
		audit(t, s)
	}
}
