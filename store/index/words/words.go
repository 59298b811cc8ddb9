// Package words splits texts and queries into the words of the index.
package words

import (
	"bytes"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/unicodenorm"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
)

// maxWordBytes is the maximum length of a word. Longer words are cut, because nobody types them.
const maxWordBytes = 128

// Analyzers are the analysis chains of documents, queries and names. Token offsets refer to the
// original text. Analyzers are safe for concurrent use.
type Analyzers struct {
	Texts   analysis.Analyzer // of documents: every word by which they are found
	Queries analysis.Analyzer // the words that a document must contain
	Names   analysis.Analyzer // of places: words as they are written
}

// New returns the analysis chains.
func New() Analyzers {
	chain := func(more ...analysis.TokenFilter) analysis.Analyzer {
		filters := append([]analysis.TokenFilter{unicodenorm.MustNewUnicodeNormalizeFilter(unicodenorm.NFKC)}, more...)
		return &analysis.DefaultAnalyzer{
			Tokenizer:    splitter{unicode.NewUnicodeTokenizer()},
			TokenFilters: append(filters, folder{asciifolding.New()}, lowercase.NewLowerCaseFilter()),
		}
	}
	return Analyzers{Texts: chain(parts{}), Queries: chain(parts{asked: true}), Names: chain()}
}

// splitter splits text as UAX 29 does, and also at apostrophes, so that eau finds l'eau. It drops
// tokens without a letter, digit or ideograph.
type splitter struct{ *unicode.UnicodeTokenizer }

// Tokenize implements analysis.Tokenizer.
func (w splitter) Tokenize(text []byte) analysis.TokenStream {
	plain := append([]byte(nil), text...)
	for _, sign := range []string{"'", "’", "ʼ", "_"} {
		for at := 0; ; {
			i := bytes.Index(plain[at:], []byte(sign))
			if i < 0 {
				break
			}
			at += i
			for j := range len(sign) { // the same number of bytes, so that offsets stay valid
				plain[at+j] = ' '
			}
		}
	}
	return w.UnicodeTokenizer.Tokenize(plain)
}

// folder removes accents.
type folder struct {
	ascii *asciifolding.AsciiFoldingFilter
}

// Filter implements analysis.TokenFilter.
func (f folder) Filter(in analysis.TokenStream) analysis.TokenStream {
	for _, t := range in {
		if t.Type != analysis.Ideographic && t.Type != analysis.Double && !isASCII(t.Term) {
			t.Term = f.ascii.Filter(t.Term)
		}
		if len(t.Term) > maxWordBytes {
			t.Term = Clip(t.Term, maxWordBytes)
		}
	}
	return in
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// Clip cuts b to at most n bytes without leaving half a character.
func Clip[T string | []byte](b T, n int) T {
	if len(b) <= n {
		return b
	}
	for n > 0 && b[n]&0xc0 == 0x80 {
		n--
	}
	return b[:n]
}
