package index

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

func postsOf(k partition.Key, from, n int, text string, at time.Time) (out []store.Record) {
	for i := range n {
		out = append(out, store.Record{V: store.RecordVersion, Key: k, Kind: store.KindPost,
			Post:      fmt.Sprintf("https://s.example/%05d", from+i),
			FetchedAt: at, Lang: "pt", Text: text})
	}
	return out
}

func bring(t testing.TB, s *db.Store, k partition.Key, at time.Time, posts ...store.Record) {
	t.Helper()
	if _, err := s.Queue.Admit([]store.Admission{{Key: k}}, epoch()); err != nil {
		t.Fatal(err)
	}
	profile := &store.Record{V: store.RecordVersion, Key: k, Kind: store.KindProfile, FetchedAt: at, Title: "pessoa",
		Text: "autocarro perfil"}
	if err := s.Commit(store.Commit{Key: k, Now: at, Record: profile, Posts: posts,
		Next: store.Next{State: store.StateDone}}); err != nil {
		t.Fatal(err)
	}
}

func hits(t testing.TB, ix *Index, q Query) (out []string) {
	t.Helper()
	q.Limit = 5000
	res, err := ix.Search(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range res.Hits {
		out = append(out, string(h.Key)+" "+h.Post)
	}
	if int(res.Total) != len(out) {
		t.Errorf("%d hits of %d", len(out), res.Total)
	}
	return out
}

// TestPostsAreDocuments: each post is found separately by its words, kind, site and time. Equal
// scores are ordered by Key and Post. A deleted post is never found after its tombstone.
func TestPostsAreDocuments(t *testing.T) {
	s, _ := sliced(t, 3)
	ix := openIndex(t, "", s)
	a, b := partition.Key("mastodon:a@s.example"), partition.Key("mastodon:aa@s.example")
	bring(t, s, b, epoch(), postsOf(b, 0, 2, "autocarro", epoch())...)
	bring(t, s, a, epoch().Add(time.Hour), postsOf(a, 0, 2, "autocarro", epoch().Add(time.Hour))...)
	flush(t, ix)
	p := func(k partition.Key, n int) string { return fmt.Sprintf("%s https://s.example/%05d", k, n) }
	all := []string{p(a, 0), p(a, 1), p(b, 0), p(b, 1)}
	for _, c := range []struct {
		q    Query
		want []string
	}{
		{Query{Text: "autocarro", Kind: "post"}, all},
		{Query{Text: "autocarro", Lang: "pt"}, all},
		{Query{Kind: "profile"}, []string{string(a) + " ", string(b) + " "}},
		{Query{Kind: "post", Site: "mastodon:s.example"}, all},
		{Query{Kind: "post", Since: epoch().Add(time.Minute)}, all[:2]},
		{Query{Kind: "post", Until: epoch().Add(time.Minute)}, all[2:]},
		{Query{Kind: "post", Site: "mastodon:x.example"}, nil},
	} {
		if d := cmp.Diff(c.want, hits(t, ix, c.q)); d != "" {
			t.Errorf("%+v:\n%s", c.q, d)
		}
	}
	gone := postsOf(a, 1, 1, "", epoch().Add(2*time.Hour))
	gone[0].Deleted = true
	edited := postsOf(b, 0, 1, "metro", epoch().Add(2*time.Hour))
	bring(t, s, a, epoch().Add(2*time.Hour), gone...)
	if d := cmp.Diff([]string{p(a, 0), p(b, 0), p(b, 1)},
		hits(t, ix, Query{Text: "autocarro", Kind: "post"})); d != "" {
		t.Errorf("before the index has followed:\n%s", d)
	}
	bring(t, s, b, epoch().Add(2*time.Hour), edited...)
	flush(t, ix)
	if d := cmp.Diff([]string{p(a, 0), p(b, 1)}, hits(t, ix, Query{Text: "autocarro", Kind: "post"})); d != "" {
		t.Errorf("after a delete and an edit:\n%s", d)
	}
	if err := s.Log.DropSlice(s.SliceOf(a)); err != nil {
		t.Fatal(err)
	}
	flush(t, ix)
	for _, h := range hits(t, ix, Query{Kind: "post"}) {
		if h == p(a, 0) {
			t.Error("a post of a dropped slice is found")
		}
	}
}

// TestSliceWithPostsIsRead: the scan of a slice reads all its posts, and resumes where it was
// stopped.
func TestSliceWithPostsIsRead(t *testing.T) {
	s, sls := sliced(t, 10)
	want := 0
	for n := range 5 {
		k := partition.Key(fmt.Sprintf("mastodon:u%d@s.example", n))
		bring(t, s, k, epoch(), postsOf(k, 0, 3*batchDocs/2, "todos", epoch())...)
		want += 3 * batchDocs / 2
	}
	dir := filepath.Join(t.TempDir(), "index")
	for n := 0; ; n++ {
		ix, err := Open(dir, s, Options{Slices: sls, Linger: -1})
		if err != nil {
			t.Fatal(err)
		}
		ix.Keep(sls)
		if _, err := ix.advance(); err != nil {
			t.Fatal(err)
		}
		done := ix.Waiting() == 0
		if done {
			flush(t, ix)
			if got := len(hits(t, ix, Query{Text: "todos", Slices: sls})); got != want {
				t.Errorf("%d posts of %d", got, want)
			}
		}
		closeIndex(t, ix)
		if done {
			if n < 4 {
				t.Errorf("read in %d pieces: nothing was resumed", n+1)
			}
			return
		}
		if n > 100 {
			t.Fatal("it does not come to an end")
		}
	}
}
