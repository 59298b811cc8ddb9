package index

import (
	"bytes"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/unicodenorm"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
)

// Caps of what is analysed.
const (
	MaxTextBytes = 1 << 20 // of a record's text that is searched
	maxWordBytes = 128     // longer words are cut: no one types them
)

// analyzers are the chains that documents, queries and names go through. Token
// offsets are those of the text as given. Safe for concurrent use.
type analyzers struct {
	texts   analysis.Analyzer // of documents: every word by which they are found
	queries analysis.Analyzer // the words that must be there
	names   analysis.Analyzer // of places: words as they are written
}

func newAnalyzers() analyzers {
	chain := func(more ...analysis.TokenFilter) analysis.Analyzer {
		filters := append([]analysis.TokenFilter{unicodenorm.MustNewUnicodeNormalizeFilter(unicodenorm.NFKC)}, more...)
		return &analysis.DefaultAnalyzer{
			Tokenizer:    words{unicode.NewUnicodeTokenizer()},
			TokenFilters: append(filters, folder{asciifolding.New()}, lowercase.NewLowerCaseFilter()),
		}
	}
	return analyzers{texts: chain(parts{}), queries: chain(parts{asked: true}), names: chain()}
}

// words cuts text up as UAX 29 does, and also at apostrophes, so that eau
// finds l'eau. It drops what has no letter, digit or ideograph.
type words struct{ *unicode.UnicodeTokenizer }

func (w words) Tokenize(text []byte) analysis.TokenStream {
	plain := append([]byte(nil), text...)
	for _, sign := range []string{"'", "’", "ʼ", "_"} {
		for at := 0; ; {
			i := bytes.Index(plain[at:], []byte(sign))
			if i < 0 {
				break
			}
			at += i
			for j := range len(sign) { // as many bytes, so that offsets hold
				plain[at+j] = ' '
			}
		}
	}
	return w.UnicodeTokenizer.Tokenize(plain)
}

// folder takes the accents off.
type folder struct {
	ascii *asciifolding.AsciiFoldingFilter
}

func (f folder) Filter(in analysis.TokenStream) analysis.TokenStream {
	for _, t := range in {
		if t.Type != analysis.Ideographic && t.Type != analysis.Double && !isASCII(t.Term) {
			t.Term = f.ascii.Filter(t.Term)
		}
		if len(t.Term) > maxWordBytes {
			t.Term = clip(t.Term, maxWordBytes)
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

// clip cuts b to n bytes without leaving half a character.
func clip[T string | []byte](b T, n int) T {
	if len(b) <= n {
		return b
	}
	for n > 0 && b[n]&0xc0 == 0x80 {
		n--
	}
	return b[:n]
}
