package copies

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Tokens is the features of text as the fingerprint sees them, in order and with
// repetitions: words in lower case and compatibility form, numbers, and pairs of
// neighbouring ideographs (a single one when it stands alone). URLs, emoji and
// punctuation are no features. Strip the text first.
func Tokens(text string) []string {
	var out []string
	cut(text, func(t token) { out = append(out, t.features()...) })
	return out
}

// token is one run of the cutter: a word, a number, or a run of ideographs.
type token struct {
	text   string // folded: NFKC, lower case
	number bool
	han    bool
	name   bool // begins with a capital inside a sentence
}

// features is the feature strings of a token: itself, or the character pairs.
func (t token) features() []string {
	if !t.han {
		return []string{t.text}
	}
	runes := []rune(t.text)
	if len(runes) < 2 {
		return []string{t.text}
	}
	out := make([]string, 0, len(runes)-1)
	for i := range len(runes) - 1 {
		out = append(out, string(runes[i:i+2]))
	}
	return out
}

// cut calls yield for each token of text, in order.
func cut(text string, yield func(token)) {
	if !norm.NFKC.IsNormalString(text) {
		text = norm.NFKC.String(text)
	}
	start := true // at the beginning of a sentence
	for at := 0; at < len(text); {
		rest := text[at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case isIdeograph(r):
			n := runLen(rest, isIdeograph)
			yield(token{text: rest[:n], han: true})
			at, start = at+n, false
		case isWordRune(r):
			if n := urlLen(rest); n > 0 {
				at += n
				continue
			}
			n := wordLen(rest)
			at += n
			yield(wordToken(rest[:n], start))
			start = false
		default:
			// A quotation or a line begins a new sentence, as a full stop does.
			start = start && unicode.IsSpace(r) || strings.ContainsRune(".!?:…\n\"“«。！？", r)
			at += size
		}
	}
}

func wordToken(word string, start bool) token {
	number := true
	for _, r := range word {
		if !unicode.IsDigit(r) && !strings.ContainsRune(".,'’-", r) {
			number = false
			break
		}
	}
	return token{text: strings.ToLower(word), number: number, name: !start && isName(word)}
}

// isName says whether word looks like a proper name: a capital, then a small letter.
func isName(word string) bool {
	first, size := utf8.DecodeRuneInString(word)
	second, _ := utf8.DecodeRuneInString(word[size:])
	return unicode.IsUpper(first) && unicode.IsLower(second)
}

// wordLen is the length of the word at the beginning of s: word runes that are no
// ideographs, with single apostrophes, and points, commas and hyphens in numbers.
func wordLen(s string) int {
	end, prev := 0, rune(0)
	for i, r := range s {
		switch {
		case isWordRune(r) && !isIdeograph(r):
			if i > end && !joins(prev, s[end:i], r) {
				return end
			}
			end, prev = i+utf8.RuneLen(r), r
		case i == end && strings.ContainsRune("'’.,", r):
			// Belongs to the word only if a word rune follows: seen next.
		default:
			return end
		}
	}
	return end
}

// joins says whether sep between the runes a and b is inside a word.
func joins(a rune, sep string, b rune) bool {
	if sep == "'" || sep == "’" {
		return unicode.IsLetter(a) && unicode.IsLetter(b)
	}
	return unicode.IsDigit(a) && unicode.IsDigit(b)
}

// isWordRune: letters, digits, marks and the underscore. Utf8 errors are not.
func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// isIdeograph says whether r belongs to a script written without blanks.
func isIdeograph(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && !unicode.IsDigit(r) ||
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

// urlLen is the length of the URL at the beginning of s, or 0.
func urlLen(s string) int {
	if !hasFoldPrefix(s, "http://") && !hasFoldPrefix(s, "https://") && !hasFoldPrefix(s, "www.") {
		return 0
	}
	n := runLen(s, func(r rune) bool { return r > ' ' && r < utf8.RuneSelf && !strings.ContainsRune("\"<>", r) })
	return len(strings.TrimRight(s[:n], ".,;:!?)'"))
}

func hasFoldPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
