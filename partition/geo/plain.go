package geo

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plain returns a text in the letters in which names are written. Full-width, circled,
// mathematical, superscript and small capital letters become plain ones (NFKC, Unicode Standard
// Annex 15, and letters that NFKC keeps). Invisible characters are removed, and invalid UTF-8
// becomes a space. plain keeps accents and case, and plain(plain(s)) is plain(s).
func plain(s string) string {
	if asciiOnly(s) {
		return s
	}
	s = strings.Map(plainLetter, strings.ToValidUTF8(s, " "))
	return norm.NFC.String(strings.Map(plainLetter, norm.NFKD.String(s)))
}

// asciiOnly reports whether s has only ASCII bytes.
func asciiOnly(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// smallCapitals are the letters that look like capitals and that NFKC keeps. plainLetters has
// the plain letters in the same order.
const (
	smallCapitals = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ"
	plainLetters  = "abcdefghijklmnopqrstuvwyz"
)

// plainLetter returns one letter of plain; below 0: none.
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
	case r >= 0xE0020 && r <= 0xE007F: // tags, used in flags of countries within a country
		return r
	case unicode.Is(unicode.Cf, r), r >= 0xFE00 && r <= 0xFE0F: // joiners and variation selectors
		return -1
	}
	if i := strings.IndexRune(smallCapitals, r); i >= 0 {
		return rune(plainLetters[utf8.RuneCountInString(smallCapitals[:i])])
	}
	return r
}
