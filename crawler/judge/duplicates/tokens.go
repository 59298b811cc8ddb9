package duplicates

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Tokens returns the features of text that the fingerprint uses, in order and with repetitions.
// They are words in lower case and compatibility form, numbers, and pairs of neighbouring
// ideographs (one ideograph if it is alone). URLs, emoji and punctuation are no features. Strip the
// text first.
func Tokens(text string) []string {
	var out []string
	c := newCutter(text)
	for t, ok := c.next(); ok; t, ok = c.next() {
		if !t.han {
			out = append(out, string(t.text))
			continue
		}
		pairs(t.text, func(pair []byte) { out = append(out, string(pair)) })
	}
	return out
}

// pairs calls yield for each two neighbours of a run of ideographs, or for the only one.
func pairs(run []byte, yield func([]byte)) {
	_, first := utf8.DecodeRune(run)
	for from, mid := 0, first; ; {
		_, size := utf8.DecodeRune(run[mid:])
		if size == 0 && from > 0 {
			return
		}
		yield(run[from : mid+size])
		if size == 0 {
			return
		}
		from, mid = mid, mid+size
	}
}

// token is one result of the cutter: a word, a number, or a run of ideographs.
type token struct {
	text   []byte // folded: NFKC, lower case; the next token overwrites it
	number bool
	han    bool
	name   bool // begins with a capital inside a sentence
}

// cutter finds the tokens of a text, one after the other.
type cutter struct {
	text  string
	at    int
	start bool   // at the beginning of a sentence
	buf   []byte // the memory of token.text
}

func newCutter(text string) cutter {
	if !norm.NFKC.IsNormalString(text) {
		text = norm.NFKC.String(text)
	}
	return cutter{text: text, start: true}
}

// next returns the next token, or false at the end of the text.
func (c *cutter) next() (token, bool) {
	for c.at < len(c.text) {
		rest := c.text[c.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == ' ':
			c.at++
		case isIdeograph(r):
			n := runLen(rest, isIdeograph)
			c.buf = append(c.buf[:0], rest[:n]...)
			c.at, c.start = c.at+n, false
			return token{text: c.buf, han: true}, true
		case isWordRune(r):
			if n := urlLen(rest); n > 0 {
				c.at += n
				continue
			}
			n := wordLen(rest)
			t := token{number: isNumber(rest[:n]), name: !c.start && isName(rest[:n])}
			c.buf = appendLower(c.buf[:0], rest[:n])
			t.text = c.buf
			c.at, c.start = c.at+n, false
			return t, true
		default:
			// A quotation or a line begins a new sentence, as a full stop does.
			c.start = c.start && unicode.IsSpace(r) || strings.ContainsRune(".!?:…\n\"“«。！？", r)
			c.at += size
		}
	}
	return token{}, false
}

// isNumber reports whether a word consists of digits and their separators.
func isNumber(word string) bool {
	if first := word[0] | 0x20; first >= 'a' && first <= 'z' {
		return false // a quick answer for most words
	}
	for _, r := range word {
		if !unicode.IsDigit(r) && !strings.ContainsRune(".,'’-", r) {
			return false
		}
	}
	return true
}

// appendLower appends word in lower case to dst. Unlike strings.ToLower it makes no new string.
func appendLower(dst []byte, word string) []byte {
	from := len(dst)
	dst = append(dst, word...)
	for i := from; i < len(dst); i++ {
		switch c := dst[i]; {
		case c >= utf8.RuneSelf:
			dst = dst[:i]
			for _, r := range word[i-from:] {
				dst = utf8.AppendRune(dst, toLower(r))
			}
			return dst
		case c >= 'A' && c <= 'Z':
			dst[i] = c + 'a' - 'A'
		}
	}
	return dst
}

// toLower is unicode.ToLower with a quick path for the letters of western Europe.
func toLower(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z', r >= 0xC0 && r <= 0xDE && r != '×':
		return r + 'a' - 'A'
	case r < utf8.RuneSelf, r >= 0xC0 && r <= 0xFF:
		return r
	}
	return unicode.ToLower(r)
}

// isName reports whether word looks like a proper name: a capital, then a small letter.
func isName(word string) bool {
	if word[0] >= 'a' && word[0] <= 'z' {
		return false // a quick answer for most words
	}
	first, size := utf8.DecodeRuneInString(word)
	second, _ := utf8.DecodeRuneInString(word[size:])
	return unicode.IsUpper(first) && unicode.IsLower(second)
}

// wordLen returns the length of the word at the beginning of s. A word consists of word runes that
// are no ideographs, with single apostrophes between letters, and points and commas between digits.
func wordLen(s string) int {
	end := 0
	for end < len(s) {
		if wordBytes[s[end]] {
			end++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[end:])
		if r >= utf8.RuneSelf && isWordRune(r) && !isIdeograph(r) {
			end += size
			continue
		}
		if r != '\'' && r != '’' && r != '.' && r != ',' {
			return end
		}
		// The separator belongs to the word only between two runes that it joins.
		prev, _ := utf8.DecodeLastRuneInString(s[:end])
		next, _ := utf8.DecodeRuneInString(s[end+size:])
		if !joins(prev, r, next) || isIdeograph(next) {
			return end
		}
		end += size
	}
	return end
}

// wordBytes marks the word runes of one byte. It never changes.
var wordBytes = func() (is [256]bool) {
	for r := range rune(utf8.RuneSelf) {
		is[r] = isWordRune(r)
	}
	return is
}()

// joins reports whether sep between the runes a and b is inside a word.
func joins(a, sep, b rune) bool {
	if sep == '\'' || sep == '’' {
		return unicode.IsLetter(a) && unicode.IsLetter(b)
	}
	return unicode.IsDigit(a) && unicode.IsDigit(b)
}

// isWordRune reports whether r is a letter, a digit, a mark or the underscore. UTF-8 errors are
// not.
func isWordRune(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	case r >= 0xC0 && r < 0x250: // the letters of Latin, all but two
		return r != '×' && r != '÷'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// isIdeograph reports whether r belongs to a script that is written without spaces.
func isIdeograph(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) &&
		!unicode.IsDigit(r) ||
		r >= 0x0E00 && r < 0x0E80 && unicode.Is(unicode.Thai, r)
}

func runLen(s string, in func(rune) bool) int {
	for i, r := range s {
		if !in(r) {
			return i
		}
	}
	return len(s)
}

// urlLen returns the length of the URL at the beginning of s, or 0. s is not empty.
func urlLen(s string) int {
	if first := s[0] | 0x20; first != 'h' && first != 'w' {
		return 0
	}
	if !hasFoldPrefix(s, "http://") && !hasFoldPrefix(s, "https://") && !hasFoldPrefix(s, "www.") {
		return 0
	}
	n := runLen(s, func(r rune) bool { return r > ' ' && r < utf8.RuneSelf && !strings.ContainsRune("\"<>", r) })
	return len(strings.TrimRight(s[:n], ".,;:!?)'"))
}

func hasFoldPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
