package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// sliced returns a store of a few slices with pages in each.
func sliced(t testing.TB, pages int) (s *db.Store, sls []partition.Slice) {
	t.Helper()
	c := partition.DefaultCharter("test", "12D3KooWfounder")
	c.SliceBits = 2
	s, err := db.Create("store", store.Options{FS: vfs.NewMem(), Charter: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for n := range pages {
		commit(t, s, page(fmt.Sprintf("h%d.example", n%20), n, "t", "all of them"))
	}
	return s, c.Slices()
}

// countIn returns the number of documents of sl, and whether sl is missing.
func countIn(t testing.TB, ix *Index, sl partition.Slice) (n int, missing bool) {
	t.Helper()
	q := Query{Text: "all", Slices: []partition.Slice{sl}, Limit: 1000}
	st, err := ix.Statistics(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	res, err := ix.Search(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Records deleted from the store in the meantime are no hits.
	if uint64(len(res.Hits)) > st.Docs || res.Total != uint64(len(res.Hits)) || st.DF["all"] != st.Docs ||
		!slices.Equal(res.Missing, st.Missing) {
		t.Errorf("%s: %d hits of %d, missing %v; statistics %+v", sl, len(res.Hits), res.Total, res.Missing, st)
	}
	return int(st.Docs), len(res.Missing) > 0
}

func recordsIn(t testing.TB, s *db.Store, sl partition.Slice) (n int) {
	t.Helper()
	if err := s.Archive.SliceRecords(sl, "", func(store.Record) (bool, error) { n++; return true, nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestI8WhatIsNotKeptIsMissing: the index answers for a slice with all its records or reports it as
// missing, whatever slices came and went and wherever the index was stopped.
func TestI8WhatIsNotKeptIsMissing(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s, sls := sliced(t, 40)
			dir := filepath.Join(t.TempDir(), "index")
			o := Options{Slices: []partition.Slice{}, Linger: -1}
			ix, err := Open(dir, s, o)
			if err != nil {
				t.Fatal(err)
			}
			var kept []partition.Slice
			check := func(settled bool) {
				t.Helper()
				for _, sl := range sls {
					n, missing := countIn(t, ix, sl)
					if want := recordsIn(t, s, sl); settled && !missing && n != want {
						t.Fatalf("%s: %d documents, %d records", sl, n, want)
					}
					if settled && missing == slices.Contains(kept, sl) {
						t.Fatalf("%s: kept %v, missing %v", sl, !missing, missing)
					}
					if missing && n != 0 {
						t.Fatalf("%s: missing, and %d found", sl, n)
					}
				}
				// A query for several slices finds as many as queries for each, also when they are
				// all slices there are.
				for _, some := range [][]partition.Slice{sls, kept, sls[:1+rng.IntN(len(sls))]} {
					sum := 0
					for _, sl := range slices.Compact(slices.Sorted(slices.Values(some))) {
						sum += len(find(t, ix, Query{Text: "all", Slices: []partition.Slice{sl}, Limit: 1000}))
					}
					if got := len(find(t, ix, Query{Text: "all", Slices: append([]partition.Slice{}, some...),
						Limit: 1000})); got != sum {
						t.Fatalf("%d found in %v, %d in each of them", got, some, sum)
					}
				}
			}
			for pages := 40; pages < 100; {
				switch rng.IntN(6) {
				case 0:
					kept = nil
					for _, sl := range sls {
						if rng.IntN(2) == 0 {
							kept = append(kept, sl)
						}
					}
					ix.Keep(kept)
				case 1:
					for range 10 {
						commit(t, s, page(fmt.Sprintf("h%d.example", pages%20), pages, "t", "all of them"))
						pages++
					}
				case 2:
					if err := s.Log.DropSlice(sls[rng.IntN(len(sls))]); err != nil {
						t.Fatal(err)
					}
				case 3:
					if _, err := ix.advance(); err != nil {
						t.Fatal(err)
					}
				case 4:
					closeIndex(t, ix)
					if ix, err = Open(dir, s, o); err != nil {
						t.Fatal(err)
					}
					ix.Keep(kept)
				case 5:
					flush(t, ix)
					check(true)
				}
				check(false)
			}
			flush(t, ix)
			check(true)
			for sl, n := range ix.docs {
				if n > 0 && !slices.Contains(kept, sl) {
					t.Fatalf("%s: %d documents of a slice that is not kept", sl, n)
				}
			}
			closeIndex(t, ix)
		})
	}
}

// An interrupted scan resumes at its last write and misses nothing that changed in the meantime.
func TestScanGoesOnAfterAClose(t *testing.T) {
	s, sls := sliced(t, 4*batchDocs)
	dir := filepath.Join(t.TempDir(), "index")
	ix, err := Open(dir, s, Options{Slices: sls})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ix.advance(); err != nil {
		t.Fatal(err)
	}
	if ix.mark.In == 0 || ix.Waiting() == 0 {
		t.Fatalf("one step was enough: %+v", ix.mark)
	}
	in, from := ix.mark.In, ix.mark.From
	closeIndex(t, ix)
	var read, unread store.Record // of the slice that is half read
	if err := s.Archive.SliceRecords(in, "", func(r store.Record) (bool, error) {
		if r.Key <= from && read.Key == "" {
			read = r
		}
		unread = r
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []store.Record{read, unread} {
		r.Text, r.FetchedAt = "otherwise", r.FetchedAt.Add(10000*time.Hour)
		commit(t, s, r)
	}
	if ix, err = Open(dir, s, Options{Slices: sls}); err != nil {
		t.Fatal(err)
	}
	defer closeIndex(t, ix)
	if ix.mark.In != in || ix.mark.From != from {
		t.Errorf("it begins anew: %+v", ix.mark)
	}
	flush(t, ix)
	if got := find(t, ix, Query{Text: "otherwise", Slices: sls}); len(got) != 2 {
		t.Errorf("what changed during the scan: %v", got)
	}
	if got := find(t, ix, Query{Text: "all", Slices: sls, Limit: 4 * batchDocs}); len(got) != 4*batchDocs-2 {
		t.Errorf("%d of %d", len(got), 4*batchDocs-2)
	}
}

// Skipped changes are not written one by one, and they do not prevent trimming the log.
func TestPassesOverOthersSlices(t *testing.T) {
	s, sls := sliced(t, 0)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	ix.Keep(nil)
	commit(t, s, page("a.example", 1, "t", "all"))
	flush(t, ix)
	saved := ix.saved
	commit(t, s, page("a.example", 2, "t", "all"))
	flush(t, ix)
	if ix.Seq() < s.LastChange() || ix.saved != saved || len(ix.docs) > 0 {
		t.Errorf("at %d of %d, saved %d (%d before), documents %v", ix.Seq(), s.LastChange(), ix.saved, saved, ix.docs)
	}
	for _, sl := range sls {
		if _, missing := countIn(t, ix, sl); !missing {
			t.Errorf("%s is answered for", sl)
		}
	}
	for n := range trimEvery {
		commit(t, s, page("a.example", n%10, "t", fmt.Sprint("all", n)))
	}
	flush(t, ix)
	if ix.saved == saved || ix.trimmed == 0 {
		t.Errorf("saved %d (%d before), trimmed %d", ix.saved, saved, ix.trimmed)
	}
}

// Await adds a slice for some time. A slice that was kept stays for as long, unless it is empty.
func TestAwaitAndLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sls := sliced(t, 100)
		if err := s.Log.DropSlice(sls[3]); err != nil {
			t.Fatal(err)
		}
		ix, err := Open("", s, Options{Slices: []partition.Slice{sls[0], sls[3]}, Linger: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- ix.Run(ctx) }()
		there := func(after time.Duration, want ...partition.Slice) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			for _, sl := range sls {
				if _, missing := countIn(t, ix, sl); missing == slices.Contains(want, sl) {
					t.Errorf("slice %v: missing %v", slices.Index(sls, sl), missing)
				}
			}
		}
		if err := ix.Await(ctx, sls[1:2]); err != nil {
			t.Fatal(err)
		}
		there(0, sls[0], sls[1], sls[3])
		ix.Keep(nil)
		there(time.Second, sls[0], sls[1])
		if err := ix.Await(ctx, sls[:2]); err != nil {
			t.Fatal(err)
		}
		there(9*time.Minute, sls[0], sls[1])
		there(3 * time.Minute)
		if len(ix.docs) > 0 && slices.Max(slices.Collect(maps.Values(ix.docs))) > 0 {
			t.Errorf("documents are left: %v", ix.docs)
		}
		late, stop := context.WithCancel(ctx)
		stop()
		if err := ix.Await(late, sls[2:3]); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		there(time.Second, sls[2]) // it is added all the same
		cancel()
		<-done
		closeIndex(t, ix)
		if err := ix.Await(context.Background(), sls[:1]); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

func TestPackedSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[partition.Slice]bool{}
		for _, n := range rapid.SliceOf(rapid.Uint64Min(1)).Draw(t, "slices") {
			want[partition.Slice(n)] = true
		}
		got, err := unpack(pack(want))
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("%v: %v, %v", want, got, err)
		}
	})
	c := partition.DefaultCharter("test", "12D3KooWfounder")
	all := map[partition.Slice]bool{}
	for _, sl := range c.Slices() {
		all[sl] = true
	}
	if n := len(pack(all)); n > 2*len(all) {
		t.Errorf("%d bytes for %d slices", n, len(all))
	}
	for _, bad := range [][]byte{nil, {64}, {0, 0x80}} {
		if _, err := unpack(bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// The progress of the index can be read during a batch and during a search.
func TestHowFarItIsDoesNotWait(t *testing.T) {
	s, sls := sliced(t, 8)
	ix, err := Open("", s, Options{Slices: sls[:1]})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ix.Keep(sls[:3])
	ix.step.Lock()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	defer ix.step.Unlock()
	said := make(chan string, 1)
	go func() { said <- fmt.Sprint(ix.Seq() == s.LastSeq(), ix.Waiting()) }()
	select {
	case got := <-said:
		if got != "true 2" {
			t.Errorf("all changes are in, slices that wait: %s, want true 2", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("they wait for the locks of the index")
	}
}
