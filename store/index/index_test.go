package index

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

func epoch() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func newStore(t testing.TB) *db.Store {
	t.Helper()
	s, err := db.Create("store",
		store.Options{FS: vfs.NewMem(), Charter: partition.DefaultCharter("test", "12D3KooWfounder")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openIndex(t testing.TB, dir string, s *db.Store) *Index {
	t.Helper()
	ix, err := Open(dir, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIndex(t, ix) })
	return ix
}

func closeIndex(t testing.TB, ix *Index) {
	t.Helper()
	if err := ix.Close(); err != nil {
		t.Error(err)
	}
}

// page returns the record of a page on host.
func page(host string, n int, title, text string) store.Record {
	k, err := partition.ParseKey(fmt.Sprintf("https://%s/p%d", host, n))
	if err != nil {
		panic(err)
	}
	return store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(),
		FetchedAt: epoch().Add(time.Duration(n) * time.Hour),
		Title:     title, Text: text, Lang: "pt", Peer: "p"}
}

// commit stores the records rs.
func commit(t testing.TB, s *db.Store, rs ...store.Record) {
	t.Helper()
	for i := range rs {
		r := rs[i]
		if _, err := s.Queue.Admit([]store.Admission{{Key: r.Key}}, epoch()); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(store.Commit{Key: r.Key, Now: r.FetchedAt, Record: &r,
			Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
}

func flush(t testing.TB, ix *Index) {
	t.Helper()
	if err := ix.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// find returns the Keys of the hits of q, without "web:https://".
func find(t testing.TB, ix *Index, q Query) []string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	res, err := ix.Search(context.Background(), q, nil)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	var out []string
	for _, h := range res.Hits {
		out = append(out, strings.TrimPrefix(string(h.Key), "web:https://"))
	}
	if res.Total != uint64(len(out)) {
		t.Errorf("%+v: total %d, %d hits", q, res.Total, len(out))
	}
	return out
}

func TestQueryLanguage(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	en := page("b.example", 4, "River cruise", "The Tagus river in Lisbon. Send an e-mail.")
	en.Lang, en.Kind = "en-GB", "post"
	commit(t, s,
		page("a.example", 1, "Lisbôa antiga", "A cidade de Lisboa fica junto ao rio Tejo."),
		page("a.example", 2, "Porto", "O rio Douro passa pelo Porto. L’eau de Lisboa."),
		page("b.example", 3, "東京タワー", "東京 の 塔"),
		en)
	flush(t, ix)
	for _, tt := range []struct {
		q    Query
		want []string
	}{
		{Query{Text: "lisboa"}, []string{"a.example/p1", "a.example/p2"}},
		{Query{Text: "LISBÔA"}, []string{"a.example/p1", "a.example/p2"}},
		{Query{Text: "Lisbo\u0302a"}, []string{"a.example/p1", "a.example/p2"}},
		{Query{Text: "rio -porto"}, []string{"a.example/p1"}},
		{Query{Text: "rio -\"rio douro\""}, []string{"a.example/p1"}},
		{Query{Text: `"rio tejo"`}, []string{"a.example/p1"}},
		{Query{Text: `"tejo rio"`}, nil},
		{Query{Text: `"antiga a"`}, nil}, // not across the end of the title
		{Query{Text: "tejo douro"}, nil},
		{Query{Text: "eau"}, []string{"a.example/p2"}},
		{Query{Text: "e-mail"}, []string{"b.example/p4"}},
		{Query{Text: "mail-e"}, nil},
		{Query{Text: "東京"}, []string{"b.example/p3"}},
		{Query{Text: "river", Lang: "en"}, []string{"b.example/p4"}},
		{Query{Text: "river", Lang: "en-gb", Kind: "post"}, []string{"b.example/p4"}},
		{Query{Text: "river", Lang: "en-us"}, nil},
		{Query{Kind: "post"}, []string{"b.example/p4"}},
		{Query{Text: "-porto -river", Site: "web:a.example"}, []string{"a.example/p1"}},
		{Query{Text: "rio", Since: epoch().Add(2 * time.Hour)}, []string{"a.example/p2"}},
		{Query{Text: "rio", Until: epoch().Add(2 * time.Hour)}, []string{"a.example/p1"}},
		{Query{Text: "rio", Slices: []partition.Slice{}}, nil},
		{Query{Text: "river", Slices: []partition.Slice{s.SliceOf(en.Key)}}, []string{"b.example/p4"}},
		{Query{Text: "rio", Slices: []partition.Slice{s.SliceOf(en.Key)}}, nil},
		{Query{Text: "nowhere"}, nil},
	} {
		if got := find(t, ix, tt.q); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.q, got, tt.want)
		}
	}
}

func TestFollowsTheStore(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	r := page("a.example", 1, "one", "first words")
	commit(t, s, r, page("b.example", 1, "two", "second words"))
	flush(t, ix)
	r.Text, r.FetchedAt = "changed words", r.FetchedAt.Add(time.Hour)
	commit(t, s, r)
	flush(t, ix)
	if got := find(t, ix, Query{Text: "first"}); len(got) != 0 {
		t.Errorf("the old text is found: %v", got)
	}
	if got := find(t, ix, Query{Text: "changed"}); len(got) != 1 {
		t.Errorf("the new text is not found: %v", got)
	}
	st, err := ix.Statistics(context.Background(), Query{Text: "words"})
	if err != nil || st.Docs != 2 || st.DF["words"] != 2 {
		t.Errorf("%+v %v", st, err)
	}
	r.Canonical, r.FetchedAt = r.Key+"/original", r.FetchedAt.Add(time.Hour)
	commit(t, s, r)
	flush(t, ix)
	if got := find(t, ix, Query{Text: "changed"}); len(got) != 0 {
		t.Errorf("a copy of another page of its domain is found: %v", got)
	}
	r.Canonical, r.FetchedAt = "web:https://elsewhere.example/", r.FetchedAt.Add(time.Hour)
	commit(t, s, r)
	flush(t, ix)
	if got := find(t, ix, Query{Text: "changed"}); len(got) != 1 {
		t.Errorf("what names a page of another domain is not found: %v", got)
	}
	r.NoIndex, r.Text, r.FetchedAt = true, "", r.FetchedAt.Add(time.Hour)
	commit(t, s, r)
	if err := s.Log.DropSlice(s.SliceOf("web:https://b.example/p1")); err != nil {
		t.Fatal(err)
	}
	flush(t, ix)
	if got := find(t, ix, Query{}); len(got) != 0 {
		t.Errorf("found after noindex and drop: %v", got)
	}
	all := []partition.Slice{s.SliceOf(r.Key), s.SliceOf("web:https://b.example/p1")}
	if st, err = ix.Statistics(context.Background(), Query{Text: "words", Slices: all}); err != nil || st.Docs != 0 ||
		st.DF["words"] != 0 {
		t.Errorf("%+v %v", st, err)
	}
}

func TestRunIsWokenByCommits(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ix.Run(ctx) }()
	commit(t, s, page("a.example", 1, "one", "words"))
	deadline := time.Now().Add(10 * time.Second)
	for len(find(t, ix, Query{Text: "words"})) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("Run did not index the commit")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
}

func TestRebuilt(t *testing.T) {
	s := newStore(t)
	dir := filepath.Join(t.TempDir(), "index")
	for n := range 600 { // more than one batch
		commit(t, s, page(fmt.Sprintf("h%d.example", n%7), n, "t", "all of them"))
	}
	check := func(what string, st *db.Store, want int) {
		t.Helper()
		ix, err := Open(dir, st, Options{})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer closeIndex(t, ix)
		flush(t, ix)
		if n := ix.Waiting(); n != 0 {
			t.Errorf("%s: %d slices are not read after all was", what, n)
		}
		if ix.Seq() < st.LastChange() {
			t.Errorf("%s: at %d of %d after all was read", what, ix.Seq(), st.LastChange())
		}
		if got := len(find(t, ix, Query{Text: "all", Limit: 1000})); got != want {
			t.Errorf("%s: %d found, want %d", what, got, want)
		}
	}
	check("new", s, 600)
	check("again", s, 600)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	check("deleted", s, 600)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("not what it was"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("corrupt", s, 600)
	if err := s.TrimChanges(s.LastSeq()); err != nil {
		t.Fatal(err)
	}
	check("trimmed", s, 600)
	check("another store's", newStore(t), 0)
	check("behind a trimmed log", s, 600)
}

// TestI8ScoresWhereverDocumentsAre: with the merged Stats, three indexes together give the same
// answer as one that has everything. An index with replicas of everything answers only for its
// assigned slices.
func TestI8ScoresWhereverDocumentsAre(t *testing.T) {
	vocabulary := []string{"rio", "mar", "serra", "cidade", "praia", "ponte", "castelo", "vinho"}
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%s ", vocabulary[int(float64(len(vocabulary))*rng.Float64()*rng.Float64())])
		}
		return b.String()
	}
	one := newStore(t)
	parts := []*db.Store{newStore(t), newStore(t), newStore(t)}
	assigned := make([][]partition.Slice, 3)
	has := map[partition.Slice]bool{}
	for n := range 300 {
		r := page(fmt.Sprintf("h%d.example", n%60), n, text(1+n%4), text(5+rng.IntN(200)))
		if n%9 == 0 { // equal scores
			r = page(fmt.Sprintf("h%d.example", n%60), n, "rio", "mar mar")
		}
		sl := one.SliceOf(r.Key)
		at := int(uint64(sl)>>50) % 3
		commit(t, one, r)
		commit(t, parts[at], r)
		if !has[sl] {
			has[sl] = true
			assigned[at] = append(assigned[at], sl)
		}
	}
	dir := t.TempDir()
	whole := openIndex(t, filepath.Join(dir, "whole"), one)
	flush(t, whole)
	var ixs []*Index
	for i, s := range parts {
		ixs = append(ixs, openIndex(t, filepath.Join(dir, fmt.Sprint(i)), s))
		flush(t, ixs[i])
	}
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(append(vocabulary, "-rio", `"mar rio"`, "nada")), 1, 4).Draw(t,
			"words")
		q := Query{Text: strings.Join(words, " "), Limit: 400}
		want, err := whole.Search(ctx, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		replicas := rapid.Bool().Draw(t, "replicas")
		use := func(i int) (*Index, Query) {
			if q := q; replicas {
				q.Slices = assigned[i]
				return whole, q
			}
			return ixs[i], q
		}
		order := rapid.Permutation([]int{0, 1, 2}).Draw(t, "order")
		var st Stats
		for _, i := range order {
			ix, q := use(i)
			own, err := ix.Statistics(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			st = st.Merge(own)
		}
		var got []Hit
		var total uint64
		for _, i := range order {
			ix, q := use(i)
			res, err := ix.Search(ctx, q, &st)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, res.Hits...)
			total += res.Total
		}
		slices.SortFunc(got, Hit.Compare)
		if len(got) != len(want.Hits) || total != want.Total {
			t.Fatalf("%q: %d hits of %d, one index has %d of %d", q.Text, len(got), total, len(want.Hits), want.Total)
		}
		for i, h := range got {
			if w := want.Hits[i]; h.Key != w.Key || math.Abs(h.Score-w.Score) > 1e-9 {
				t.Fatalf("%q: hit %d is %s %v, one index has %s %v", q.Text, i, h.Key, h.Score, w.Key, w.Score)
			}
		}
	})
}

// A few changes are searchable after a short time. With many changes, a segment gets some hundred
// documents.
func TestGatherAt(t *testing.T) {
	for _, c := range []struct {
		docs int64
		took time.Duration
		want time.Duration
	}{
		{0, 0, gatherFor}, {1, time.Hour, gatherFor}, {7, time.Second, gatherFor}, {200, time.Hour, gatherFor},
		{10, time.Second, gatherMost}, {64, 2 * time.Second, gatherMost}, {64, time.Second, 2 * time.Second},
		{128, time.Second, time.Second}, {1 << 40, time.Millisecond, gatherFor},
	} {
		if got := gatherAt(c.docs, c.took); got != c.want {
			t.Errorf("%d documents in %s: %s, want %s", c.docs, c.took, got, c.want)
		}
	}
}
