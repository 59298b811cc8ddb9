package geo

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plain is a text in the letters that names are written with: full-width,
// circled, mathematical, superscript and small capital letters become plain ones
// (NFKC, Unicode Standard Annex 15, and what that leaves out), what cannot be
// seen goes, invalid UTF-8 becomes a space. It keeps accents and case, and
// plain(plain(s)) is plain(s).
func plain(s string) string {
	if asciiOnly(s) {
		return s
	}
	s = strings.Map(plainLetter, strings.ToValidUTF8(s, " "))
	return norm.NFC.String(strings.Map(plainLetter, norm.NFKD.String(s)))
}

func asciiOnly(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// smallCapitals are the letters that look like capitals and that NFKC keeps, in
// the order of the letters they stand for, which plainLetters has.
const (
	smallCapitals = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ"
	plainLetters  = "abcdefghijklmnopqrstuvwyz"
)

// plainLetter is one letter of plain; below 0: none.
func plainLetter(r rune) rune {
	switch {
	case r < 0x80:
		return r
	case r == '\u2122': // a trade mark, TM when decomposed
		return ' '
	case r == '\u00b4' || r == '\u2018' || r == '\u2019' || r == '\u02bc':
		return '\''
	case r == '\u2010' || r == '\u2011' || r == '\u2212':
		return '-'
	case r >= 0x1F150 && r <= 0x1F169: // negative circled
		return 'A' + r - 0x1F150
	case r >= 0x1F170 && r <= 0x1F189: // negative squared
		return 'A' + r - 0x1F170
	case r >= 0xE0020 && r <= 0xE007F: // tags, which flags of countries in a country are made of
		return r
	case unicode.Is(unicode.Cf, r), r >= 0xFE00 && r <= 0xFE0F: // joiners and variation selectors
		return -1
	}
	if i := strings.IndexRune(smallCapitals, r); i >= 0 {
		return rune(plainLetters[utf8.RuneCountInString(smallCapitals[:i])])
	}
	return r
}
