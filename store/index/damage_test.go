package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index/sums"
)

// A changed byte in any file of an index never causes a wrong answer or a panic. The index is as it
// was, or it is rebuilt.
func TestFlippedBytes(t *testing.T) {
	flips := racetest.Flips(t, 30, 12)
	s := newStore(t)
	dir := filepath.Join(t.TempDir(), "index")
	ix := openIndex(t, dir, s)
	words := []string{"sardinha", "azulejo", "vindima", "comboio", "mercado"}
	for n := range 400 {
		commit(t, s, page(fmt.Sprintf("h%d.example", n%7), n%300, words[n%5],
			fmt.Sprintf("%s and %s of part%d", words[n%5], words[n/5%5], n%40)))
		if n%100 == 50 {
			flush(t, ix)
		}
	}
	flush(t, ix)
	truth := answers(t, ix, words)
	ix.noteSum()
	crashed := filepath.Join(t.TempDir(), "index")
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	closeIndex(t, ix)
	seen := map[string]int{}
	flip(t, dir, flips, seen, func(dir string) bool { return afterFlip(t, dir, s, words, truth) })
	flip(t, crashed, flips, seen, func(dir string) bool { return afterFlip(t, dir, s, words, truth) })
	if err := os.Remove(filepath.Join(crashed, sums.SumName)); err != nil {
		t.Fatal(err)
	}
	// Nothing was noted since the last change, so either result is allowed; opening only has to
	// end.
	flip(t, crashed, flips, seen, func(dir string) bool {
		ix, err := Open(dir, s, Options{})
		if err != nil {
			t.Error(err)
			return false
		}
		defer closeIndex(t, ix)
		anew := !ix.marked
		flush(t, ix)
		return anew
	})
	t.Log(seen)
}

// flip changes one bit in a copy of dir, n times. It counts the results of try, which reports
// whether the index was rebuilt.
func flip(t *testing.T, dir string, n int, seen map[string]int, try func(dir string) bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	byKind := map[string][]string{}
	var kinds []string
	for _, f := range files {
		k := filepath.Ext(f)
		if byKind[k] == nil {
			kinds = append(kinds, k)
		}
		byKind[k] = append(byKind[k], filepath.Base(f))
	}
	rng := rand.New(rand.NewPCG(18, 7))
	for i := range n {
		of := kinds[i%len(kinds)]
		file := byKind[of][rng.IntN(len(byKind[of]))]
		hurt := filepath.Join(t.TempDir(), "index")
		if err := os.CopyFS(hurt, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(hurt, file))
		if err != nil {
			t.Fatal(err)
		}
		where := rng.IntN(len(b))
		if file == sums.RootName { // where the pages in use are
			for b[where] == 0 {
				where = rng.IntN(len(b))
			}
		}
		b[where] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(filepath.Join(hurt, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprintf("%s, made anew: %v", of, try(hurt))]++
		if t.Failed() {
			t.Fatalf("flip %d: byte %d of %s", i, where, file)
		}
	}
}

// Bolt can walk through everything that sums.Walk accepts, without a panic and without an endless
// loop.
func FuzzTree(f *testing.F) {
	s := newStore(f)
	dir := filepath.Join(f.TempDir(), "index")
	ix := openIndex(f, dir, s)
	for n := range 40 {
		commit(f, s, page("h.example", n, "word", "words"))
		flush(f, ix)
	}
	closeIndex(f, ix)
	b, err := os.ReadFile(filepath.Join(dir, sums.RootName))
	if err != nil {
		f.Fatal(err)
	}
	is, err := sums.Walk(b)
	if err != nil || is.Tx == 0 {
		f.Fatal(is, err)
	}
	f.Add(uint32(16), []byte{1})
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		hurt := slices.Clone(b)
		for i, c := range change {
			hurt[(int(at)+i)%len(hurt)] ^= c
		}
		if _, err := sums.Walk(hurt); err != nil {
			return
		}
		name := filepath.Join(t.TempDir(), sums.RootName)
		if err := os.WriteFile(name, hurt, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bolt.Open(name, 0o600, &bolt.Options{PreLoadFreelist: true, ReadOnly: true})
		if err != nil {
			return
		}
		if err := db.View(func(tx *bolt.Tx) error { return walkBucket(tx.Cursor().Bucket(), 2*len(b)) }); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// walkBucket is bolt's own walk over at most left bytes of keys and values.
func walkBucket(b *bolt.Bucket, left int) error {
	return b.ForEach(func(k, v []byte) error {
		if left -= len(k) + len(v); left < 0 {
			return errors.New("more than the file has")
		}
		if v == nil {
			return walkBucket(b.Bucket(k), left)
		}
		return nil
	})
}

// afterFlip reports whether the index was rebuilt.
func afterFlip(t *testing.T, dir string, s *db.Store, words []string, truth [][]string) bool {
	t.Helper()
	ix, err := Open(dir, s, Options{})
	if err != nil {
		t.Error(err)
		return false
	}
	defer closeIndex(t, ix)
	anew := !ix.marked
	flush(t, ix)
	if got := answers(t, ix, words); !slices.EqualFunc(got, truth, slices.Equal) {
		t.Errorf("made anew: %v; %q, want %q", anew, got, truth)
	}
	return anew
}

func answers(t *testing.T, ix *Index, words []string) (all [][]string) {
	t.Helper()
	for _, w := range append([]string{"part7"}, words...) {
		hits := find(t, ix, Query{Text: w, Limit: 1000})
		slices.Sort(hits)
		all = append(all, hits)
	}
	return all
}
