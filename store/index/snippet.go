package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
)

const (
	snippetBytes = 240      // of a snippet, about
	snippetScan  = 64 << 10 // of a text that is looked through for one
)

// snippet is the stretch of text with the most different words of terms, its
// start when it has none; white space is made one blank, and a cut is marked.
func snippet(a analysis.Analyzer, text string, terms []string) string {
	text = strings.ToValidUTF8(clip(text, snippetScan), "")
	from, to := stretch(a, text, terms)
	for from > 0 && !isSpace(text, from-1) && from > to-2*snippetBytes {
		from--
	}
	for from < to && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	out := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.Join(strings.Fields(text[from:to]), " "))
	if from > 0 {
		out = "… " + out
	}
	if to < len(text) {
		out += " …"
	}
	return out
}

func isSpace(s string, i int) bool {
	return s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r'
}

// stretch slides a window of snippetBytes over the words found.
func stretch(a analysis.Analyzer, text string, terms []string) (from, to int) {
	if len(terms) == 0 || len(text) <= snippetBytes {
		return 0, min(len(text), snippetBytes)
	}
	want := make(map[string]bool, len(terms))
	for _, t := range terms {
		want[t] = true
	}
	var found analysis.TokenStream
	for _, t := range a.Analyze([]byte(text)) {
		if want[string(t.Term)] {
			found = append(found, t)
		}
	}
	best, start := 0, 0
	in := make(map[string]int)
	for i, j := 0, 0; j < len(found); j++ {
		in[string(found[j].Term)]++
		for found[j].End-found[i].Start > snippetBytes {
			w := string(found[i].Term)
			if in[w]--; in[w] == 0 {
				delete(in, w)
			}
			i++
		}
		if len(in) > best {
			best, start = len(in), found[i].Start
		}
	}
	from = max(start-snippetBytes/6, 0)
	return from, min(from+snippetBytes, len(text))
}
