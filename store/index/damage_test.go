package index

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// A byte that changed in any file of an index is never a wrong answer and never a panic: the index is as it was, or is
// made anew.
func TestFlippedBytes(t *testing.T) {
	flips := 30
	if racetest.Small(t) {
		flips = 12
	}
	if n, err := strconv.Atoi(os.Getenv("ECHO_FLIPS")); err == nil {
		flips = n
	}
	s := newStore(t)
	dir := filepath.Join(t.TempDir(), "index")
	ix := openIndex(t, dir, s)
	words := []string{"sardinha", "azulejo", "vindima", "comboio", "mercado"}
	for n := range 400 {
		commit(t, s, page(fmt.Sprintf("h%d.example", n%7), n%300, words[n%5], fmt.Sprintf("%s and %s of part%d", words[n%5], words[n/5%5], n%40)))
		if n%100 == 50 {
			flush(t, ix)
		}
	}
	flush(t, ix)
	truth := answers(t, ix, words)
	closeIndex(t, ix)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
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
	seen := map[string]int{}
	for i := range flips {
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
		b[where] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(filepath.Join(hurt, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
		anew := afterFlip(t, hurt, s, words, truth)
		seen[fmt.Sprintf("%s, made anew: %v", of, anew)]++
		if t.Failed() {
			t.Fatalf("flip %d: byte %d of %s", i, where, file)
		}
	}
	t.Log(seen)
}

// afterFlip says whether the index was made anew.
func afterFlip(t *testing.T, dir string, s *store.Store, words []string, truth [][]string) bool {
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
