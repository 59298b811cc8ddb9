package atlas

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold returns the form in which names are compared: lower case, without accents, letters and
// digits only, one space between words.
func Fold(s string) string { return fold(s, false) }

// Spell is Fold but keeps the accents: it distinguishes Mação from Macao.
func Spell(s string) string { return norm.NFC.String(fold(s, true)) }

// fold is Fold; with accents it keeps them, in decomposed form (NFKD).
func fold(s string, accents bool) string {
	if !ascii(s) {
		s = norm.NFKD.String(s)
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if r >= utf8.RuneSelf && unicode.Is(unicode.Mn, r) {
			if accents {
				b.WriteRune(r)
			}
			continue
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		switch r = unicode.ToLower(r); r {
		case 'ß':
			b.WriteString("ss")
		case 'æ':
			b.WriteString("ae")
		case 'œ':
			b.WriteString("oe")
		case 'ø':
			b.WriteByte('o')
		case 'ł':
			b.WriteByte('l')
		case 'đ', 'ð':
			b.WriteByte('d')
		case 'ı':
			b.WriteByte('i')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ascii reports whether s has only ASCII bytes.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
