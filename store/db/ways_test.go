package db

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// The Keys that may show the posts of account 1.
const (
	publicKey = partition.Key("mastodon:social.example/public")
	tagKey    = partition.Key("mastodon:social.example/tag/echo")
)

// shownBy returns a post of account 1 as a timeline shows it.
func shownBy(k partition.Key, n int, text string, at time.Time) store.Record {
	r := postOf(k, n, text, at)
	r.By = account(1)
	return r
}

// TestWhatIsFoundOfAPostReachesAllItsRows: a deletion, an edit and a wish not to be archived reach
// every row of the post, whatever Key showed it.
func TestWhatIsFoundOfAPostReachesAllItsRows(t *testing.T) {
	ways := []partition.Key{account(1), publicKey, tagKey}
	for _, seen := range ways {
		t.Run(string(seen), func(t *testing.T) {
			s, at := newStore(t), epoch()
			admit(t, s, ways...)
			admit(t, s, account(2))
			found := store.Record{}
			for _, k := range ways {
				r := shownBy(k, 1, "first", at)
				if r.Media, r.Raw = []store.Media{{URL: "https://social.example/m"}},
					[]byte(`{"id":1}`); k == account(1) {
					r.By = ""
				}
				bring(t, s, k, at, r)
			}
			all := func(what string, good func(store.Record) bool) {
				t.Helper()
				for _, k := range ways {
					r := onePost(t, s, k, 1)
					if own := r.By == ""; !good(r) || own != (k == account(1)) {
						t.Errorf("%s, under %s: %+v", what, k, r)
					}
				}
				audit(t, s)
			}
			show := func(text string, at time.Time) store.Record {
				if found = shownBy(seen, 1, text, at); seen == account(1) {
					found.By = ""
				}
				found.EditedAt = &at
				return found
			}
			at = at.Add(time.Hour)
			bring(t, s, seen, at, show("second", at))
			all("edited", func(r store.Record) bool {
				return r.Text == "second" && len(r.Edits) == 1 &&
					r.Edits[0].Text == "first"
			})
			at = at.Add(time.Hour)
			wish := show("", at)
			wish.NoIndex = true
			bring(t, s, seen, at, wish)
			all("not to be indexed", func(r store.Record) bool {
				return r.NoIndex && r.Text == "" &&
					len(r.Edits) == 0
			})
			at = at.Add(time.Hour)
			bring(t, s, seen, at, tombstone(seen, 1, at))
			all("deleted", func(r store.Record) bool {
				return r.Deleted && r.Text == "" && len(r.Raw)+len(r.Media)+len(r.Edits) == 0 && r.Reason == "404"
			})
		})
	}
}

// TestATimelineDoesNotBringBackWhatItsAccountDeleted: a page of a timeline may be older than the
// deletion. It brings the post back neither in the timeline's own row nor in a new one. Only the
// account itself shows a post again.
func TestATimelineDoesNotBringBackWhatItsAccountDeleted(t *testing.T) {
	s, at, k := newStore(t), epoch(), account(1)
	admit(t, s, k, publicKey, tagKey)
	bring(t, s, k, at, postOf(k, 1, "text", at))
	bring(t, s, publicKey, at, shownBy(publicKey, 1, "text", at))
	at = at.Add(time.Minute)
	bring(t, s, k, at, tombstone(k, 1, at))
	at = at.Add(time.Minute)
	bring(t, s, publicKey, at, shownBy(publicKey, 1, "text", at))
	bring(t, s, tagKey, at, shownBy(tagKey, 1, "text", at))
	for _, w := range []partition.Key{k, publicKey} {
		if r := onePost(t, s, w, 1); !r.Deleted || r.Text != "" {
			t.Errorf("%s: %+v", w, r)
		}
	}
	if _, _, err := s.Accounts.Post(tagKey, postOf(k, 1, "", at).Post); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a new row of a deleted post: %v", err)
	}
	at = at.Add(time.Minute)
	bring(t, s, k, at, postOf(k, 1, "text", at))
	for _, w := range []partition.Key{k, publicKey} {
		if r := onePost(t, s, w, 1); r.Deleted || r.Text != "text" {
			t.Errorf("shown again, %s: %+v", w, r)
		}
	}
}

// TestNoServerSpeaksOfTheRowsOfAnother: what one server says about a post changes no row of another
// site in the same slice, even when it uses the same URI.
func TestNoServerSpeaksOfTheRowsOfAnother(t *testing.T) {
	s, at, k := newStore(t), epoch(), account(1)
	evil := partition.Key("")
	for n := 0; evil == ""; n++ {
		if e := partition.Key(fmt.Sprintf("mastodon:evil%d.example/public", n)); s.SliceOf(e) == s.SliceOf(k) {
			evil = e
		}
	}
	admit(t, s, k, publicKey, evil)
	bring(t, s, k, at, postOf(k, 1, "text", at))
	bring(t, s, publicKey, at, shownBy(publicKey, 1, "text", at))
	at = at.Add(time.Minute)
	gone := tombstone(evil, 1, at)
	gone.By = k
	bring(t, s, evil, at, gone)
	edited := shownBy(evil, 1, "something else", at.Add(time.Minute))
	edited.EditedAt = &at
	bring(t, s, evil, at.Add(time.Minute), edited)
	for _, w := range []partition.Key{k, publicKey} {
		if r := onePost(t, s, w, 1); r.Deleted || r.Text != "text" {
			t.Errorf("%s: %+v", w, r)
		}
	}
}

// TestADeletionSeenInATimelineWithdrawsFiles: the files of the deleted post are withdrawn. Files
// that another post names stay.
func TestADeletionSeenInATimelineWithdrawsFiles(t *testing.T) {
	s, at, k := newStore(t), epoch(), account(1)
	admit(t, s, k, publicKey)
	commit(t, s, wanting(store.Commit{Key: k, Now: at, Next: store.Next{State: store.StateDone},
		Posts: []store.Record{naming(postOf(k, 1, "one", at), "a", "b"), naming(postOf(k, 2, "two", at), "b")}}))
	a, b := fileKey(t, k, "a"), fileKey(t, k, "b")
	at = at.Add(time.Minute)
	commit(t, s, fetched(a, "the file", at))
	commit(t, s, fetched(b, "another", at))
	at = at.Add(time.Minute)
	bring(t, s, publicKey, at, shownBy(publicKey, 1, "one", at))
	at = at.Add(time.Minute)
	bring(t, s, publicKey, at, tombstone(publicKey, 1, at))
	if d, err := s.Queue.DueOf(a); err != nil || d.State != store.StateGone || d.Reason != format.Withdrawn {
		t.Errorf("a file of the deleted post: %+v %v", d, err)
	}
	if d, err := s.Queue.DueOf(b); err != nil || d.State != store.StateDone {
		t.Errorf("a file of another post: %+v %v", d, err)
	}
	audit(t, s)
}

// TestRowsOfOnePostThroughCrashes: after a crash, all rows of a post say the same.
func TestRowsOfOnePostThroughCrashes(t *testing.T) {
	for ops := range 40 {
		fs := vfs.NewCrashableMem()
		s, at, k := create(t, fs), epoch(), account(1)
		admit(t, s, k, publicKey, tagKey)
		bring(t, s, k, at, postOf(k, 1, "text", at))
		for _, w := range []partition.Key{publicKey, tagKey} {
			bring(t, s, w, at, shownBy(w, 1, "text", at))
		}
		for n := range ops % 4 {
			at = at.Add(time.Minute)
			bring(t, s, k, at, postOf(k, 2, fmt.Sprint(n), at))
		}
		done := make(chan error, 1)
		go func() {
			at := at.Add(time.Minute)
			done <- s.Commit(store.Commit{Key: tagKey, Now: at, Next: store.Next{State: store.StateDone},
				Posts: []store.Record{tombstone(tagKey, 1, at)}})
		}()
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: newRNG()})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = reopen(t, left)
		gone := onePost(t, s, tagKey, 1).Deleted
		for _, w := range []partition.Key{k, publicKey} {
			if r := onePost(t, s, w, 1); r.Deleted != gone {
				t.Errorf("after a crash: %s deleted %t, the tag %t", w, r.Deleted, gone)
			}
		}
		audit(t, s)
		closeStore(t, s)
	}
}
