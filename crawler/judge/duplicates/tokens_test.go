package duplicates

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The quick paths for common letters agree with the Unicode tables.
func TestRunes(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if want := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) ||
			r == '_'; isWordRune(r) != want {
			t.Errorf("isWordRune(%U) is %v", r, !want)
		}
		if got := toLower(r); got != unicode.ToLower(r) {
			t.Errorf("toLower(%U) is %U", r, got)
		}
		if !utf8.ValidRune(r) {
			continue
		}
		for _, word := range [...]string{string(r), "Ab" + string(r) + "C"} {
			if got := string(appendLower(nil, word)); got != strings.ToLower(word) {
				t.Errorf("%q in lower case is %q", word, got)
			}
		}
	}
}

// distinct sorts and removes duplicates, for any distribution of the hashes.
func TestDistinct(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, mask := range []uint64{^uint64(0), 0xff << 56, 0xffff, 1<<63 | 1, 0} {
		for _, n := range []int{0, 1, 2, 63, 64, 65, 1000, 20_000} {
			hashes := make([]uint64, n)
			for i := range hashes {
				hashes[i] = rng.Uint64() & mask
			}
			want := slices.Compact(slices.Sorted(slices.Values(hashes)))
			if got := distinct(hashes); !slices.Equal(got, want) {
				t.Errorf("%d hashes under %x: %d distinct, want %d", n, mask, len(got), len(want))
			}
		}
	}
}
