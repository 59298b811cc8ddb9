package words

import (
	"testing"

	"github.com/blevesearch/bleve/v2/analysis"
)

// A plain word, which is emitted unchanged, gives the same result as the general path.
func TestPlainWordsAreOnePart(t *testing.T) {
	for r := rune(0); r < 0x300; r++ {
		for _, w := range []string{string(r), string(r) + "a", "a" + string(r), "ação" + string(r) + "2"} {
			if !plain([]byte(w)) {
				continue
			}
			c := cutter{}
			c.word([]byte(w), func(from, to int) span { return span{from, to} }, analysis.AlphaNumeric)
			if len(c.out) != 1 || string(c.out[0].Term) != w || c.out[0].Position != 1 || c.out[0].Start != 0 ||
				c.out[0].End != len(w) {
				t.Errorf("%q is plain, and is cut into %d words", w, len(c.out))
			}
		}
	}
	for _, w := range []string{"informação", "Köln", "naïve", "utf8", "łódź"} {
		if !plain([]byte(w)) {
			t.Errorf("%q goes the long way", w)
		}
	}
}
