package words

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
)

// parts cuts words into the parts that people search for. It comes after the compatibility
// normalization and before the lower-casing, because it needs both.
//
//	pg_hba.conf      pg, hba, conf, hba.conf
//	www.boost.org    www, boost, org, www.boost, boost.org
//	XMLHttpRequest   xmlhttprequest, xml, http, request
//	マスク           マ, ス, ク, マス, スク
//
// Each part has its own position, so a word of several parts is a phrase of them. Two parts joined
// by a sign are also one word, at the position of the first: a search for boost.org finds
// www.boost.org, and not "Boost. Org". In writing systems without blanks, each character has a
// position. It is indexed alone and with the next one (bigrams; J. H. Lee and J. S. Ahn, "Using
// n-grams for Korean text retrieval", 1996).
//
// A query uses the fewest of these words that mean the same.
type parts struct{ asked bool }

// maxHumps is how many capitalised parts of one word are indexed separately.
const maxHumps = 32

// Filter implements analysis.TokenFilter.
func (f parts) Filter(in analysis.TokenStream) analysis.TokenStream {
	c := cutter{asked: f.asked, out: make(analysis.TokenStream, 0, len(in)+len(in)/4)}
	for _, t := range in {
		c.token(t)
	}
	c.flush()
	return c.out
}

// cutter processes one token stream.
type cutter struct {
	asked bool
	out   analysis.TokenStream
	slab  []analysis.Token
	pos   int // of the last part

	run  []byte // characters of a writing system without blanks, not emitted yet
	ends []int  // the end of each character in run
	at   []span // the place of each character in the text

	parts []span // of a word
}

// span is a range of bytes in a text.
type span struct{ from, to int }

// put emits one token.
func (c *cutter) put(term []byte, pos int, at span, kind analysis.TokenType) {
	if len(c.slab) == 0 {
		c.slab = make([]analysis.Token, 64)
	}
	t := &c.slab[0]
	c.slab = c.slab[1:]
	t.Term, t.Position, t.Start, t.End, t.Type = term, pos, at.from, at.to, kind
	c.out = append(c.out, t)
}

// token processes the next token: characters of a run, a word, or both.
func (c *cutter) token(t *analysis.Token) {
	if plain(t.Term) { // most words of most texts
		c.flush()
		c.pos++
		t.Position = c.pos
		c.out = append(c.out, t)
		return
	}
	if bytes.ContainsFunc(t.Term, invisible) {
		t.Term = bytes.Map(func(r rune) rune {
			if invisible(r) {
				return -1
			}
			return r
		}, t.Term)
	}
	exact := t.End-t.Start == len(t.Term) // else normalization changed it: parts get its place
	where := func(from, to int) span {
		if !exact {
			return span{t.Start, t.End}
		}
		return span{t.Start + from, t.Start + to}
	}
	if n := len(c.at); n > 0 && c.at[n-1].to != t.Start {
		c.flush()
	}
	for from := 0; from < len(t.Term); {
		r, size := utf8.DecodeRune(t.Term[from:])
		if !unbroken(r) {
			to := from + size
			for to < len(t.Term) {
				if r, size = utf8.DecodeRune(t.Term[to:]); unbroken(r) {
					break
				}
				to += size
			}
			c.flush()
			c.word(t.Term[from:to], func(i, j int) span { return where(from+i, from+j) }, t.Type)
			from = to
			continue
		}
		c.run = append(c.run, t.Term[from:from+size]...)
		c.ends, c.at = append(c.ends, len(c.run)), append(c.at, where(from, from+size))
		from += size
	}
}

// plain reports whether w is always one part: Latin letters and digits, with no capital except the
// first letter.
func plain(w []byte) bool {
	for i := 0; i < len(w); {
		c := w[i]
		if c < utf8.RuneSelf {
			if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (c < '0' || c > '9') || i > 0 && c >= 'A' &&
				c <= 'Z' {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(w[i:])
		// from the blocks Latin-1 to Latin Extended-B
		if r < 'À' || r > 'ɏ' || r == '×' || r == '÷' || i > 0 && !unicode.IsLower(r) {
			return false
		}
		i += size
	}
	return true
}

// invisible reports whether r only affects how a word is displayed: soft hyphens, joiners.
func invisible(r rune) bool { return r >= 0x80 && unicode.Is(unicode.Cf, r) }

// unbroken reports whether r is of a writing system that puts no blank between words, or, like
// Korean, joins particles to them.
func unbroken(r rune) bool {
	return r >= 0x2E80 &&
		(r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo))
}

// flush emits the run.
func (c *cutter) flush() {
	n := len(c.ends)
	begin := 0
	for i, end := range c.ends {
		c.pos++
		if !c.asked || n == 1 {
			c.put(c.run[begin:end:end], c.pos, c.at[i], analysis.Ideographic)
		}
		if i+1 < n {
			c.put(c.run[begin:c.ends[i+1]:c.ends[i+1]], c.pos, span{c.at[i].from, c.at[i+1].to}, analysis.Double)
		}
		begin = end
	}
	c.run, c.ends, c.at = nil, c.ends[:0], c.at[:0] // the terms are slices of run
}

// word emits a word and the parts that signs join.
func (c *cutter) word(w []byte, where func(from, to int) span, kind analysis.TokenType) {
	c.parts = c.parts[:0]
	for from := 0; from < len(w); {
		to, next := nextPart(w, from)
		if to > from {
			c.parts = append(c.parts, span{from, to})
		}
		from = next
	}
	for i, p := range c.parts {
		c.pos++
		if !c.asked || len(c.parts) == 1 {
			c.part(w[p.from:p.to:p.to], p, where, kind)
		}
		if i+1 < len(c.parts) {
			to := c.parts[i+1].to
			c.put(w[p.from:to:to], c.pos, where(p.from, to), kind)
		}
	}
}

// nextPart returns where the part of w that begins at from ends, and where the next one begins.
func nextPart(w []byte, from int) (to, next int) {
	for to = from; to < len(w); {
		r, size := utf8.DecodeRune(w[to:])
		if !unicode.In(r, unicode.L, unicode.N, unicode.M) && r != utf8.RuneError {
			next = to + size
			for next < len(w) { // marks on the sign
				if r, size = utf8.DecodeRune(w[next:]); !unicode.Is(unicode.M, r) {
					break
				}
				next += size
			}
			return to, next
		}
		to += size
	}
	return to, to
}

// part emits one part, and the parts that its capitals separate.
func (c *cutter) part(p []byte, at span, where func(from, to int) span, kind analysis.TokenType) {
	c.put(p, c.pos, where(at.from, at.to), kind)
	if c.asked {
		return
	}
	from := 0
	for n := 0; n < maxHumps; n++ {
		to := hump(p, from)
		if from == 0 && to == len(p) {
			return // it has none
		}
		c.put(p[from:to:to], c.pos, where(at.from+from, at.from+to), kind)
		if from = to; from == len(p) {
			return
		}
	}
}

// hump returns the end of the capitalised part that begins at from. It ends before a capital that
// follows a small letter. It also ends before the last of several capitals if that one begins a
// word of small letters (XML|Http, but not URLs).
func hump(p []byte, from int) int {
	var before rune
	for i := from; i < len(p); {
		r, size := utf8.DecodeRune(p[i:])
		if i > from && unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsUpper(before) && small(p[i+size:])) {
			return i
		}
		before = r
		i += size
	}
	return len(p)
}

// small reports whether p begins with two small letters.
func small(p []byte) bool {
	for range 2 {
		r, size := utf8.DecodeRune(p)
		if !unicode.IsLower(r) {
			return false
		}
		p = p[size:]
	}
	return true
}
