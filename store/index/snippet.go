package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	index "github.com/blevesearch/bleve_index_api"
)

const (
	snippetBytes = 240 // approximate size of a snippet
	maxPassages  = 512 // of one phrase in one text that are compared
)

// passage is a place where a text contains a phrase of a query.
type passage struct {
	span
	phrase int
}

// passages returns, for each of found, the places where its text contains the phrases of p. They
// are in order, with at most the first maxPassages for each phrase.
func passages(ctx context.Context, r index.IndexReader, p plan, found []candidate) (out [][]passage, err error) {
	out = make([][]passage, len(found))
	s := &search{ctx: ctx}
	defer func() {
		for _, c := range s.open {
			err = errors.Join(err, c.close())
		}
	}()
	order := make([]int, len(found)) // a cursor only moves forward
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(found[a].num, found[b].num) })
	for n, words := range p.must {
		ph, err := s.phrase(r, words, true)
		if err != nil {
			return nil, err
		}
		for _, i := range order {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			ok, err := ph.seek(found[i].num)
			if err != nil {
				return nil, err
			}
			if ok {
				out[i] = append(out[i], ph.passages(n)...)
			}
		}
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b passage) int { return cmp.Or(a.from-b.from, a.to-b.to, a.phrase-b.phrase) })
	}
	return out, nil
}

// passages returns the places of the nth phrase in the text that its cursors are at.
func (ph phrase) passages(n int) (out []passage) {
	for at, where := range ph.places() {
		if at.part == partText {
			out = append(out, passage{where, n})
		}
	}
	slices.SortFunc(out, func(a, b passage) int { return a.from - b.from })
	return out[:min(len(out), maxPassages)]
}

// snippet returns the part of text with the most different phrases of a query, or the start of text
// when it has none. Each run of white space becomes one blank, and a cut is marked. When the text
// is newer than the index, the part may not contain the phrases.
func snippet(text string, said []passage) string {
	from, to := stretch(text, said)
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
	}, strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " "))
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

// stretch slides a window of snippetBytes over the passages and returns the best position.
func stretch(text string, said []passage) (from, to int) {
	best, start, end := 0, 0, 0
	in := make(map[int]int)
	for i, j := 0, 0; j < len(said) && said[j].to <= len(text); j++ {
		for in[said[j].phrase]++; i < j && said[j].to-said[i].from > snippetBytes; i++ {
			if in[said[i].phrase]--; in[said[i].phrase] == 0 {
				delete(in, said[i].phrase)
			}
		}
		if len(in) > best {
			best, start, end = len(in), said[i].from, said[j].to
		}
	}
	from = max(start-snippetBytes/6, 0)
	return from, min(max(from+snippetBytes, end), start+2*snippetBytes, len(text))
}
